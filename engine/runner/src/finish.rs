//! The end of a run, shared by all workers of an engine.
//!
//! ```text
//!                     the time or event limit is reached        the last user has ended
//!   events begin ─────────────┬──────── no event begins ─────────────────┬──── end of the run
//!                             └─ or the run ends at the time limit       └ or it ends earlier, without late users
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

/// How long users may take to close their connections after their last event.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of the run, shared by all workers of an engine.
#[derive(Debug)]
pub(crate) struct Finish {
    /// The instant at which every worker stops; `Nanos::MAX` until it is known. No worker has closed a span that ends
    /// later.
    stop_at: AtomicU64,
    /// Maximum number of events that may begin in the measurement.
    events_max: Option<u64>,
    /// Number of events that have begun in the measurement.
    events_begun: AtomicU64,
    /// Whether all events that the limit allows have begun.
    event_limit_reached: AtomicBool,
    /// The time limit after which no event begins, if events in progress at the limit count; otherwise `Nanos::MAX`.
    time_limit: Nanos,
    /// Whether events in progress at the time limit count.
    counts_last_events: bool,
    /// Whether the server does not answer, so that waiting for users is in vain.
    skips_drain: AtomicBool,
    end_state: Mutex<EndState>,
}

/// The state that determines the end of the run while it is not known.
#[derive(Debug)]
struct EndState {
    /// Number of users of all workers that have not ended.
    users: u32,
    /// No worker has closed a span that ends after this instant.
    last_closed_at: Nanos,
}

impl Finish {
    /// Creates the end of a run that has `users` users on all workers of this engine.
    pub(crate) fn new(phases: &Phases, measurement_end: MeasurementEnd, users: u32) -> Self {
        let counts_last_events = measurement_end == MeasurementEnd::AfterLastEvent;
        Self {
            stop_at: AtomicU64::new(Nanos::MAX),
            events_max: phases.events,
            events_begun: AtomicU64::new(0),
            event_limit_reached: AtomicBool::new(false),
            time_limit: if counts_last_events { phases.limit_us().saturating_mul(1000) } else { Nanos::MAX },
            counts_last_events,
            skips_drain: AtomicBool::new(false),
            end_state: Mutex::new(EndState { users, last_closed_at: 0 }),
        }
    }

    /// The instant after which no event begins, although the run may continue.
    pub(crate) fn time_limit(&self) -> Nanos {
        self.time_limit
    }

    pub(crate) fn counts_events(&self) -> bool {
        self.events_max.is_some()
    }

    /// Whether one more event may begin. If so, the caller must begin one.
    pub(crate) fn admit_event(&self) -> bool {
        // After the limit is reached, each user calls this at most once more, so the counter cannot overflow.
        self.events_max.is_none_or(|most| self.events_begun.fetch_add(1, Ordering::Relaxed) < most)
    }

    /// Prevents new events from starting. Returns whether this is the first call.
    pub(crate) fn set_event_limit_reached(&self) -> bool {
        !self.event_limit_reached.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn is_event_limit_reached(&self) -> bool {
        self.event_limit_reached.load(Ordering::Acquire)
    }

    /// Whether events in progress at the time limit count.
    pub(crate) fn counts_last_events(&self) -> bool {
        self.counts_last_events
    }

    /// The instant at which every worker stops; `Nanos::MAX` until it is known.
    pub(crate) fn stop_at(&self) -> Nanos {
        self.stop_at.load(Ordering::Acquire)
    }

    /// Stops every worker at `at`, which must be so far in the future that no worker has passed it.
    pub(crate) fn stop(&self, at: Nanos) {
        self.stop_at.fetch_min(at, Ordering::AcqRel);
    }

    /// Called before a worker closes its spans up to `now`. Returns [`Finish::stop_at`].
    pub(crate) fn announce_closing(&self, now: Nanos) -> Nanos {
        let mut end_state = self.end_state();
        let stop_at = self.stop_at();
        if stop_at == Nanos::MAX {
            end_state.last_closed_at = end_state.last_closed_at.max(now);
        }
        stop_at
    }

    /// Called when a user ends at `at`, after its last event. Returns whether it was the last user, so that the run
    /// ends.
    pub(crate) fn end_user(&self, at: Nanos) -> bool {
        let mut end_state = self.end_state();
        end_state.users = end_state.users.saturating_sub(1);
        let last = end_state.users == 0;
        // A worker may already have closed its last span at an end that is known.
        if last && self.stop_at() == Nanos::MAX {
            // Later than every closed span, so that the last span is not empty.
            self.stop(at.max(end_state.last_closed_at + 1000));
        }
        last
    }

    /// Number of users that have not ended.
    pub(crate) fn active_users(&self) -> u32 {
        self.end_state().users
    }

    /// Makes workers not wait for their users after the end of the run.
    pub(crate) fn skip_drain(&self) {
        self.skips_drain.store(true, Ordering::Release);
    }

    /// How long a worker waits for its users after the end of the run.
    pub(crate) fn drain_time(&self, drain_us: u64) -> Duration {
        if self.end_state().users == 0 {
            CLOSE_TIMEOUT
        } else if self.counts_last_events || self.skips_drain.load(Ordering::Acquire) {
            Duration::ZERO // The coordinator does not wait for them either, or the server does not answer them.
        } else {
            Duration::from_micros(drain_us)
        }
    }

    /// The reason for the end of a run that was not stopped early.
    pub(crate) fn end_reason(&self) -> EndReason {
        if self.counts_last_events && self.end_state().users > 0 {
            EndReason::ForcedShutdown
        } else if self.is_event_limit_reached() {
            EndReason::EventLimit
        } else {
            EndReason::TimeLimit
        }
    }

    fn end_state(&self) -> std::sync::MutexGuard<'_, EndState> {
        self.end_state.lock().expect("no holder panics")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finish(measurement_end: MeasurementEnd, events: Option<u64>, users: u32) -> Finish {
        Finish::new(&Phases { warmup_us: 1, measure_us: 9, events, drain_us: 0 }, measurement_end, users)
    }

    #[test]
    fn no_more_events_begin_than_the_limit_allows() {
        let finish = finish(MeasurementEnd::AtTimeLimit, Some(3), 2);
        assert_eq!([(); 5].map(|()| finish.admit_event()), [true, true, true, false, false]);
        assert!(finish.set_event_limit_reached() && !finish.set_event_limit_reached());
        assert_eq!(finish.end_reason(), EndReason::EventLimit);
    }

    #[test]
    fn the_run_ends_with_the_last_user_and_after_every_closed_span() {
        let finish = finish(MeasurementEnd::AfterLastEvent, None, 2);
        assert_eq!((finish.time_limit(), finish.announce_closing(12_000)), (10_000, Nanos::MAX));
        assert!(!finish.end_user(12_500));
        assert_eq!(finish.end_reason(), EndReason::ForcedShutdown);
        assert!(finish.end_user(11_000));
        assert_eq!((finish.stop_at(), finish.announce_closing(99_000)), (13_000, 13_000));
        assert_eq!(finish.end_reason(), EndReason::TimeLimit);
    }

    #[test]
    fn a_run_ends_early_when_every_user_has_ended() {
        let finish = finish(MeasurementEnd::AtTimeLimit, None, 2);
        assert!(!finish.end_user(5_000));
        assert_eq!((finish.stop_at(), finish.time_limit()), (Nanos::MAX, Nanos::MAX));
        assert!(finish.end_user(6_000));
        assert_eq!((finish.stop_at(), finish.end_reason()), (6_000, EndReason::TimeLimit));
    }

    #[test]
    fn the_last_user_does_not_move_a_known_end() {
        let finish = finish(MeasurementEnd::AtTimeLimit, None, 1);
        finish.stop(70_000);
        assert!(finish.end_user(20_000), "it waited for its next event");
        assert_eq!(finish.stop_at(), 70_000);
    }

    #[test]
    fn the_earlier_of_two_stops_applies() {
        let finish = finish(MeasurementEnd::AtTimeLimit, None, 1);
        finish.stop(70);
        finish.stop(90);
        assert_eq!((finish.stop_at(), finish.end_reason()), (70, EndReason::TimeLimit));
    }
}
