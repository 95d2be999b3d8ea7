//! Standard output for a single writer.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Takes standard output: from now on other writers (the log, scripts, and the programs that they start) write to standard
/// error.
pub(crate) fn take() -> io::Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(File::from(output))
}
