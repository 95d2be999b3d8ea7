//! A timer of nanosecond resolution on top of timerfd.
//!
//! tokio's timer has a resolution of 1 ms: enough for time limits, too coarse for arrivals at 20,000 per second.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Instant;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
}

impl Timer {
    /// Must be called inside a runtime.
    #[allow(unsafe_code)] // For AsyncFd::register.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: the AsyncFd owns the OwnedFd, which stays open and unchanged while it lives.
        Ok(Self { fd: unsafe { AsyncFd::register(fd)? } })
    }

    /// Returns at `at` or slightly later, and immediately if it has passed.
    pub(crate) async fn sleep_until(&mut self, at: Instant) -> io::Result<()> {
        loop {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                // Yield first: otherwise a timer that is always late would never let other tasks run.
                tokio::task::yield_now().await;
                return Ok(());
            }
            let value = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &once)?;
            // Setting the timer again clears an unread expiry, so the count needs no read.
            self.fd.readable().await?.clear_ready();
        }
    }
}
