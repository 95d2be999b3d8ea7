//! Users that wait for an instant: during think time, or until the load shape uses their connection.
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
        while self.first_instant() <= now
            && let Some((_, waker)) = self.by_time.pop_first()
        {
            waker.wake();
        }
    }
}
