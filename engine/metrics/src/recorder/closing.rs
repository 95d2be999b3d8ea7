//! Closes spans: moves the counters of a recorder into a span.

use dbdyno_load::Nanos;
use dbdyno_load::timeline::SpanEnd;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::Accounting;

use super::{KindCounters, Recorder};
use crate::histogram::{Histogram, buckets_of};
use crate::spans::{ClosedSpans, DrainedEvents, PhaseAccounting, Span, StatementSummary, Window};

impl Recorder {
    /// Records at the end of each interval how long the events that have not ended have taken.
    pub fn with_outstanding(mut self, requested: bool) -> Self {
        self.records_outstanding = requested;
        self
    }

    /// Returns the spans closed since the last call, each with its end.
    pub fn take_closed_spans(&mut self) -> Vec<(Nanos, ClosedSpans)> {
        std::mem::take(&mut self.closed)
    }

    pub(super) fn close(&mut self, span_end: SpanEnd) {
        let closed = ClosedSpans {
            tick_events: std::mem::take(&mut self.tick_events),
            interval: span_end.ends_interval.then(|| self.close_interval(span_end)),
            window: span_end.ends_window.then(|| self.close_window(span_end)),
            phase: span_end.ends_phase.then(|| self.close_phase(span_end.time)),
        };
        self.tick_start = span_end.time;
        self.closed.push((span_end.time, closed));
    }

    fn close_interval(&mut self, span_end: SpanEnd) -> Span {
        Span {
            phase: span_end.phase,
            start: std::mem::replace(&mut self.span_start, span_end.time),
            end: span_end.time,
            counts: std::mem::take(&mut self.counts),
            latency: self.latency.take(),
            gaps: self.gaps.take(span_end.time),
            service: self.service.as_mut().map(Histogram::take).unwrap_or_default(),
            log_buckets: self.extras.as_mut().map(|extras| extras.take_buckets()).unwrap_or_default(),
            users_active: self.users,
            users: self
                .extras
                .as_mut()
                .filter(|_| span_end.is_mark)
                .map(|extras| extras.take_users())
                .unwrap_or_default(),
            backlog: self.outstanding.queue_length(),
            in_flight: self.outstanding.in_flight(),
            outstanding_us: self.outstanding_times(span_end.time),
        }
    }

    /// For each event that is due and has not ended, the time since it was due; empty if not requested.
    fn outstanding_times(&self, at: Nanos) -> Buckets {
        if !self.records_outstanding {
            return Buckets::default();
        }
        let due_times = self.outstanding.queued_due_times().chain(self.outstanding.running_due_times());
        buckets_of(due_times.map(|due| at.saturating_sub(due)))
    }

    fn close_window(&mut self, span_end: SpanEnd) -> Window {
        let take = |kind: &mut KindCounters| StatementSummary {
            rows: std::mem::take(&mut kind.rows),
            rows_expected: std::mem::take(&mut kind.rows_expected),
            row_count_mismatches: std::mem::take(&mut kind.row_count_mismatches),
            latency: kind.latency.take(),
        };
        Window {
            phase: span_end.phase,
            start: std::mem::replace(&mut self.window_start, span_end.time),
            end: span_end.time,
            kinds: self.kinds.iter_mut().map(take).collect(),
        }
    }

    /// Closes a phase. Events that have neither completed nor failed count as unfinished in this phase, and as due in
    /// the next one.
    fn close_phase(&mut self, at: Nanos) -> PhaseAccounting {
        let mut accounting = std::mem::take(&mut self.accounting);
        accounting.unfinished = self.outstanding.queue_length() + self.outstanding.in_flight();
        let Accounting { due, done, failed, dropped, unfinished, .. } = accounting;
        assert_eq!(due, done + failed + dropped + unfinished, "an event was lost: {accounting:?}");
        let due_times = self.outstanding.queued_due_times().chain(self.outstanding.running_due_times());
        // The queue may contain events that became due between the end of the phase and now, which had not waited.
        let waited: u128 = due_times.map(|due| u128::from(at.saturating_sub(due))).sum();
        accounting.unfinished_us = (waited / 1000) as u64;
        self.accounting.due = unfinished;
        PhaseAccounting { accounting, censored: self.take_censored(at) }
    }

    /// For each event that was dropped or is unfinished, the time from its due time to `at`, the end of the phase. At the
    /// end of the run this excludes events in flight, which may still end (see [`Recorder::take_drained_events`]).
    fn take_censored(&mut self, at: Nanos) -> Buckets {
        let dropped = std::mem::take(&mut self.dropped);
        if self.service.is_none() {
            return Buckets::default();
        }
        let is_end_of_run = self.timeline.next_span_end(at).is_none();
        let running = self.outstanding.running_due_times().filter(|_| !is_end_of_run);
        let censored = self.outstanding.queued_due_times().chain(running).chain(dropped);
        buckets_of(censored.map(|due| at.saturating_sub(due)))
    }

    /// Returns the outcome of the events in flight at the end of an open loop's run. Call it after the drain time.
    pub fn take_drained_events(&mut self) -> DrainedEvents {
        let end = self.timeline.end();
        if self.service.is_none() {
            return DrainedEvents::default();
        }
        let censored = buckets_of(self.outstanding.running_due_times().map(|due| end.saturating_sub(due)));
        DrainedEvents { latency: self.drained.take(), censored }
    }
}
