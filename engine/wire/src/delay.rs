//! The delay inside the client: from a reply's arrival at this machine to the moment this process reads it.
//!
//! The kernel records when bytes arrive (SO_TIMESTAMPNS, see socket(7)) and returns the arrival time of the last byte;
//! comparing it with the system clock immediately after the read gives the delay. The latency of every statement
//! includes this delay, which the server does not cause. The client samples every eighth read of some connections, so
//! the cost is negligible. Unix sockets have no timestamps.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::net::TcpStream;

/// On a sampled connection, one in this many reads records its delay.
const SAMPLE_EVERY: u32 = 8;
/// Maximum number of delays that a thread keeps until [`take_delays`]. Later delays replace the oldest.
const DELAYS_MAX: usize = 16_384;

thread_local! {
    static DELAYS: RefCell<VecDeque<u64>> = const { RefCell::new(VecDeque::new()) };
}

fn add_delay(delays: &mut VecDeque<u64>, delay_ns: u64) {
    if delays.len() == DELAYS_MAX {
        delays.pop_front();
    }
    delays.push_back(delay_ns);
}

/// Takes the delays on this thread since the last call, in nanoseconds: at most the latest [`DELAYS_MAX`].
pub fn take_delays() -> VecDeque<u64> {
    DELAYS.take()
}

/// A TCP connection with timestamps on its replies.
pub(crate) struct TimestampedStream {
    pub(crate) stream: TcpStream,
    reads: u32,
    /// Buffer for the control message with one timestamp.
    control: Vec<u8>,
}

impl TimestampedStream {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        setsockopt(&stream, ReceiveTimestampns, &true)?;
        Ok(Self { stream, reads: 0, control: nix::cmsg_space!(TimeSpec) })
    }

    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.reads + 1 < SAMPLE_EVERY {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
            self.reads += 1;
            return Poll::Ready(Ok(()));
        }
        ready!(self.poll_read_with_timestamp(context, buffer))?;
        self.reads = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_read_with_timestamp(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, control, .. } = self;
        loop {
            ready!(stream.poll_read_ready(context))?;
            let room = buffer.initialize_unfilled();
            let mut received = None;
            let tried = stream.try_io(Interest::READABLE, || {
                let (count, arrived) = receive(stream, room, control)?;
                received = Some((count, arrived));
                // After a short read, the socket is empty. This error clears tokio's readiness without another system
                // call.
                if count < room.len() { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
            });
            match (received, tried) {
                (Some((count, arrived)), _) => {
                    record_delay(arrived);
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                (None, Err(error)) if error.kind() != io::ErrorKind::WouldBlock => {
                    return Poll::Ready(Err(error));
                }
                (None, _) => {}
            }
        }
    }
}

/// Reads the bytes that have arrived. Returns their number, and the arrival time of the last byte by the system clock.
fn receive(stream: &TcpStream, room: &mut [u8], control: &mut [u8]) -> io::Result<(usize, Option<Duration>)> {
    let mut parts = [IoSliceMut::new(room)];
    let message = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty())?;
    let arrived = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(time) => Some(Duration::from(time)),
        _ => None,
    });
    Ok((message.bytes, arrived))
}

/// Records the delay since `arrived`, unless the system clock was set back meanwhile.
fn record_delay(arrived: Option<Duration>) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    if let (Some(now), Some(arrived)) = (now, arrived)
        && let Some(delay) = now.checked_sub(arrived)
    {
        DELAYS.with_borrow_mut(|delays| add_delay(delays, delay.as_nanos() as u64));
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn the_latest_delays_are_kept() {
        let mut delays = VecDeque::new();
        (0..DELAYS_MAX).for_each(|_| add_delay(&mut delays, 1_000_000));
        (0..DELAYS_MAX).for_each(|_| add_delay(&mut delays, 5));
        assert_eq!(delays, vec![5; DELAYS_MAX]);
    }

    /// Sends replies, reads each after `wait`, and returns the recorded delays.
    async fn measure_delays(wait: Duration) -> VecDeque<u64> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        let mut sampled = TimestampedStream::new(stream).unwrap();
        let mut room = [0; 64];
        for turn in 1..=2 * SAMPLE_EVERY as u8 {
            server.writable().await.unwrap();
            assert_eq!(server.try_write(&[turn, 1, 2]).unwrap(), 3);
            std::thread::sleep(if turn % SAMPLE_EVERY as u8 == 0 { wait } else { Duration::ZERO });
            let mut buffer = ReadBuf::new(&mut room);
            poll_fn(|context| sampled.poll_read(context, &mut buffer)).await.unwrap();
            assert_eq!(buffer.filled(), [turn, 1, 2]);
        }
        take_delays()
    }

    #[tokio::test]
    async fn the_delay_is_the_time_from_arrival_to_reading() {
        // The kernel starts to add timestamps a moment after the first socket requests them.
        let mut delays = VecDeque::new();
        for _ in 0..20 {
            delays = measure_delays(Duration::from_millis(30)).await;
            if delays.len() == 2 {
                break;
            }
        }
        // A busy machine may read late, but never early.
        assert_eq!(delays.len(), 2, "one read in {SAMPLE_EVERY} is timed");
        assert!(delays.iter().all(|delay_ns| (29_000_000..5_000_000_000).contains(delay_ns)), "{delays:?}");
    }

    #[tokio::test]
    async fn the_end_of_the_stream_is_an_empty_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        drop(listener.accept().await.unwrap());
        let mut sampled =
            TimestampedStream { reads: SAMPLE_EVERY - 1, ..TimestampedStream::new(stream).unwrap() };
        let mut room = [0; 8];
        let mut buffer = ReadBuf::new(&mut room);
        poll_fn(|context| sampled.poll_read(context, &mut buffer)).await.unwrap();
        assert!(buffer.filled().is_empty());
    }
}
