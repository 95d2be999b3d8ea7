//! A socket for which the whole thread waits, in the kernel, instead of its task.
//!
//! A script may ask for a statement from inside a callback of Lua's own C functions (`string.gsub`), which cannot be
//! left. Then nothing else on the thread can run, the runtime included, so its notices of readiness never come.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::task::Poll;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv, send};
use std::os::fd::AsRawFd;
use tokio::io::ReadBuf;

use crate::socket::Socket;

/// A TCP or unix socket that holds the thread.
#[derive(Debug)]
pub(crate) struct Holding {
    socket: Box<Socket>,
    /// When waiting ends in an error.
    until: Option<Instant>,
}

impl Holding {
    /// Of a socket at the bottom: TCP or unix.
    pub(crate) fn new(socket: Socket, until: Option<Instant>) -> Self {
        Self { socket: Box::new(socket), until }
    }

    pub(crate) fn release(self) -> Socket {
        *self.socket
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match &*self.socket {
            Socket::Tcp(stream) => Ok(stream.as_fd()),
            Socket::Sampled(stream) => Ok(stream.as_fd()),
            Socket::Unix(stream) => Ok(stream.as_fd()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Reads what is there, or waits for the first byte.
    pub(crate) fn read(&self, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = self.retry(PollFlags::POLLIN, |descriptor| {
            recv(descriptor, buffer.initialize_unfilled(), MsgFlags::MSG_DONTWAIT)
        });
        Poll::Ready(count.map(|count| buffer.advance(count)))
    }

    /// Writes what fits, and waits until something does.
    pub(crate) fn write(&self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
        Poll::Ready(self.retry(PollFlags::POLLOUT, |descriptor| send(descriptor, bytes, flags)))
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
        ready: PollFlags,
        mut attempt: impl FnMut(i32) -> nix::Result<usize>,
    ) -> io::Result<usize> {
        let descriptor = self.descriptor()?;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::Address;
    use crate::socket::Socket;

    #[test]
    fn a_thread_is_let_go_when_nobody_answers_its_login() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // It accepts, by its kernel, and says nothing.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
            let mut socket = Socket::holding(&address, Duration::from_millis(50)).unwrap();
            let answer = socket.receive(|_| Ok::<_, std::io::Error>(Some(()))).await;
            assert_eq!(answer.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
        });
    }
}
