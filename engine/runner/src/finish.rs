//! The end of a run, shared by all workers of an engine.
//!
//! ```text
//!                     a limit of time or events is reached        the last user has left
//!   events begin ─────────────┬──────── no event begins ─────────────────┬──── over
//!                             └─ over, by the time limit                 └ or earlier, without late users
//! ```
//! A run with an event limit ends with the last event. A run with a time limit ends at that instant, unless the events in
//! progress count too ([`MeasurementEnd`]).
//!
//! The hot path does not use this module, except for one counter if the plan limits the number of events.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_load::timeline::MeasurementEnd;
use dbdyno_schema::plan::Phases;
use dbdyno_schema::record::EndReason;

/// How long users may take to close their connections after they have left.
const CLOSING: Duration = Duration::from_secs(1);

/// The end of the run, shared by all workers of an engine.
#[derive(Debug)]
pub(crate) struct Finish {
    /// The instant at which every worker stops; `Nanos::MAX` until it is known. No worker has closed a span that ends
    /// later.
    stop_at: AtomicU64,
    /// Maximum number of events that may begin in the measurement.
    events: Option<u64>,
    /// Number of events that have begun in the measurement.
    begun: AtomicU64,
    /// Whether all the events that the limit allows have begun.
    full: AtomicBool,
    /// The time limit after which no event begins, if events in progress at the limit count; otherwise `Nanos::MAX`.
    limit: Nanos,
    /// Whether events in progress at the time limit count.
    counted: bool,
    open_end: Mutex<OpenEnd>,
}

/// The state that determines the end of the run while it is not known.
#[derive(Debug)]
struct OpenEnd {
    /// Number of users of all workers that have not left.
    users: u32,
    /// No worker has closed a span that ends after this instant.
    closed_to: Nanos,
}

impl Finish {
    /// The end of a run with `users` on all workers of this engine.
    pub(crate) fn new(phases: &Phases, measurement_end: MeasurementEnd, users: u32) -> Self {
        let counted = measurement_end == MeasurementEnd::AfterLastEvent;
        Self {
            stop_at: AtomicU64::new(Nanos::MAX),
            events: phases.events,
            begun: AtomicU64::new(0),
            full: AtomicBool::new(false),
            limit: if counted { phases.limit_us().saturating_mul(1000) } else { Nanos::MAX },
            counted,
            open_end: Mutex::new(OpenEnd { users, closed_to: 0 }),
        }
    }

    /// The instant after which no event begins, although the run may continue.
    pub(crate) fn limit(&self) -> Nanos {
        self.limit
    }

    pub(crate) fn counts_events(&self) -> bool {
        self.events.is_some()
    }

    /// Whether one more event may begin. If so, the caller must begin one.
    pub(crate) fn admit(&self) -> bool {
        // After the limit is reached, each user calls this at most once more, so the counter cannot overflow.
        self.events.is_none_or(|most| self.begun.fetch_add(1, Ordering::Relaxed) < most)
    }

    /// Prevents new events from starting. Returns whether this is the first call.
    pub(crate) fn set_full(&self) -> bool {
        !self.full.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Whether events in progress at the time limit count.
    pub(crate) fn counts_last_events(&self) -> bool {
        self.counted
    }

    /// The instant at which every worker stops; `Nanos::MAX` until it is known.
    pub(crate) fn stop_at(&self) -> Nanos {
        self.stop_at.load(Ordering::Acquire)
    }

    /// Stops every worker at `at`, which must be so far in the future that no worker has passed it.
    pub(crate) fn stop(&self, at: Nanos) {
        self.stop_at.fetch_min(at, Ordering::AcqRel);
    }

    /// Called before a worker closes its spans up to `now`. Returns the same instant as [`Finish::stop_at`].
    pub(crate) fn closing(&self, now: Nanos) -> Nanos {
        let mut open_end = self.open_end();
        let stop_at = self.stop_at();
        if stop_at == Nanos::MAX {
            open_end.closed_to = open_end.closed_to.max(now);
        }
        stop_at
    }

    /// Called when a user leaves at `at`, after its last event. Returns whether it was the last user, so that the run
    /// ends.
    pub(crate) fn leave(&self, at: Nanos) -> bool {
        let mut open_end = self.open_end();
        open_end.users = open_end.users.saturating_sub(1);
        let last = open_end.users == 0;
        if last {
            // Later than every closed span, so that the last span is not empty.
            self.stop(at.max(open_end.closed_to + 1000));
        }
        last
    }

    /// Number of users that have not left.
    pub(crate) fn users(&self) -> u32 {
        self.open_end().users
    }

    /// How long a worker waits for its users after the end of the run.
    pub(crate) fn drain(&self, drain_us: u64) -> Duration {
        if self.open_end().users == 0 {
            CLOSING
        } else if self.counted {
            Duration::ZERO // The coordinator does not wait for them either.
        } else {
            Duration::from_micros(drain_us)
        }
    }

    /// The reason for the end of a run that was not stopped early.
    pub(crate) fn reason(&self) -> EndReason {
        if self.counted && self.open_end().users > 0 {
            EndReason::ForcedShutdown
        } else if self.is_full() {
            EndReason::EventLimit
        } else {
            EndReason::TimeLimit
        }
    }

    fn open_end(&self) -> std::sync::MutexGuard<'_, OpenEnd> {
        self.open_end.lock().expect("no holder panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(measurement_end: MeasurementEnd, events: Option<u64>, users: u32) -> Finish {
        Finish::new(&Phases { warmup_us: 1, measure_us: 9, events, drain_us: 0 }, measurement_end, users)
    }

    #[test]
    fn as_many_events_begin_as_were_planned() {
        let finish = finish(MeasurementEnd::AtTimeLimit, Some(3), 2);
        assert_eq!([(); 5].map(|()| finish.admit()), [true, true, true, false, false]);
        assert!(finish.set_full() && !finish.set_full());
        assert_eq!(finish.reason(), EndReason::EventLimit);
    }

    #[test]
    fn the_run_ends_with_the_last_user_and_after_every_closed_span() {
        let finish = finish(MeasurementEnd::AfterLastEvent, None, 2);
        assert_eq!((finish.limit(), finish.closing(12_000)), (10_000, Nanos::MAX));
        assert!(!finish.leave(12_500));
        assert_eq!(finish.reason(), EndReason::ForcedShutdown);
        assert!(finish.leave(11_000));
        assert_eq!((finish.stop_at(), finish.closing(99_000)), (13_000, 13_000));
        assert_eq!(finish.reason(), EndReason::TimeLimit);
    }

    #[test]
    fn users_with_no_more_to_do_end_the_run_before_its_time() {
        let finish = finish(MeasurementEnd::AtTimeLimit, None, 2);
        assert!(!finish.leave(5_000));
        assert_eq!((finish.stop_at(), finish.limit()), (Nanos::MAX, Nanos::MAX));
        assert!(finish.leave(6_000));
        assert_eq!((finish.stop_at(), finish.reason()), (6_000, EndReason::TimeLimit));
    }

    #[test]
    fn the_first_of_two_stops_counts() {
        let finish = finish(MeasurementEnd::AtTimeLimit, None, 1);
        finish.stop(70);
        finish.stop(90);
        assert_eq!((finish.stop_at(), finish.reason()), (70, EndReason::TimeLimit));
    }
}
