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

pub(super) struct ArrivalQueue {
    state: Mutex<State>,
    limit: usize,
}

struct State {
    arrivals: PoissonArrivals,
    /// Due time of the first arrival that is neither waiting nor taken.
    next: Nanos,
    /// Due times of the events that wait for a thread.
    waiting: VecDeque<Nanos>,
}

impl ArrivalQueue {
    /// Creates a queue of arrivals with exponentially distributed gaps. At most `limit` events may wait in it.
    pub(super) fn new(rate_per_s: f64, limit: usize, seed: u64) -> Self {
        let rng = Rng::new(seed, &[u64::from_be_bytes(*b"arrivals"), 0, 1]);
        let mut arrivals = PoissonArrivals::new(LoadCurve::constant(rate_per_s), 1, rng);
        let next = arrivals.next_due();
        Self { state: Mutex::new(State { arrivals, next, waiting: VecDeque::new() }), limit }
    }

    fn lock_and_enqueue(&self, now: Nanos) -> MutexGuard<'_, State> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next <= now && state.waiting.len() <= self.limit {
            let due = state.take_next();
            state.waiting.push_back(due);
        }
        state
    }

    /// Takes the next event and returns its due time; `None` if more than `limit` events wait.
    pub(super) fn take(&self, now: Nanos) -> Option<Nanos> {
        let mut state = self.lock_and_enqueue(now);
        if state.waiting.len() > self.limit {
            return None;
        }
        Some(state.waiting.pop_front().unwrap_or_else(|| state.take_next()))
    }

    /// Number of events that wait at `now`; `None` if it exceeds `limit`.
    pub(super) fn waiting_events(&self, now: Nanos) -> Option<u64> {
        let waiting = self.lock_and_enqueue(now).waiting.len();
        (waiting <= self.limit).then_some(waiting as u64)
    }
}

impl State {
    fn take_next(&mut self) -> Nanos {
        let next = self.arrivals.next_due();
        std::mem::replace(&mut self.next, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_take_arrivals_in_order() {
        let all = ArrivalQueue::new(1000.0, 100_000, 3);
        let early: Vec<_> = (0..50).map(|_| all.take(0).unwrap()).collect();
        assert!(early.is_sorted() && early[0] > 0);
        let late = ArrivalQueue::new(1000.0, 100_000, 3);
        assert_eq!(late.waiting_events(early[9]), Some(10));
        let taken: Vec<_> = (0..50).map(|_| late.take(early[9]).unwrap()).collect();
        assert_eq!(taken, early);
        assert_eq!(late.waiting_events(early[9]), Some(0));
    }

    #[test]
    fn a_queue_over_its_limit_returns_no_event() {
        let queue = ArrivalQueue::new(1e9, 10, 3);
        assert_eq!((queue.waiting_events(1_000_000_000), queue.take(1_000_000_000)), (None, None));
    }
}
