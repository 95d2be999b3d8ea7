//! Standard output for a single writer.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Reserves standard output for the caller: returns it, and redirects all other writers (the log, scripts, and programs
/// that they start) to standard error.
pub(crate) fn take() -> io::Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(File::from(output))
}
