//! The queue of a load with a rate: one for all connections of an engine, whatever the number of its event loops.
//!
//! ```text
//!  arrivals ──due──▶ waiting events ──▶ connection that becomes free
//!     └────────── none waits ────────▶ the same connection waits until the next arrival is due
//! ```
//! A connection that becomes free takes the event that has waited longest, or else the next arrival before it is due, and
//! waits until then. So connections take the arrivals in order, no connection is free while an event waits, and no arrival
//! needs a dispatcher: the response times are those of one queue with as many servers as connections (G/G/c, first come,
//! first served).
//!
//! This is the only state on the hot path that the workers share, and only loads with a rate have it. The lock is held for
//! less than 0.1 µs per event.

use std::sync::{Arc, Mutex, MutexGuard};

use dbdyno_load::Nanos;
use dbdyno_load::arrivals::{Arrivals, arrivals};
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::{ClosedSpans, Recorder};

use crate::RunSpec;
use crate::share::share;

/// The queue of one engine. Its recorder counts the events that wait or are dropped; the recorders of the workers count
/// the others.
pub(crate) struct ArrivalQueue {
    state: Mutex<State>,
    has_limit: bool,
}

struct State {
    arrivals: Box<dyn Arrivals + Send>,
    /// When the first arrival is due that is neither in the queue nor taken.
    next_due: Nanos,
    /// No arrival is due from this instant on.
    end: Nanos,
    /// Maximum number of waiting events.
    limit: Option<u64>,
    /// Number of users that have not taken an event yet. An event for which one of them exists does not wait.
    new_users: u64,
    /// The latest time of any call. Events leave the queue in the order of the calls, so an earlier time counts as this one.
    time: Nanos,
    /// Number of waiting events when the first event was dropped; `None` if none was, or after it was reported.
    overflow: Option<u64>,
    recorder: Recorder,
}

/// An event that a user has taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenEvent {
    /// `Nanos::MAX` if no more events become due.
    pub(crate) due: Nanos,
    /// When the user took it. If it is due later, it begins when it is due.
    pub(crate) at: Nanos,
}

/// What has happened in the queue.
pub(crate) struct QueueProgress {
    /// The spans that ended, each with its end.
    pub(crate) closed: Vec<(Nanos, ClosedSpans)>,
    /// The number of waiting events when the first event was dropped, once.
    pub(crate) overflow: Option<u64>,
}

impl ArrivalQueue {
    /// The queue of the engine that runs `spec`, with `kinds` statement kinds; `None` for a closed loop. No arrival is due
    /// from `end` on.
    pub(crate) fn new(spec: &RunSpec, kinds: usize, end: Nanos) -> Option<Arc<Self>> {
        let (plan, segment) = (&spec.plan, spec.plan.segment);
        let begin: Nanos = plan.phases.warmup_us * 1000;
        let (engine, engines) = (segment.index.into(), segment.count.into());
        let arrivals = arrivals(&plan.load.shape, begin, engine, engines, plan.seed)?;
        let of_engine = |total| u64::from(share(total, segment.index, segment.count));
        let timeline = Timeline::new(&plan.phases, &plan.report, spec.options.measurement_end);
        let recorder = Recorder::new(timeline, kinds, true).with_outstanding(plan.load.abort_if.is_some());
        let limit = plan.load.queue_limit.map(of_engine);
        let users = of_engine(plan.load.connections);
        Some(Arc::new(Self::with_arrivals(arrivals, end, limit, users, recorder)))
    }

    fn with_arrivals(
        mut arrivals: Box<dyn Arrivals + Send>,
        end: Nanos,
        limit: Option<u64>,
        new_users: u64,
        recorder: Recorder,
    ) -> Self {
        let next_due = arrivals.next_due();
        let state = State { arrivals, next_due, end, limit, new_users, time: 0, overflow: None, recorder };
        Self { state: Mutex::new(state), has_limit: limit.is_some() }
    }

    /// Whether events may be dropped.
    pub(crate) fn has_limit(&self) -> bool {
        self.has_limit
    }

    /// Takes the next event for a user that became free at `now`; `is_first` if it is the first of this user. `None` after
    /// the run.
    pub(crate) fn take(&self, now: Nanos, is_first: bool) -> Option<TakenEvent> {
        let mut state = self.state();
        state.advance(now);
        if state.recorder.is_over() {
            return None;
        }
        state.new_users = state.new_users.saturating_sub(is_first.into());
        let due = match state.recorder.dequeue_event() {
            Some(due) => due,
            None if state.next_due < state.end => state.take_arrival(),
            None => Nanos::MAX,
        };
        Some(TakenEvent { due, at: state.time })
    }

    /// Queues or drops the arrivals up to `now`, and closes the spans up to `now`. A run that ends early ends at `stop_at`.
    pub(crate) fn advance(&self, now: Nanos, stop_at: Nanos) -> QueueProgress {
        let mut state = self.state();
        if stop_at != Nanos::MAX {
            state.recorder.stop_at(stop_at);
        }
        state.advance(now);
        let now = state.time;
        state.recorder.close_spans_until(now);
        QueueProgress { closed: state.recorder.take_closed_spans(), overflow: state.overflow.take() }
    }

    /// Ends the arrivals at `now`. Events that wait go on waiting.
    pub(crate) fn close(&self, now: Nanos) {
        let mut state = self.state();
        state.advance(now);
        state.end = state.end.min(state.time);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }
}

impl State {
    fn advance(&mut self, now: Nanos) {
        self.time = self.time.max(now);
        while self.next_due <= self.time && self.next_due < self.end && !self.recorder.is_over() {
            let due = self.take_arrival();
            let waiting = self.recorder.queue_length();
            if self.limit.is_some_and(|limit| waiting >= limit + self.new_users) {
                self.recorder.drop_event(due);
                self.overflow.get_or_insert(waiting);
            } else {
                self.recorder.enqueue_event(due);
            }
        }
    }

    fn take_arrival(&mut self) -> Nanos {
        let next = self.arrivals.next_due();
        std::mem::replace(&mut self.next_due, next)
    }
}

#[cfg(test)]
mod tests;
