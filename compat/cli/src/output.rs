//! Standard output: reserves it for one writer, and reports when what was printed is lost.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use dbdyno_cli::exit::ABORTED;
use rustix::io::Errno;
use signal_hook::consts::SIGPIPE;

use crate::system::PROGRAM;

/// Whether standard output was closed when the process started.
static WAS_CLOSED: AtomicBool = AtomicBool::new(false);
/// Set when a write failed.
static IS_LOST: OnceLock<()> = OnceLock::new();

/// Returns standard output, and redirects all other writers (the log, scripts, and programs that scripts start) to
/// standard error.
pub(crate) fn reserve() -> io::Result<File> {
    let output = io::stdout().as_fd().try_clone_to_owned()?;
    rustix::stdio::dup2_stdout(io::stderr().as_fd())?;
    Ok(File::from(output))
}

/// Handles the result of a write to standard output. If the reader of a pipe is gone, SIGPIPE ends the process; Rust
/// ignores this signal by default. After another error the run goes on, so that it cleans up, and the process ends with
/// the code of [`exit_code`].
pub(crate) fn check(result: io::Result<()>) {
    let result = match result {
        Ok(()) if WAS_CLOSED.load(Ordering::Relaxed) => Err(Errno::BADF.into()),
        other => other,
    };
    let Err(error) = result else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        let _ = signal_hook::low_level::emulate_default_handler(SIGPIPE);
    }
    if IS_LOST.set(()).is_ok() {
        let text = format!("{PROGRAM}: standard output is incomplete: {error}; the exit code is {ABORTED}\n");
        // Unlike eprintln!, this does not panic if standard error cannot be written either.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

/// `code`, or 4 if the run succeeded but a part of its output is lost.
pub(crate) fn exit_code(code: ExitCode) -> ExitCode {
    if IS_LOST.get().is_some() && code == ExitCode::SUCCESS { ABORTED.into() } else { code }
}

/// Called by the loader before main, because Rust's runtime then opens /dev/null in place of a closed standard output.
extern "C" fn note_closed_output() {
    // SAFETY: fcntl reads the state of a descriptor that this code neither keeps nor closes.
    #[allow(unsafe_code)]
    let output = unsafe { rustix::fd::BorrowedFd::borrow_raw(1) };
    if rustix::io::fcntl_getfd(output) == Err(Errno::BADF) {
        WAS_CLOSED.store(true, Ordering::Relaxed);
    }
}

// SAFETY: the entry is a pointer to a function of the type that the loader calls, and the function needs no runtime.
#[allow(unsafe_code)]
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = note_closed_output;
