//! Users that wait for an instant of their own: think time, and connections that are not among the busy ones yet.
//!
//! They are woken by the worker's one nanosecond timer, since the runtime's own has a resolution of 1 ms.

use std::collections::BTreeMap;
use std::task::Waker;

use dbdyno_load::Nanos;

/// Who is to be woken when.
#[derive(Debug, Default)]
pub(crate) struct Sleepers {
    by_time: BTreeMap<(Nanos, usize), Waker>,
}

impl Sleepers {
    /// Wakes `seat` at `at`. Another call for the same replaces the waker.
    pub(crate) fn add(&mut self, at: Nanos, seat: usize, waker: Waker) {
        self.by_time.insert((at, seat), waker);
    }

    /// When the first of them is to be woken; `Nanos::MAX` for never.
    pub(crate) fn first(&self) -> Nanos {
        self.by_time.first_key_value().map_or(Nanos::MAX, |((at, _), _)| *at)
    }

    /// Wakes all whose time has come.
    pub(crate) fn wake(&mut self, now: Nanos) {
        while self.first() <= now
            && let Some((_, waker)) = self.by_time.pop_first()
        {
            waker.wake();
        }
    }
}
