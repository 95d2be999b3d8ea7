//! Exit codes, files and environment variables for all emulated programs.

use std::process::ExitCode;

/// This program's name in messages.
pub(crate) const PROGRAM: &str = "dbdyno-compat";
/// The exit code of sysbench and mysqlslap for invalid options and failed runs.
pub(crate) const FAILED: u8 = 1;

/// Prints an error and returns the exit code.
pub(crate) fn fail(text: &str) -> ExitCode {
    eprintln!("{text}");
    FAILED.into()
}

/// Number of event loops: `requested`, or if that is 0, one per four CPUs, because the server often runs on the same
/// machine.
pub(crate) fn event_loops(requested: u32) -> u32 {
    if requested > 0 {
        return requested;
    }
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    cpus.div_ceil(4).clamp(1, 64)
}

/// Reads a file.
///
/// # Errors
/// The system's error message, as perror(3) prints it.
pub(crate) fn read_text(path: &str) -> Result<String, String> {
    let bytes = std::fs::read(path)
        .map_err(|error| error.to_string().split(" (os error").next().unwrap_or_default().to_owned())?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// An environment variable; `None` if it is unset or empty.
pub(crate) fn env_var(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
