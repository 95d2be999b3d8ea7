//! Standard output for one writer alone.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

/// Standard output, taken from everybody else: what they write there from now on goes to standard error. That is the log, what
/// a script prints or writes, and the programs that it starts.
///
/// # Errors
/// The system's refusal.
pub(crate) fn take() -> io::Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(File::from(output))
}
