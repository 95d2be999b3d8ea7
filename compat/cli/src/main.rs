//! `dbdyno-compat`: other tools' programs on the engine: sysbench, mysqlslap or mariadb-slap, selected by its own name or by
//! the first argument. Its own commands are those of `dbdyno-engine`, for plans whose workload is a Lua script.

// With `engine/cli` the only crate that touches arguments, environment, files and the terminal (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod output;
mod slap;
mod sysbench;
mod workload;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use dbdyno_cli::exit::USAGE;

/// This program's name in messages.
const PROGRAM: &str = "dbdyno-compat";
/// The originals' exit code for invalid options and failed runs.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some((program, rest)) = emulated(&arguments) {
        return if program == dbdyno_sysbench::NAME {
            sysbench::main(&rest)
        } else {
            slap::main(&program, &rest)
        };
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
        "{PROGRAM}: start it as sysbench, mysqlslap or mariadb-slap, or with one of these names as the first argument; \
         or with prepare, prewarm, run, cleanup or describe, and a plan whose workload is a Lua script on standard input"
    );
    USAGE.into()
}

/// The program to emulate, by this process's name or by its first argument, and the arguments after that name.
fn emulated(arguments: &[OsString]) -> Option<(String, Vec<String>)> {
    let named = |argument: &OsString| {
        let name = Path::new(argument).file_name()?.to_str()?;
        [dbdyno_sysbench::NAME, "mysqlslap", "mariadb-slap"].contains(&name).then(|| name.to_owned())
    };
    let (at, program) = arguments.iter().take(2).map(named).enumerate().find(|(_, name)| name.is_some())?;
    let rest = arguments[at + 1..].iter().map(|argument| argument.to_string_lossy().into_owned());
    Some((program?, rest.collect()))
}

/// Event loops: `requested`, or one for four CPUs, because the server is often on the same machine.
fn workers(requested: u32) -> u32 {
    if requested > 0 {
        return requested;
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    cpus.div_ceil(4).clamp(1, 64)
}

/// The text of a file, or the system's message as perror(3) prints it.
fn read_text(path: &str) -> Result<String, String> {
    let bytes = std::fs::read(path)
        .map_err(|error| error.to_string().split(" (os error").next().unwrap_or_default().to_owned())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An environment variable that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
