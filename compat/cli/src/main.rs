//! `dbdyno-compat`: other tools' programs, played by the engine. The name under which it is started, or its first argument,
//! says which: sysbench, mysqlslap or mariadb-slap. Its own commands are those of `dbdyno-engine`, for plans whose workload is
//! a script in Lua.

// With `engine/cli` the only crate that touches arguments, environment, files and the terminal (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod exit;
mod output;
mod program;
mod slap;
mod sysbench;
mod workload;

use std::process::ExitCode;

use program::PROGRAM;

use dbdyno_cli::exit::USAGE;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(given) = sysbench::called(&arguments) {
        return sysbench::main(&given);
    }
    if let Some((program, given)) = slap::called(&arguments) {
        return slap::main(&program, &given);
    }
    if let Some(command) = workload::called(&arguments) {
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
        "{PROGRAM}: start it as sysbench, mysqlslap or mariadb-slap, or give one of these names as the first argument; \
         or give prepare, prewarm, run, cleanup or describe, and on standard input a plan whose workload is a script in Lua"
    );
    USAGE.into()
}
