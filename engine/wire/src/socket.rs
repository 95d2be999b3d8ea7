//! The socket layer: tokio's TCP and unix sockets behind two operations, optionally encrypted or compressed.
//!
//! Reads use one buffer per thread. A connection that waits for its answer therefore needs no buffer, and with a large
//! buffer one system call can fetch a complete result. After a short read, tokio knows that the socket is empty and
//! does not call the kernel again.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::ToSocketAddrs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use crate::address::Address;
use crate::blocking::BlockingSocket;
use crate::compressed;
use crate::delay::TimestampedStream;
use crate::error::WireError;

/// Maximum bytes of one read. A result of 100 rows of the OLTP family has 12 KiB.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// A connected socket.
pub(crate) enum Socket {
    Tcp(TcpStream),
    /// TCP with kernel timestamps, which measure the delay inside the client.
    Timestamped(TimestampedStream),
    Unix(UnixStream),
    /// TLS over a TCP or unix socket.
    Tls(Box<TlsStream<Socket>>),
    /// Compressed data over any other socket.
    Compressed(Box<compressed::Stream<Socket>>),
    /// A TCP or unix socket whose calls block the thread; `None` only inside [`Socket::set_blocking`].
    Blocking(Option<BlockingSocket<Box<Socket>>>),
}

/// Connects to the first of the host's addresses that answers before `deadline`.
fn connect_tcp_blocking(host: &str, port: u16, deadline: Instant) -> io::Result<std::net::TcpStream> {
    let mut last_error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        // connect_timeout rejects zero.
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match std::net::TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last_error = error,
        }
    }
    Err(last_error)
}

impl Socket {
    pub(crate) async fn connect_tcp(host: &str, port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    /// Enables kernel timestamps of replies; unix sockets have none.
    pub(crate) fn with_timestamps(self) -> io::Result<Self> {
        match self {
            Socket::Tcp(stream) => TimestampedStream::new(stream).map(Socket::Timestamped),
            other => Ok(other),
        }
    }

    pub(crate) async fn connect_unix(path: &Path) -> io::Result<Self> {
        Ok(Socket::Unix(UnixStream::connect(path).await?))
    }

    /// Whether the server certainly runs on this machine.
    pub(crate) fn is_local(&self) -> bool {
        let peer = match self {
            Socket::Tcp(stream) => stream.peer_addr(),
            Socket::Timestamped(timed) => timed.stream.peer_addr(),
            Socket::Unix(_) => return true,
            Socket::Blocking(Some(socket)) => return socket.socket.is_local(),
            Socket::Tls(_) | Socket::Compressed(_) | Socket::Blocking(None) => return false,
        };
        peer.is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
    }

    /// Opens a socket that blocks the thread from the first packet on. Must be called in a tokio runtime.
    pub(crate) fn connect_blocking(address: &Address, limit: Duration) -> io::Result<Self> {
        let deadline = Instant::now() + limit;
        let socket = match address {
            Address::Tcp(host, port) => {
                let stream = connect_tcp_blocking(host, *port, deadline)?;
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Socket::Tcp(TcpStream::from_std(stream)?)
            }
            Address::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_nonblocking(true)?;
                Socket::Unix(UnixStream::from_std(stream)?)
            }
        };
        Ok(Socket::Blocking(Some(BlockingSocket { socket: Box::new(socket), deadline: Some(deadline) })))
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Socket::Tcp(stream) => Ok(stream.as_fd()),
            Socket::Timestamped(timed) => Ok(timed.stream.as_fd()),
            Socket::Unix(stream) => Ok(stream.as_fd()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Selects whether reads and writes block the thread instead of suspending the task.
    pub(crate) fn set_blocking(&mut self, blocking: bool) {
        match self {
            Socket::Tls(stream) => stream.get_mut().0.set_blocking(blocking),
            Socket::Compressed(stream) => stream.get_mut().set_blocking(blocking),
            Socket::Blocking(socket) if !blocking => {
                if let Some(socket) = socket.take() {
                    *self = *socket.socket;
                }
            }
            Socket::Tcp(_) | Socket::Timestamped(_) | Socket::Unix(_) if blocking => {
                let socket = Box::new(std::mem::replace(self, Socket::Blocking(None)));
                *self = Socket::Blocking(Some(BlockingSocket { socket, deadline: None }));
            }
            Socket::Blocking(_) | Socket::Tcp(_) | Socket::Timestamped(_) | Socket::Unix(_) => {}
        }
    }

    /// Makes the next bytes part of the current exchange, so that compressed frames continue its numbering.
    pub(crate) fn continue_exchange(&mut self) {
        if let Socket::Compressed(stream) = self {
            stream.continue_exchange();
        }
    }

    /// Sends all of `bytes`.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut sent = 0;
        poll_fn(|context| {
            while sent < bytes.len() {
                match ready!(Pin::new(&mut *self).poll_write(context, &bytes[sent..])) {
                    Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Ok(count) => sent += count,
                    Err(error) => return Poll::Ready(Err(error)),
                }
            }
            Pin::new(&mut *self).poll_flush(context)
        })
        .await
    }

    /// Passes arriving bytes to `consume` until it returns a value. The end of the stream is an error.
    pub(crate) async fn receive<T>(
        &mut self,
        mut consume: impl FnMut(&[u8]) -> Result<Option<T>, WireError>,
    ) -> Result<T, WireError> {
        poll_fn(|context| {
            SCRATCH.with_borrow_mut(|scratch| {
                loop {
                    let mut buffer = ReadBuf::new(scratch);
                    if let Err(error) = ready!(Pin::new(&mut *self).poll_read(context, &mut buffer)) {
                        return Poll::Ready(Err(error.into()));
                    }
                    if buffer.filled().is_empty() {
                        return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
                    }
                    if let Some(result) = consume(buffer.filled()).transpose() {
                        return Poll::Ready(result);
                    }
                }
            })
        })
        .await
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Timestamped(stream) => stream.poll_read(context, buffer),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Compressed(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Blocking(Some(socket)) => socket.read(socket.socket.descriptor()?, buffer),
            Socket::Blocking(None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Timestamped(timed) => Pin::new(&mut timed.stream).poll_write(context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Compressed(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Blocking(Some(socket)) => socket.write(socket.socket.descriptor()?, bytes),
            Socket::Blocking(None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            // These sockets have no output buffer.
            Socket::Tcp(_) | Socket::Timestamped(_) | Socket::Unix(_) | Socket::Blocking(_) => {
                Poll::Ready(Ok(()))
            }
            Socket::Tls(stream) => Pin::new(stream).poll_flush(context),
            Socket::Compressed(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Timestamped(timed) => Pin::new(&mut timed.stream).poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Compressed(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Blocking(_) => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocking_login_without_an_answer_times_out() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // The kernel accepts the connection; nobody answers.
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let address = Address::Tcp("127.0.0.1".into(), listener.local_addr().unwrap().port());
            let mut socket = Socket::connect_blocking(&address, Duration::from_millis(50)).unwrap();
            let answer = socket.receive(|_| Ok(Some(()))).await;
            assert!(matches!(answer, Err(WireError::Lost(text)) if text.contains("timed out")));
        });
    }
}
