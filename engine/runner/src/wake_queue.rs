//! Users that wait for an instant: during think time, until the load shape uses their connection, or until the event that
//! they have taken is due.
//!
//! The worker's nanosecond timer wakes them, because tokio's timer has a resolution of 1 ms.

use std::collections::BTreeMap;
use std::task::Waker;

use dbdyno_load::Nanos;

/// The wakers of waiting users, by instant and user.
#[derive(Debug, Default)]
pub(crate) struct WakeQueue {
    by_time: BTreeMap<(Nanos, usize), Waker>,
}

impl WakeQueue {
    /// Wakes `user` at `at`. A second call with the same arguments replaces the waker.
    pub(crate) fn add(&mut self, at: Nanos, user: usize, waker: Waker) {
        self.by_time.insert((at, user), waker);
    }

    /// The instant of the first wake-up; `Nanos::MAX` if no user waits.
    pub(crate) fn first_instant(&self) -> Nanos {
        self.by_time.first_key_value().map_or(Nanos::MAX, |((at, _), _)| *at)
    }

    /// Wakes all users whose instant has passed.
    pub(crate) fn wake_until(&mut self, now: Nanos) {
        while self.wake_first(now).is_some() {}
    }

    /// Wakes the first user whose instant has passed; returns the instant and the user.
    pub(crate) fn wake_first(&mut self, now: Nanos) -> Option<(Nanos, usize)> {
        let first = self.by_time.first_entry().filter(|first| first.key().0 <= now)?;
        let (key, waker) = first.remove_entry();
        waker.wake();
        Some(key)
    }
}
