//! `dbdyno-compat`: accepts the command lines of sysbench, mysqlslap and mariadb-slap, and runs them on dbdyno's engine.
//! The program's name or its first argument selects the emulated program. `dbdyno-compat` also has the commands of `dbdyno-engine`, for plans
//! whose workload is a Lua script.

// Besides `engine/cli`, this is the only crate that touches arguments, environment, files and the terminal (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod hidden_arguments;
mod output;
mod slap;
mod sysbench;
mod system;
mod watchdog;
mod workload;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use dbdyno_cli::exit::USAGE;
use dbdyno_runner::external::disable_core_files;
use system::PROGRAM;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    hidden_arguments::hide_passwords();
    disable_core_files();
    if let Some((program, rest)) = emulated_program(&arguments) {
        let code = if program == dbdyno_sysbench::NAME {
            sysbench::main(&rest)
        } else {
            slap::main(&program, &rest)
        };
        return output::exit_code(code);
    }
    if let Some(command) = workload::find_command(&arguments) {
        return workload::main(command);
    }
    if arguments.len() == 2 && arguments[1] == "describe" {
        return workload::describe();
    }
    if arguments.len() == 2 && arguments[1] == "--version" {
        println!("{PROGRAM} {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "{PROGRAM}: no program or command is given. Start it under the name sysbench, mysqlslap or mariadb-slap, or with one of \
         these names as the first argument. Or start it with prepare, prewarm, run, cleanup or describe, and pass a plan \
         whose workload is a Lua script on standard input"
    );
    USAGE.into()
}

/// Returns the program to emulate, named by this process's name or by its first argument, and the arguments after that
/// name.
fn emulated_program(arguments: &[OsString]) -> Option<(String, Vec<String>)> {
    let program_name = |argument: &OsString| {
        let name = Path::new(argument).file_name()?.to_str()?;
        [dbdyno_sysbench::NAME, "mysqlslap", "mariadb-slap"].contains(&name).then(|| name.to_owned())
    };
    let (index, program) =
        arguments.iter().take(2).map(program_name).enumerate().find(|(_, name)| name.is_some())?;
    let rest = arguments[index + 1..].iter().map(|argument| argument.to_string_lossy().into_owned());
    Some((program?, rest.collect()))
}
