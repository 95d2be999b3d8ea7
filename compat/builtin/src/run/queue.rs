//! The queue of events that arrive at a rate, shared by all threads.
//!
//! If no event waits, a thread takes the next arrival in advance and sleeps until it is due. The threads thus take
//! arrivals in order without a dispatcher.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbdyno_load::Nanos;
use dbdyno_load::arrivals::{Arrivals, PoissonArrivals};
use dbdyno_load::load_curve::LoadCurve;
use dbdyno_random::Rng;

pub(super) struct Queue {
    state: Mutex<State>,
    limit: usize,
}

struct State {
    arrivals: PoissonArrivals,
    /// Due time of the first arrival that no thread has taken.
    next: Nanos,
    waiting: VecDeque<Nanos>,
}

impl Queue {
    /// A queue of arrivals with exponentially distributed gaps, in which at most `limit` events may wait.
    pub(super) fn new(rate_per_s: f64, limit: usize, seed: u64) -> Self {
        let rng = Rng::new(seed, &[u64::from_be_bytes(*b"arrivals"), 0, 1]);
        let mut arrivals = PoissonArrivals::new(LoadCurve::constant(rate_per_s), 1, rng);
        let next = arrivals.next_due();
        Self { state: Mutex::new(State { arrivals, next, waiting: VecDeque::new() }), limit }
    }

    fn lock_and_advance(&self, now: Nanos) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next <= now && state.waiting.len() <= self.limit {
            let due = state.advance();
            state.waiting.push_back(due);
        }
        state
    }

    /// Takes the next event and returns its due time; `None` if more than `limit` events wait.
    pub(super) fn take(&self, now: Nanos) -> Option<Nanos> {
        let mut state = self.lock_and_advance(now);
        if state.waiting.len() > self.limit {
            return None;
        }
        Some(state.waiting.pop_front().unwrap_or_else(|| state.advance()))
    }

    /// Number of events that wait at `now`; `None` if it exceeds `limit`.
    pub(super) fn waiting(&self, now: Nanos) -> Option<u64> {
        let waiting = self.lock_and_advance(now).waiting.len();
        (waiting <= self.limit).then_some(waiting as u64)
    }
}

impl State {
    fn advance(&mut self) -> Nanos {
        let next = self.arrivals.next_due();
        std::mem::replace(&mut self.next, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_taken_in_order_early_or_late() {
        let all = Queue::new(1000.0, 100_000, 3);
        let early: Vec<_> = (0..50).map(|_| all.take(0).unwrap()).collect();
        assert!(early.is_sorted() && early[0] > 0);
        let late = Queue::new(1000.0, 100_000, 3);
        assert_eq!(late.waiting(early[9]), Some(10));
        let taken: Vec<_> = (0..50).map(|_| late.take(early[9]).unwrap()).collect();
        assert_eq!(taken, early);
        assert_eq!(late.waiting(early[9]), Some(0));
    }

    #[test]
    fn the_queue_has_a_limit() {
        let queue = Queue::new(1e9, 10, 3);
        assert_eq!((queue.waiting(1_000_000_000), queue.take(1_000_000_000)), (None, None));
    }
}
