//! Reads the password from the options, the environment or the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};

use dbdyno_slap::UsageError;
use dbdyno_slap::commandline::OptionValues;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use crate::system::{FAILED, env_var};

/// Reads the password. Prompts for it if the option has no value.
pub(super) fn read(values: &OptionValues) -> Result<String, UsageError> {
    let name = if values.has("password") { "password" } else { "password1" };
    if !values.has(name) {
        return Ok(env_var("MYSQL_PWD").unwrap_or_default());
    }
    match values.text(name) {
        Some(password) => Ok(password.to_owned()),
        None => prompt().map_err(|error| UsageError {
            text: format!(
                "{}: cannot prompt for the password: {error}; put the password in a file and name the file with --defaults-extra-file",
                values.program
            ),
            code: FAILED,
        }),
    }
}

/// Prompts for a line on the terminal and reads it without echo. If there is no terminal, reads from standard input.
fn prompt() -> std::io::Result<String> {
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        return read_line(std::io::stdin().lock());
    };
    if !terminal.is_terminal() {
        return read_line(std::io::stdin().lock());
    }
    (&terminal).write_all(b"Enter password: ")?;
    let original = tcgetattr(&terminal)?;
    let mut without_echo = original.clone();
    without_echo.local_modes &= !LocalModes::ECHO;
    tcsetattr(&terminal, OptionalActions::Flush, &without_echo)?;
    let password = read_line(BufReader::new(&terminal));
    tcsetattr(&terminal, OptionalActions::Flush, &original)?;
    (&terminal).write_all(b"\n")?;
    password
}

fn read_line(mut input: impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
