//! How a run ends, as all workers of an engine have to agree on it.
//!
//! ```text
//!                     a limit of time or events is reached        the last user has left
//!   events begin ─────────────┬──────── no event begins ─────────────────┬──── over
//!                             └─ over, by the time limit                 └ or earlier, when they are given up
//! ```
//! A run of so many events ends with the last of them. One that is over by its time ends at that instant, unless the
//! events under way are to be counted too ([`LastEvents`]).
//!
//! Nothing here is touched on the hot path unless the plan has a limit of events; then one counter is.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_load::timeline::LastEvents;
use dbdyno_schema::plan::Phases;
use dbdyno_schema::record::EndReason;

/// How long users may take to say goodbye that have nothing else to do.
const CLOSING: Duration = Duration::from_secs(1);

/// What all workers of an engine share of the end of the run.
#[derive(Debug)]
pub(crate) struct Finish {
    /// The instant at which every worker stops; `Nanos::MAX` while none is known. No worker has closed a span after it.
    stop_at: AtomicU64,
    /// Most events that begin in the measurement.
    events: Option<u64>,
    begun: AtomicU64,
    /// All events have begun.
    full: AtomicBool,
    /// First instant at which no event begins any more, where those under way are counted.
    limit: Nanos,
    /// Whether events under way at the time limit are waited for and counted.
    counted: bool,
    edge: Mutex<Edge>,
}

/// The end, while it is not known.
#[derive(Debug)]
struct Edge {
    /// Users over all workers that have not left.
    users: u32,
    /// Up to where some worker may have closed spans already.
    closed_to: Nanos,
}

impl Finish {
    /// For `users` over all workers of this engine.
    pub(crate) fn new(phases: &Phases, last_events: LastEvents, users: u32) -> Self {
        let counted = last_events == LastEvents::Counted;
        Self {
            stop_at: AtomicU64::new(Nanos::MAX),
            events: phases.events,
            begun: AtomicU64::new(0),
            full: AtomicBool::new(false),
            limit: if counted { phases.limit_us().saturating_mul(1000) } else { Nanos::MAX },
            counted,
            edge: Mutex::new(Edge { users, closed_to: 0 }),
        }
    }

    /// First instant at which no event begins any more, though the run may go on.
    pub(crate) fn limit(&self) -> Nanos {
        self.limit
    }

    /// Whether the number of events is limited.
    pub(crate) fn counts_events(&self) -> bool {
        self.events.is_some()
    }

    /// Whether one more event may begin; it then has to.
    pub(crate) fn admit(&self) -> bool {
        // Once full it is asked at most once more by each user, so the counter cannot overflow.
        self.events.is_none_or(|most| self.begun.fetch_add(1, Ordering::Relaxed) < most)
    }

    /// Declares that no event begins any more. Returns whether nobody has before.
    pub(crate) fn set_full(&self) -> bool {
        !self.full.swap(true, Ordering::AcqRel)
    }

    /// Whether all events have begun.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Whether the events under way at the time limit are counted.
    pub(crate) fn counts_last_events(&self) -> bool {
        self.counted
    }

    /// When every worker stops; `Nanos::MAX` while that is not known.
    pub(crate) fn stop_at(&self) -> Nanos {
        self.stop_at.load(Ordering::Acquire)
    }

    /// Stops every worker at `at`, which lies so far ahead that none has passed it.
    pub(crate) fn stop(&self, at: Nanos) {
        self.stop_at.fetch_min(at, Ordering::AcqRel);
    }

    /// A worker is about to close its spans up to `now`. Returns when every worker stops, as in [`Finish::stop_at`].
    pub(crate) fn closing(&self, now: Nanos) -> Nanos {
        let mut edge = self.edge();
        let stop_at = self.stop_at();
        if stop_at == Nanos::MAX {
            edge.closed_to = edge.closed_to.max(now);
        }
        stop_at
    }

    /// A user has left at `at`, after its last event. Returns whether the run ends with it.
    pub(crate) fn leave(&self, at: Nanos) -> bool {
        let mut edge = self.edge();
        edge.users = edge.users.saturating_sub(1);
        let last = edge.users == 0;
        if last {
            // At least a microsecond after whatever is closed, so that the last span is none of length 0.
            self.stop(at.max(edge.closed_to + 1000));
        }
        last
    }

    /// Users that have not left.
    pub(crate) fn users(&self) -> u32 {
        self.edge().users
    }

    /// How long to wait for the users once the run is over.
    pub(crate) fn drain(&self, drain_us: u64) -> Duration {
        if self.edge().users == 0 {
            CLOSING
        } else if self.counted {
            Duration::ZERO // Given up.
        } else {
            Duration::from_micros(drain_us)
        }
    }

    /// Why a run ended that nobody has stopped.
    pub(crate) fn reason(&self) -> EndReason {
        if self.counted && self.edge().users > 0 {
            EndReason::ForcedShutdown
        } else if self.is_full() {
            EndReason::EventLimit
        } else {
            EndReason::TimeLimit
        }
    }

    fn edge(&self) -> std::sync::MutexGuard<'_, Edge> {
        self.edge.lock().expect("nobody panics with it")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(last_events: LastEvents, events: Option<u64>, users: u32) -> Finish {
        Finish::new(&Phases { warmup_us: 1, measure_us: 9, events, drain_us: 0 }, last_events, users)
    }

    #[test]
    fn as_many_events_begin_as_were_planned() {
        let finish = finish(LastEvents::Unfinished, Some(3), 2);
        assert_eq!([(); 5].map(|()| finish.admit()), [true, true, true, false, false]);
        assert!(finish.set_full() && !finish.set_full());
        assert_eq!(finish.reason(), EndReason::EventLimit);
    }

    #[test]
    fn the_run_ends_with_the_last_user_and_after_every_closed_span() {
        let finish = finish(LastEvents::Counted, None, 2);
        assert_eq!((finish.limit(), finish.closing(12_000)), (10_000, Nanos::MAX));
        assert!(!finish.leave(12_500));
        assert_eq!(finish.reason(), EndReason::ForcedShutdown);
        assert!(finish.leave(11_000));
        assert_eq!((finish.stop_at(), finish.closing(99_000)), (13_000, 13_000));
        assert_eq!(finish.reason(), EndReason::TimeLimit);
    }

    #[test]
    fn users_with_no_more_to_do_end_the_run_before_its_time() {
        let finish = finish(LastEvents::Unfinished, None, 2);
        assert!(!finish.leave(5_000));
        assert_eq!((finish.stop_at(), finish.limit()), (Nanos::MAX, Nanos::MAX));
        assert!(finish.leave(6_000));
        assert_eq!((finish.stop_at(), finish.reason()), (6_000, EndReason::TimeLimit));
    }

    #[test]
    fn the_first_of_two_stops_counts() {
        let finish = finish(LastEvents::Unfinished, None, 1);
        finish.stop(70);
        finish.stop(90);
        assert_eq!((finish.stop_at(), finish.reason()), (70, EndReason::TimeLimit));
    }
}
