//! The password: from the options, the environment or the terminal.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Write};

use dbdyno_slap::Refused;
use dbdyno_slap::commandline::Given;
use dbdyno_slap::option_files::Files;
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::disk::Disk;
use crate::exit::FAILED;

/// The password that was given; asked for where the option has no value.
pub(super) fn of(given: &Given) -> Result<String, Refused> {
    let name = if given.has("password") { "password" } else { "password1" };
    if !given.has(name) {
        return Ok(Disk.variable("MYSQL_PWD").unwrap_or_default());
    }
    match given.text(name) {
        Some(password) => Ok(password.to_owned()),
        None => asked().map_err(|error| Refused {
            text: format!(
                "{}: the password cannot be asked for: {error}; put it into a file and name that by --defaults-extra-file",
                given.program
            ),
            code: FAILED,
        }),
    }
}

/// What is typed after a prompt, without showing it; a line of standard input where there is no terminal.
fn asked() -> std::io::Result<String> {
    let Ok(terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        return line(std::io::stdin().lock());
    };
    if !terminal.is_terminal() {
        return line(std::io::stdin().lock());
    }
    (&terminal).write_all(b"Enter password: ")?;
    let shown = tcgetattr(&terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes &= !LocalModes::ECHO;
    tcsetattr(&terminal, OptionalActions::Flush, &hidden)?;
    let typed = line(BufReader::new(&terminal));
    tcsetattr(&terminal, OptionalActions::Flush, &shown)?;
    (&terminal).write_all(b"\n")?;
    typed
}

fn line(mut from: impl BufRead) -> std::io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
