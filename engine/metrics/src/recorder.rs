//! The counters and histograms of one worker.

use dbdyno_load::timeline::{SpanEnd, Timeline};
use dbdyno_load::{LATE_AFTER, Nanos};
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::{Accounting, Counts, ErrorClass, StatementClass, UserTotals};

use crate::completed::{Event, Statement};
use crate::extras::{ExtraCounters, ExtraCounts};
use crate::gaps::GapRecorder;
use crate::histogram::Histogram;
use crate::outstanding::OutstandingEvents;
use crate::spans::{ClosedSpans, count_error};

mod closing;
mod queue;

/// Counters of one statement kind.
#[derive(Clone, Debug, Default)]
struct KindCounters {
    rows: u64,
    rows_expected: u64,
    row_count_mismatches: u64,
    latency: Histogram,
}

/// Counters and histograms of one worker.
///
/// Closed spans are appended to `closed` in chronological order, from which the worker takes them.
#[derive(Debug)]
pub struct Recorder {
    timeline: Timeline,
    /// End of the current span; `None` after the run, when the recorder ignores all calls.
    span_end: Option<SpanEnd>,
    tick_start: Nanos,
    span_start: Nanos,
    window_start: Nanos,
    tick_events: u64,
    counts: Counts,
    latency: Histogram,
    /// Time from start to end of the events; `None` in a closed loop, where it equals the latency.
    service: Option<Histogram>,
    gaps: GapRecorder,
    kinds: Vec<KindCounters>,
    accounting: Accounting,
    outstanding: OutstandingEvents,
    /// Due times of the events dropped during the phase.
    dropped: Vec<Nanos>,
    /// Latency of the events that ended after the end of an open loop's run.
    drained: Histogram,
    extras: Option<Box<ExtraCounters>>,
    records_outstanding: bool,
    /// Number of users that have not finished their last event.
    users: u32,
    closed: Vec<(Nanos, ClosedSpans)>,
}

impl Recorder {
    /// A recorder for a workload with `kinds` statement kinds, with the spans of `timeline`.
    pub fn new(timeline: Timeline, kinds: usize, open_loop: bool) -> Self {
        Self::create(timeline, kinds, open_loop, Histogram::default)
    }

    /// A recorder without statements that needs little memory: its latencies have one significant digit.
    pub fn coarse(timeline: Timeline, open_loop: bool) -> Self {
        Self::create(timeline, 0, open_loop, Histogram::coarse)
    }

    fn create(timeline: Timeline, kinds: usize, open_loop: bool, histogram: fn() -> Histogram) -> Self {
        Self {
            span_end: timeline.next_span_end(0),
            timeline,
            tick_start: 0,
            span_start: 0,
            window_start: 0,
            tick_events: 0,
            counts: Counts::default(),
            latency: histogram(),
            service: open_loop.then(histogram),
            gaps: GapRecorder::default(),
            kinds: vec![KindCounters::default(); kinds],
            accounting: Accounting::default(),
            outstanding: OutstandingEvents::default(),
            dropped: Vec::new(),
            drained: histogram(),
            extras: None,
            records_outstanding: false,
            users: 0,
            closed: Vec::new(),
        }
    }

    /// Adds the counters in `requested`. `numbers` are the numbers of this worker's users, counted over all engines of the
    /// run.
    pub fn with_extra_counts(mut self, requested: &ExtraCounts, numbers: &[u64]) -> Self {
        self.extras = ExtraCounters::new(requested, numbers);
        self.users = numbers.len() as u32;
        self
    }

    /// Whether the run was over at the time of the last call.
    pub fn is_over(&self) -> bool {
        self.span_end.is_none()
    }

    /// When the current span ends; `None` after the run.
    pub fn next_span_end(&self) -> Option<Nanos> {
        self.span_end.map(|span_end| span_end.time)
    }

    /// Records that an event became due and started at once on the connection of `user`, as in every closed loop.
    #[inline]
    pub fn start_event(&mut self, user: usize, now: Nanos) {
        self.start_due_event(user, now, now);
    }

    /// Records that an event that was due at `due` started at `now` on the connection of `user`.
    #[inline]
    pub fn start_due_event(&mut self, user: usize, due: Nanos, now: Nanos) {
        self.close_spans_until(now);
        if self.span_end.is_some() {
            self.accounting.due += 1;
            self.outstanding.start(user, due);
        }
    }

    /// Undoes the start of an event of `user` that does not begin, because the limit of events is reached.
    pub fn withdraw_event(&mut self, user: usize) {
        if self.span_end.is_some() && self.outstanding.finish(user).is_some() {
            self.accounting.due -= 1;
        }
    }

    /// Records that the event of `user` completed without error.
    pub fn complete_event(&mut self, user: usize, event: Event) {
        self.close_spans_until(event.end);
        let due = self.outstanding.finish(user);
        if self.span_end.is_none() {
            // The event was in flight at the end of the run and counted as unfinished; now its latency is known.
            if due.is_some() && self.service.is_some() {
                self.drained.record_ns(event.end - event.due);
            }
            return;
        }
        self.counts.events += 1;
        self.tick_events += 1;
        self.accounting.done += 1;
        self.latency.record_ns(event.end - event.due);
        self.gaps.complete_event(event.end);
        if let Some(extras) = &mut self.extras {
            extras.event(user, event.end - event.due);
        }
        if let Some(service) = &mut self.service {
            service.record_ns(event.end - event.start);
        }
        if event.start - event.due > LATE_AFTER {
            self.counts.late += 1;
        }
    }

    /// Adds the time that an event or a restart waits because the rate has a limit.
    pub fn add_rate_limit_wait(&mut self, wait: Nanos) {
        self.counts.rate_limit_wait_us += wait / 1000;
    }

    /// Records that a statement completed without error.
    pub fn complete_statement(&mut self, statement: Statement) {
        self.close_spans_until(statement.end);
        if self.span_end.is_none() {
            return;
        }
        if statement.returns_rows {
            self.counts.rows += statement.rows;
        }
        let class = statement.class.unwrap_or(match (statement.returns_rows, statement.rows) {
            (true, _) => StatementClass::Read,
            // A statement that changed no row does not count as a write.
            (false, 0) => StatementClass::Other,
            (false, _) => StatementClass::Write,
        });
        match class {
            StatementClass::Read => self.counts.reads += 1,
            StatementClass::Write => self.counts.writes += 1,
            StatementClass::Other => self.counts.other += 1,
        }
        self.counts.bytes += statement.bytes;
        let kind = &mut self.kinds[statement.kind];
        kind.latency.record_ns(statement.end - statement.start);
        kind.rows += statement.rows;
        if let Some(expected) = statement.rows_expected {
            kind.rows_expected += expected;
            if statement.rows != expected {
                kind.row_count_mismatches += 1;
                self.counts.row_count_mismatches += 1;
            }
        }
    }

    /// Counts a ROLLBACK that the runner sent; it is not part of the workload.
    pub fn count_other_statement(&mut self, now: Nanos) {
        self.count(now, |counts| counts.other += 1);
    }

    /// Counts an error that the server reported.
    pub fn count_error(&mut self, now: Nanos, code: &str, class: ErrorClass) {
        self.count(now, |counts| count_error(counts, code, class, 1));
    }

    /// Counts a restart of an event after an error.
    pub fn count_retry(&mut self, now: Nanos) {
        self.count(now, |counts| counts.retries += 1);
    }

    /// Counts a connection that was reopened.
    pub fn count_reconnect(&mut self, now: Nanos) {
        self.count(now, |counts| counts.reconnects += 1);
    }

    fn count(&mut self, now: Nanos, add: impl FnOnce(&mut Counts)) {
        self.close_spans_until(now);
        if self.span_end.is_some() {
            add(&mut self.counts);
        }
    }

    /// Records that a user starts no further event.
    pub fn finish_user(&mut self, now: Nanos) {
        self.close_spans_until(now);
        self.users = self.users.saturating_sub(1);
    }

    /// Records that the event of `user` failed and is not retried.
    pub fn fail_event(&mut self, user: usize, now: Nanos) {
        self.close_spans_until(now);
        if self.span_end.is_some() {
            self.accounting.failed += 1;
            self.outstanding.finish(user);
        }
    }

    /// Closes every span that ended at or before `now`.
    #[inline]
    pub fn close_spans_until(&mut self, now: Nanos) {
        while let Some(span_end) = self.span_end.filter(|span_end| span_end.time <= now) {
            self.close(span_end);
            self.span_end = self.timeline.next_span_end(span_end.time);
        }
    }

    /// Ends the run at `at`, before its planned end. Spans that are closed do not change.
    pub fn stop_at(&mut self, at: Nanos) {
        self.timeline.truncate(at);
        self.span_end = self.span_end.and_then(|_| self.timeline.next_span_end(self.tick_start));
    }

    /// Ends intervals at `marks`, which are ascending and not earlier than the end of any closed span.
    pub fn set_marks(&mut self, marks: &[Nanos]) {
        self.timeline.set_marks(marks);
        self.span_end = self.span_end.and_then(|_| self.timeline.next_span_end(self.tick_start));
    }

    /// Number of events on a connection.
    pub fn in_flight(&self) -> u64 {
        self.outstanding.in_flight()
    }

    /// Latencies of the events that have ended since the end of the last closed interval.
    pub fn latencies_since_interval(&self) -> Buckets {
        self.latency.buckets()
    }

    /// Number and totals of each user; empty without [`ExtraCounts::users`].
    pub fn user_totals(&self) -> Vec<(u64, UserTotals)> {
        self.extras.as_ref().map(|extras| extras.users()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_load::timeline::MeasurementEnd;
    use dbdyno_schema::plan::{Phases, Report};
    use dbdyno_schema::record::PhaseName;

    use super::*;
    use crate::histogram;
    use crate::phases::PhaseSums;
    use crate::spans::DrainedEvents;

    const MS: Nanos = 1_000_000;

    fn phases(warmup_us: u64, measure_us: u64) -> Phases {
        Phases { warmup_us, measure_us, events: None, drain_us: 0 }
    }

    /// 100 ms of warm-up and 300 ms of measurement in intervals of 100 ms.
    fn recorder(open_loop: bool) -> Recorder {
        let phases = phases(100_000, 300_000);
        let report =
            Report { interval_us: 100_000, tick_us: 50_000, statements_us: 200_000, ..Report::default() };
        Recorder::new(Timeline::new(&phases, &report, MeasurementEnd::default()), 1, open_loop)
    }

    fn start_waiting_event(recorder: &mut Recorder, user: usize, now: Nanos) {
        let due = recorder.dequeue_event().unwrap();
        recorder.start_due_event(user, due, now);
    }

    fn event(due: Nanos, end: Nanos) -> Event {
        Event { due, start: due, end }
    }

    #[test]
    fn an_event_is_counted_in_the_interval_in_which_it_ends() {
        let mut recorder = recorder(false);
        recorder.start_event(0, 90 * MS);
        recorder.complete_event(0, event(90 * MS, 100 * MS));
        recorder.close_spans_until(400 * MS);
        let spans: Vec<_> =
            recorder.take_closed_spans().into_iter().filter_map(|(_, closed)| closed.interval).collect();
        let seen: Vec<_> =
            spans.iter().map(|span| (span.phase, span.start / MS, span.counts.events)).collect();
        assert_eq!(
            seen,
            [
                (PhaseName::Warmup, 0, 0),
                (PhaseName::Measure, 100, 1),
                (PhaseName::Measure, 200, 0),
                (PhaseName::Measure, 300, 0)
            ]
        );
    }

    #[test]
    fn in_every_phase_due_events_are_done_or_dropped_or_unfinished() {
        let mut recorder = recorder(true);
        for due in [10, 20, 30, 90] {
            recorder.enqueue_event(due * MS);
        }
        recorder.drop_event(95 * MS);
        start_waiting_event(&mut recorder, 0, 95 * MS);
        start_waiting_event(&mut recorder, 1, 95 * MS);
        recorder.complete_event(0, event(10 * MS, 15 * MS));
        recorder.enqueue_event(150 * MS);
        recorder.complete_event(1, event(20 * MS, 160 * MS));
        start_waiting_event(&mut recorder, 0, 160 * MS);
        recorder.close_spans_until(400 * MS);
        let closed = recorder.take_closed_spans();
        let phases: Vec<_> = closed.iter().filter_map(|(_, closed)| closed.phase.clone()).collect();
        // Unfinished at 100 ms: due at 20, 30 and 90; at 400 ms: at 30, 90 and 150.
        let accounting = |due, dropped, waited_ms: u64| Accounting {
            due,
            done: 1,
            failed: 0,
            dropped,
            unfinished: 3,
            unfinished_us: waited_ms * 1000,
        };
        assert_eq!(phases[0].accounting, accounting(5, 1, 80 + 70 + 10));
        assert_eq!(phases[1].accounting, accounting(4, 0, 370 + 310 + 250));
        // At 100 ms, the dropped event had been due for 5 ms. At the end of the run, only queued events are censored yet.
        let ms = |lengths: &[u64]| histogram::buckets_of(lengths.iter().map(|length| length * MS));
        assert_eq!(phases[0].censored, ms(&[80, 70, 10, 5]));
        assert_eq!(phases[1].censored, ms(&[310, 250]));
        let spans: Vec<_> = closed.iter().filter_map(|(_, closed)| closed.interval.as_ref()).collect();
        let outstanding: Vec<_> = spans.iter().map(|span| (span.backlog, span.in_flight)).collect();
        assert_eq!(outstanding, [(2, 1), (2, 1), (2, 1), (2, 1)]);
    }

    #[test]
    fn events_that_end_within_the_drain_time_have_a_latency_and_others_are_censored() {
        let mut recorder = recorder(true);
        for (user, due) in [300, 350].into_iter().enumerate() {
            recorder.start_due_event(user, due * MS, 350 * MS);
        }
        recorder.close_spans_until(400 * MS);
        recorder.complete_event(1, event(350 * MS, 450 * MS));
        let drained = recorder.take_drained_events();
        assert_eq!(drained.latency.max_us, Some(100_000.0));
        assert_eq!(drained.censored, histogram::buckets_of([100 * MS].into_iter()));
    }

    #[test]
    fn a_closed_loop_has_no_censored_events() {
        let mut recorder = recorder(false);
        recorder.start_event(0, 50 * MS);
        recorder.close_spans_until(400 * MS);
        let closed = recorder.take_closed_spans();
        let phase = closed.last().unwrap().1.phase.as_ref().unwrap();
        assert_eq!((phase.accounting.unfinished, phase.censored.count()), (1, 0));
        assert_eq!(recorder.take_drained_events(), DrainedEvents::default());
    }

    #[test]
    fn nothing_is_counted_after_the_end() {
        let mut recorder = recorder(false);
        recorder.start_event(0, 399 * MS);
        recorder.complete_event(0, event(399 * MS, 401 * MS));
        assert!(recorder.is_over());
        let done: u64 = recorder.take_closed_spans().iter().map(|(_, closed)| closed.tick_events).sum();
        assert_eq!(done, 0);
    }

    #[test]
    fn latency_counts_from_the_due_time_and_service_time_from_the_start() {
        let mut recorder = recorder(true);
        recorder.start_due_event(0, 100 * MS, 140 * MS);
        recorder.complete_event(0, Event { due: 100 * MS, start: 140 * MS, end: 150 * MS });
        recorder.close_spans_until(400 * MS);
        let mut totals = PhaseSums::default();
        let spans: Vec<_> =
            recorder.take_closed_spans().into_iter().filter_map(|(_, closed)| closed.interval).collect();
        spans.iter().for_each(|span| totals.add(span));
        assert_eq!(totals.latency.max_us, Some(50_000.0));
        assert_eq!(totals.counts.late, 1);
        assert_eq!(spans[1].service.max_us, Some(10_000.0));
    }

    #[test]
    fn a_row_count_mismatch_is_counted() {
        let mut recorder = recorder(false);
        let statement = |rows, rows_expected| Statement {
            class: None,
            kind: 0,
            start: 0,
            end: MS,
            returns_rows: true,
            rows,
            rows_expected,
            bytes: 10,
        };
        for statement in [statement(1, Some(1)), statement(0, Some(1)), statement(7, None)] {
            recorder.complete_statement(statement);
        }
        recorder.close_spans_until(100 * MS);
        let closed = recorder.take_closed_spans();
        let window = closed[1].1.window.as_ref().unwrap();
        assert_eq!(
            (window.kinds[0].rows, window.kinds[0].rows_expected, window.kinds[0].row_count_mismatches),
            (8, 2, 1)
        );
        assert_eq!(closed[1].1.interval.as_ref().unwrap().counts.reads, 3);
    }

    #[test]
    fn an_error_code_keeps_its_most_severe_class() {
        let mut recorder = recorder(false);
        recorder.count_error(10 * MS, "40P01", ErrorClass::Deadlock);
        recorder.count_error(20 * MS, "40001", ErrorClass::Lost);
        recorder.count_error(30 * MS, "40001", ErrorClass::Serialization);
        recorder.count_error(110 * MS, "40P01", ErrorClass::Deadlock);
        recorder.count_error(120 * MS, "40001", ErrorClass::Serialization);
        recorder.close_spans_until(400 * MS);
        let spans: Vec<_> =
            recorder.take_closed_spans().into_iter().filter_map(|(_, closed)| closed.interval).collect();
        let classes = |counts: &Counts| -> Vec<_> { counts.error_classes.values().copied().collect() };
        assert_eq!(classes(&spans[0].counts), [ErrorClass::Lost, ErrorClass::Deadlock]);
        assert_eq!(classes(&spans[1].counts), [ErrorClass::Serialization, ErrorClass::Deadlock]);
        assert_eq!(classes(&spans[2].counts), []);
        let mut totals = PhaseSums::default();
        spans.iter().for_each(|span| totals.add(span));
        assert_eq!(classes(&totals.counts), [ErrorClass::Lost, ErrorClass::Deadlock]);
        assert_eq!(totals.counts.errors.values().sum::<u64>(), 5);
    }

    #[test]
    fn an_early_stop_closes_a_short_interval() {
        let mut recorder = recorder(false);
        recorder.start_event(0, 110 * MS);
        recorder.complete_event(0, event(110 * MS, 120 * MS));
        recorder.stop_at(130 * MS);
        recorder.close_spans_until(130 * MS);
        assert!(recorder.is_over());
        let last = recorder.take_closed_spans().pop().unwrap();
        assert_eq!(last.0, 130 * MS);
        let span = last.1.interval.unwrap();
        assert_eq!((span.start / MS, span.end / MS, span.counts.events), (100, 130, 1));
        assert_eq!(last.1.phase.unwrap().accounting.done, 1);
    }
}
