//! Sockets that block the thread in poll(2) instead of suspending the task.
//!
//! A script may execute a statement in a callback of one of Lua's C functions (`string.gsub`), which cannot yield.
//! Nothing else on the thread can then run; the runtime cannot run either, so it never reports that a socket is ready.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::task::Poll;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use tokio::io::ReadBuf;

/// A socket whose reads and writes block the thread.
pub(crate) struct BlockingSocket<S> {
    pub(crate) socket: S,
    /// The time at which waiting fails; `None` for no limit.
    pub(crate) deadline: Option<Instant>,
}

impl<S> BlockingSocket<S> {
    /// Reads the bytes that have arrived. If there are none, waits for the first byte.
    pub(crate) fn read(&self, descriptor: BorrowedFd<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = self.retry(descriptor, PollFlags::POLLIN, |descriptor| {
            recv(descriptor, buffer.initialize_unfilled(), MsgFlags::MSG_DONTWAIT)
        });
        Poll::Ready(count.map(|count| buffer.advance(count)))
    }

    /// Writes as many bytes as fit, at least one: waits if the socket has no room.
    pub(crate) fn write(&self, descriptor: BorrowedFd<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        Poll::Ready(self.retry(descriptor, PollFlags::POLLOUT, |descriptor| send(descriptor, bytes, flags)))
    }

    fn time_left(&self) -> io::Result<PollTimeout> {
        let Some(deadline) = self.deadline else { return Ok(PollTimeout::NONE) };
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // Rounded up to the next millisecond, because a timeout of zero would not wait.
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
                Err(Errno::EAGAIN) => match poll(&mut [PollFd::new(descriptor, ready)], self.time_left()?) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(error) => return Err(error.into()),
                },
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
