//! Waiting for a socket with the whole thread, in the kernel, instead of its task.
//!
//! A script may ask for a statement from inside a callback of Lua's own C functions (`string.gsub`), which cannot be
//! left. Then nothing else on the thread can run, the runtime included, so its notices of readiness never come.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::task::Poll;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use tokio::io::ReadBuf;

/// Reads and writes that hold the thread.
#[derive(Debug)]
pub(crate) struct BlockingWait {
    /// When waiting ends in an error.
    pub(crate) until: Option<Instant>,
}

impl BlockingWait {
    /// Reads what is there, or waits for the first byte.
    pub(crate) fn read(&self, socket: BorrowedFd<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = self.retry(socket, PollFlags::POLLIN, |descriptor| {
            recv(descriptor, buffer.initialize_unfilled(), MsgFlags::MSG_DONTWAIT)
        });
        Poll::Ready(count.map(|count| buffer.advance(count)))
    }

    /// Writes what fits, and waits until something does.
    pub(crate) fn write(&self, socket: BorrowedFd<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        Poll::Ready(self.retry(socket, PollFlags::POLLOUT, |descriptor| send(descriptor, bytes, flags)))
    }

    /// How long to wait from now on.
    fn patience(&self) -> io::Result<PollTimeout> {
        let Some(until) = self.until else { return Ok(PollTimeout::NONE) };
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // A part of a millisecond is rounded up: zero would not wait at all.
        Ok(PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX))
    }

    fn retry(
        &self,
        descriptor: BorrowedFd<'_>,
        ready: PollFlags,
        mut attempt: impl FnMut(i32) -> nix::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            match attempt(descriptor.as_raw_fd()) {
                Ok(count) => return Ok(count),
                Err(Errno::EAGAIN) => match poll(&mut [PollFd::new(descriptor, ready)], self.patience()?) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
