//! Closes a span: moves the counters of a recorder into it.

use dbdyno_load::Nanos;
use dbdyno_load::timeline::Bound;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::Accounting;

use super::{KindCounters, Recorder, buckets_of};
use crate::histogram::Histogram;
use crate::spans::{ClosedSpans, PhaseAccounting, Span, StatementSummary, Window};

impl Recorder {
    pub(super) fn close(&mut self, bound: Bound) {
        let closed = ClosedSpans {
            tick_events: std::mem::take(&mut self.tick_events),
            interval: bound.interval.then(|| self.close_interval(bound)),
            window: bound.window.then(|| self.close_window(bound)),
            phase: bound.phase_end.then(|| self.close_phase(bound.at)),
        };
        self.tick_start = bound.at;
        self.closed.push((bound.at, closed));
    }

    fn close_interval(&mut self, bound: Bound) -> Span {
        Span {
            phase: bound.phase,
            start: std::mem::replace(&mut self.span_start, bound.at),
            end: bound.at,
            counts: std::mem::take(&mut self.counts),
            latency: self.latency.take(),
            service: self.service.as_mut().map(Histogram::take).unwrap_or_default(),
            log_buckets: self.extras.as_mut().map(|extras| extras.take_buckets()).unwrap_or_default(),
            users_active: self.users,
            users: self
                .extras
                .as_mut()
                .filter(|_| bound.mark)
                .map(|extras| extras.take_users())
                .unwrap_or_default(),
            backlog: self.outstanding.waiting(),
            in_flight: self.outstanding.in_flight(),
        }
    }

    fn close_window(&mut self, bound: Bound) -> Window {
        let take = |kind: &mut KindCounters| StatementSummary {
            rows: std::mem::take(&mut kind.rows),
            rows_expected: std::mem::take(&mut kind.rows_expected),
            row_count_mismatches: std::mem::take(&mut kind.row_count_mismatches),
            latency: kind.latency.take(),
        };
        Window {
            phase: bound.phase,
            start: std::mem::replace(&mut self.window_start, bound.at),
            end: bound.at,
            kinds: self.kinds.iter_mut().map(take).collect(),
        }
    }

    /// Closes a phase. Events that have neither completed nor failed count as unfinished in this phase, and as due in
    /// the next one.
    fn close_phase(&mut self, at: Nanos) -> PhaseAccounting {
        let mut accounting = std::mem::take(&mut self.accounting);
        accounting.unfinished = self.outstanding.waiting() + self.outstanding.in_flight();
        let Accounting { due, done, failed, dropped, unfinished, .. } = accounting;
        assert_eq!(due, done + failed + dropped + unfinished, "an event was lost: {accounting:?}");
        let since = self.outstanding.waiting_since().chain(self.outstanding.running_since());
        // Before this worker noticed the end of the phase, events may have joined the queue that became due after the
        // end.
        let waited: u128 = since.map(|due| u128::from(at.saturating_sub(due))).sum();
        accounting.unfinished_us = (waited / 1000) as u64;
        self.accounting.due = unfinished;
        PhaseAccounting { accounting, censored: self.close_censored(at) }
    }

    /// For each event that will never end, the time from its due time to the end of the phase. At the end of the run
    /// this excludes events in flight, which may still end (see [`Recorder::drained`]).
    fn close_censored(&mut self, at: Nanos) -> Buckets {
        let dropped = std::mem::take(&mut self.dropped);
        if self.service.is_none() {
            return Buckets::default();
        }
        let last = self.timeline.bound_after(at).is_none();
        let running = self.outstanding.running_since().filter(|_| !last);
        let never = self.outstanding.waiting_since().chain(running).chain(dropped);
        buckets_of(never.map(|due| at.saturating_sub(due)))
    }
}
