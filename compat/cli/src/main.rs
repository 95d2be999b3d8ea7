//! `dbdyno-compat`: other tools' programs, played by the engine. The name under which it is started, or its first argument,
//! says which: sysbench, mysqlslap or mariadb-slap.

// With `engine/cli` the only crate that touches arguments, environment, files and the terminal (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod exit;
mod slap;
mod sysbench;

use std::process::ExitCode;

use dbdyno_cli::exit::USAGE;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(given) = sysbench::called(&arguments) {
        return sysbench::main(&given);
    }
    if let Some((program, given)) = slap::called(&arguments) {
        return slap::main(&program, &given);
    }
    eprintln!(
        "dbdyno-compat: start it as sysbench, mysqlslap or mariadb-slap, or give one of these names as the first argument"
    );
    USAGE.into()
}
