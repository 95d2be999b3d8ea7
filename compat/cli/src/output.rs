//! Reserves standard output for one writer.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Returns standard output, and redirects all other writers (the log, scripts, and programs that scripts start) to
/// standard error.
pub(crate) fn reserve() -> io::Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(File::from(output))
}
