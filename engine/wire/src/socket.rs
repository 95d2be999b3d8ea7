//! The one thin socket layer: TCP and unix sockets of tokio behind two operations, encrypted or compressed on demand.
//!
//! Reads go through one scratch buffer per thread. A connection that waits for its answer owns no buffer, and a
//! large scratch lets one system call fetch a whole result; after a short read tokio knows that the socket is
//! empty and asks the kernel no second time.

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

use crate::Address;
use crate::blocking_wait::BlockingWait;
use crate::compressed;
use crate::delay::Sampled;

/// Bytes one read can fetch. A result of 100 rows of the OLTP family has 12 KiB.
const SCRATCH_BYTES: usize = 64 * 1024;

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; SCRATCH_BYTES].into());
}

/// A connected socket.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    /// Some of its reads tell how long a reply has lain there.
    Sampled(Sampled),
    Unix(UnixStream),
    /// Encrypted, over one of the above.
    Tls(Box<TlsStream<Socket>>),
    /// Compressed, over one of the above.
    Compressed(Box<compressed::Stream<Socket>>),
    /// One of the first three for which the thread waits; nothing while it is being exchanged.
    Holding(Option<Holding>),
}

/// A TCP or unix socket that holds the thread.
#[derive(Debug)]
pub(crate) struct Holding {
    socket: Box<Socket>,
    wait: BlockingWait,
}

impl Holding {
    /// Of a socket at the bottom: TCP or unix. Waiting ends in an error at `until`.
    fn new(socket: Socket, until: Option<Instant>) -> Self {
        Self { socket: Box::new(socket), wait: BlockingWait { until } }
    }

    fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match &*self.socket {
            Socket::Tcp(stream) => Ok(stream.as_fd()),
            Socket::Sampled(stream) => Ok(stream.as_fd()),
            Socket::Unix(stream) => Ok(stream.as_fd()),
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

/// The first of the host's addresses that answers until then.
fn connect_at_once(host: &str, port: u16, until: Instant) -> io::Result<std::net::TcpStream> {
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in (host, port).to_socket_addrs()? {
        // Zero is no limit that the system takes.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match std::net::TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

impl Socket {
    pub(crate) async fn tcp(host: &str, port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        Ok(Socket::Tcp(stream))
    }

    /// Has the delay of its replies taken, where it can be.
    pub(crate) fn sampled(self) -> io::Result<Self> {
        match self {
            Socket::Tcp(stream) => Sampled::new(stream).map(Socket::Sampled),
            other => Ok(other),
        }
    }

    pub(crate) async fn unix(path: &Path) -> io::Result<Self> {
        Ok(Socket::Unix(UnixStream::connect(path).await?))
    }

    /// Whether the other end is on this machine for certain.
    pub(crate) fn is_local(&self) -> bool {
        let peer = match self {
            Socket::Tcp(stream) => stream.peer_addr(),
            Socket::Sampled(stream) => stream.peer_addr(),
            Socket::Unix(_) => return true,
            Socket::Holding(Some(held)) => return held.socket.is_local(),
            Socket::Tls(_) | Socket::Compressed(_) | Socket::Holding(None) => return false,
        };
        peer.is_ok_and(|peer| peer.ip().to_canonical().is_loopback())
    }

    /// Opens a socket for which the thread waits, from the first packet on. Must be called inside a runtime.
    pub(crate) fn holding(address: &Address, limit: Duration) -> io::Result<Self> {
        let until = Instant::now() + limit;
        let socket = match address {
            Address::Tcp(host, port) => {
                let stream = connect_at_once(host, *port, until)?;
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
        Ok(Socket::Holding(Some(Holding::new(socket, Some(until)))))
    }

    /// From here on the thread waits for its bytes, or the task again.
    pub(crate) fn hold_thread(&mut self, hold: bool) {
        match self {
            Socket::Tls(stream) => stream.get_mut().0.hold_thread(hold),
            Socket::Compressed(stream) => stream.get_mut().hold_thread(hold),
            Socket::Holding(held) if !hold => {
                if let Some(held) = held.take() {
                    *self = *held.socket;
                }
            }
            Socket::Holding(_) => {}
            Socket::Tcp(_) | Socket::Sampled(_) | Socket::Unix(_) if hold => {
                let socket = std::mem::replace(self, Socket::Holding(None));
                *self = Socket::Holding(Some(Holding::new(socket, None)));
            }
            Socket::Tcp(_) | Socket::Sampled(_) | Socket::Unix(_) => {}
        }
    }

    /// Says that the bytes sent next belong to the exchange under way, and begin none.
    pub(crate) fn go_on(&mut self) {
        if let Socket::Compressed(stream) = self {
            stream.go_on();
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

    /// Feeds what arrives to `consume` until it returns a value. The end of the stream is an error.
    pub(crate) async fn receive<T, E: From<io::Error>>(
        &mut self,
        mut consume: impl FnMut(&[u8]) -> Result<Option<T>, E>,
    ) -> Result<T, E> {
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
            Socket::Sampled(stream) => stream.poll_read(context, buffer),
            Socket::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Compressed(stream) => Pin::new(stream).poll_read(context, buffer),
            Socket::Holding(Some(held)) => held.wait.read(held.descriptor()?, buffer),
            Socket::Holding(None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Sampled(stream) => stream.poll_write(context, bytes),
            Socket::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Compressed(stream) => Pin::new(stream).poll_write(context, bytes),
            Socket::Holding(Some(held)) => held.wait.write(held.descriptor()?, bytes),
            Socket::Holding(None) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(_) | Socket::Sampled(_) | Socket::Unix(_) => Poll::Ready(Ok(())), // The kernel has it all.
            Socket::Holding(_) => Poll::Ready(Ok(())),
            Socket::Tls(stream) => Pin::new(stream).poll_flush(context),
            Socket::Compressed(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Sampled(stream) => stream.poll_shutdown(context),
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Compressed(stream) => Pin::new(stream).poll_shutdown(context),
            Socket::Holding(_) => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
