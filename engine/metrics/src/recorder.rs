//! The counters and histograms of one worker.

use dbdyno_load::timeline::{Bound, Timeline};
use dbdyno_load::{LATE, Nanos};
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::{Accounting, Counts, ErrorClass, StatementClass, UserTotals};

use crate::completed::{Event, Statement};
use crate::extras::{ExtraCounters, ExtraCounts};
use crate::histogram::Histogram;
use crate::outstanding::Outstanding;
use crate::spans::{ClosedSpans, DrainedEvents, count_error};

mod closing;

#[derive(Clone, Debug, Default)]
struct KindCounters {
    rows: u64,
    rows_expected: u64,
    row_count_mismatches: u64,
    latency: Histogram,
}

/// Counters and histograms of one worker.
///
/// Closed spans are appended to `closed` in chronological order; the worker takes them from there.
#[derive(Debug)]
pub struct Recorder {
    timeline: Timeline,
    /// End of the current span; `None` after the run, when the recorder ignores all reports.
    bound: Option<Bound>,
    tick_start: Nanos,
    span_start: Nanos,
    window_start: Nanos,
    tick_events: u64,
    counts: Counts,
    latency: Histogram,
    /// Time from start to end of the events; `None` in a closed loop, where it equals the latency.
    service: Option<Histogram>,
    kinds: Vec<KindCounters>,
    accounting: Accounting,
    outstanding: Outstanding,
    /// Due times of the events dropped during the phase.
    dropped: Vec<Nanos>,
    /// Latency of the events that ended after the end of an open loop's run.
    drained: Histogram,
    extras: Option<Box<ExtraCounters>>,
    /// Number of users that have not finished their last event.
    users: u32,
    closed: Vec<(Nanos, ClosedSpans)>,
}

impl Recorder {
    /// A recorder for a workload with `kinds` statement kinds, with the spans of `timeline`.
    pub fn new(timeline: Timeline, kinds: usize, open_loop: bool) -> Self {
        Self {
            bound: timeline.bound_after(0),
            timeline,
            tick_start: 0,
            span_start: 0,
            window_start: 0,
            tick_events: 0,
            counts: Counts::default(),
            latency: Histogram::default(),
            service: open_loop.then(Histogram::default),
            kinds: vec![KindCounters::default(); kinds],
            accounting: Accounting::default(),
            outstanding: Outstanding::default(),
            dropped: Vec::new(),
            drained: Histogram::default(),
            extras: None,
            users: 0,
            closed: Vec::new(),
        }
    }

    /// Adds the counters in `requested`. `numbers` are the fleet-wide numbers (over all engines) of this worker's
    /// users.
    pub fn counting(mut self, requested: &ExtraCounts, numbers: &[u64]) -> Self {
        self.extras = ExtraCounters::new(requested, numbers);
        self.users = numbers.len() as u32;
        self
    }

    /// Whether the run was over at the time of the last call.
    pub fn is_over(&self) -> bool {
        self.bound.is_none()
    }

    /// When the current span ends; `None` after the run.
    pub fn next_bound(&self) -> Option<Nanos> {
        self.bound.map(|bound| bound.at)
    }

    /// An event became due and began immediately on the connection of `user`, as every event of a closed loop does.
    #[inline]
    pub fn begin(&mut self, user: usize, now: Nanos) {
        self.advance(now);
        if self.bound.is_some() {
            self.accounting.due += 1;
            self.outstanding.begin(user, now);
        }
    }

    /// An event became due and waits for a connection. The caller must report arrivals in order.
    pub fn arrive(&mut self, due: Nanos) {
        self.advance(due);
        if self.bound.is_some() {
            self.accounting.due += 1;
            self.outstanding.arrive(due);
        }
    }

    /// An event became due and is dropped, because the queue is full.
    pub fn drop_arrival(&mut self, due: Nanos) {
        self.advance(due);
        if self.bound.is_some() {
            self.accounting.due += 1;
            self.accounting.dropped += 1;
            self.counts.dropped += 1;
            if self.service.is_some() {
                self.dropped.push(due);
            }
        }
    }

    /// The connection of `user` takes the event that has waited longest; returns its due time.
    #[inline]
    pub fn take(&mut self, user: usize) -> Option<Nanos> {
        self.outstanding.take(user)
    }

    /// Number of events that wait for a connection.
    pub fn waiting(&self) -> u64 {
        self.outstanding.waiting()
    }

    /// The event of `user` completed without error.
    pub fn event(&mut self, user: usize, event: Event) {
        self.advance(event.end);
        let due = self.outstanding.end(user);
        if self.bound.is_none() {
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
        if let Some(extras) = &mut self.extras {
            extras.event(user, event.end - event.due);
        }
        if let Some(service) = &mut self.service {
            service.record_ns(event.end - event.start);
        }
        if event.start - event.due > LATE {
            self.counts.late += 1;
        }
    }

    /// A statement completed without error.
    pub fn statement(&mut self, statement: Statement) {
        self.advance(statement.end);
        if self.bound.is_none() {
            return;
        }
        if statement.returns_rows {
            self.counts.rows += statement.rows;
        }
        let class = statement.class.unwrap_or(match (statement.returns_rows, statement.rows) {
            (true, _) => StatementClass::Read,
            // A changing statement that found no row does not count as a write.
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

    /// The runner sent a ROLLBACK, which is not part of the workload.
    pub fn other_statement(&mut self, now: Nanos) {
        self.count(now, |counts| counts.other += 1);
    }

    /// The server answered with an error.
    pub fn error(&mut self, now: Nanos, code: &str, class: ErrorClass) {
        self.count(now, |counts| count_error(counts, code, class, 1));
    }

    /// An event restarts after an error.
    pub fn retry(&mut self, now: Nanos) {
        self.count(now, |counts| counts.retries += 1);
    }

    /// A connection was reopened.
    pub fn reconnect(&mut self, now: Nanos) {
        self.count(now, |counts| counts.reconnects += 1);
    }

    fn count(&mut self, now: Nanos, add: impl FnOnce(&mut Counts)) {
        self.advance(now);
        if self.bound.is_some() {
            add(&mut self.counts);
        }
    }

    /// A user begins no further event.
    pub fn leave(&mut self, now: Nanos) {
        self.advance(now);
        self.users = self.users.saturating_sub(1);
    }

    /// The event of `user` failed and is not retried.
    pub fn failed(&mut self, user: usize, now: Nanos) {
        self.advance(now);
        if self.bound.is_some() {
            self.accounting.failed += 1;
            self.outstanding.end(user);
        }
    }

    /// Closes every span that ended at or before `now`.
    #[inline]
    pub fn advance(&mut self, now: Nanos) {
        while let Some(bound) = self.bound.filter(|bound| bound.at <= now) {
            self.close(bound);
            self.bound = self.timeline.bound_after(bound.at);
        }
    }

    /// Ends the run at `at`, before its planned end. Spans that are closed do not change.
    pub fn stop_at(&mut self, at: Nanos) {
        self.timeline.truncate(at);
        // `tick_start` is the end of the last closed tick.
        self.bound = self.bound.and_then(|_| self.timeline.bound_after(self.tick_start));
    }

    /// Spans closed since the last call, each with its end.
    pub fn take_closed_spans(&mut self) -> Vec<(Nanos, ClosedSpans)> {
        std::mem::take(&mut self.closed)
    }

    /// Number and totals of each user; empty without [`ExtraCounts::users`].
    pub fn user_totals(&self) -> Vec<(u64, UserTotals)> {
        self.extras.as_ref().map(|extras| extras.users()).unwrap_or_default()
    }

    /// The outcome of the events that were in flight at the end of an open loop's run, after the drain time.
    pub fn drained(&mut self) -> DrainedEvents {
        let end = self.timeline.end();
        if self.service.is_none() {
            return DrainedEvents::default();
        }
        let censored = buckets_of(self.outstanding.running_since().map(|due| end.saturating_sub(due)));
        DrainedEvents { latency: self.drained.take(), censored }
    }
}

/// A histogram of durations.
fn buckets_of(lengths: impl Iterator<Item = Nanos>) -> Buckets {
    let mut histogram = Histogram::default();
    lengths.for_each(|length| histogram.record_ns(length));
    histogram.take().buckets
}

#[cfg(test)]
mod tests {
    use dbdyno_load::timeline::MeasurementEnd;
    use dbdyno_schema::plan::{Phases, Report};
    use dbdyno_schema::record::PhaseName;

    use super::*;
    use crate::phases::Totals;

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

    fn event(due: Nanos, end: Nanos) -> Event {
        Event { due, start: due, end }
    }

    #[test]
    fn an_event_is_counted_where_it_ends() {
        let mut recorder = recorder(false);
        recorder.begin(0, 90 * MS);
        recorder.event(0, event(90 * MS, 100 * MS));
        recorder.advance(400 * MS);
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
    fn due_is_done_plus_dropped_plus_unfinished_in_every_phase() {
        let mut recorder = recorder(true);
        for due in [10, 20, 30, 90] {
            recorder.arrive(due * MS);
        }
        recorder.drop_arrival(95 * MS);
        recorder.take(0);
        recorder.take(1);
        recorder.event(0, event(10 * MS, 15 * MS));
        recorder.arrive(150 * MS);
        recorder.event(1, event(20 * MS, 160 * MS));
        recorder.take(0);
        recorder.advance(400 * MS);
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
        // The one dropped at 95 ms had been due for 5 ms. At the end of the run only what waits is given up.
        let ms = |lengths: &[u64]| buckets_of(lengths.iter().map(|length| length * MS));
        assert_eq!(phases[0].censored, ms(&[80, 70, 10, 5]));
        assert_eq!(phases[1].censored, ms(&[310, 250]));
        let spans: Vec<_> = closed.iter().filter_map(|(_, closed)| closed.interval.as_ref()).collect();
        let left: Vec<_> = spans.iter().map(|span| (span.backlog, span.in_flight)).collect();
        assert_eq!(left, [(2, 1), (2, 1), (2, 1), (2, 1)]);
    }

    #[test]
    fn what_ends_while_the_run_drains_is_known_and_the_rest_is_censored() {
        let mut recorder = recorder(true);
        for (user, due) in [300, 350].into_iter().enumerate() {
            recorder.arrive(due * MS);
            recorder.take(user);
        }
        recorder.advance(400 * MS);
        recorder.event(1, event(350 * MS, 450 * MS));
        let drained = recorder.drained();
        assert_eq!(drained.latency.max_us, Some(100_000.0));
        assert_eq!(drained.censored, buckets_of([100 * MS].into_iter()));
    }

    #[test]
    fn a_closed_loop_has_no_censored_events() {
        let mut recorder = recorder(false);
        recorder.begin(0, 50 * MS);
        recorder.advance(400 * MS);
        let closed = recorder.take_closed_spans();
        let phase = closed.last().unwrap().1.phase.as_ref().unwrap();
        assert_eq!((phase.accounting.unfinished, phase.censored.count()), (1, 0));
        assert_eq!(recorder.drained(), DrainedEvents::default());
    }

    #[test]
    fn nothing_is_counted_after_the_end() {
        let mut recorder = recorder(false);
        recorder.begin(0, 399 * MS);
        recorder.event(0, event(399 * MS, 401 * MS));
        assert!(recorder.is_over());
        let done: u64 = recorder.take_closed_spans().iter().map(|(_, closed)| closed.tick_events).sum();
        assert_eq!(done, 0);
    }

    #[test]
    fn latency_counts_from_due_and_service_from_start() {
        let mut recorder = recorder(true);
        recorder.arrive(100 * MS);
        recorder.take(0);
        recorder.event(0, Event { due: 100 * MS, start: 140 * MS, end: 150 * MS });
        recorder.advance(400 * MS);
        let mut totals = Totals::default();
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
            recorder.statement(statement);
        }
        recorder.advance(100 * MS);
        let closed = recorder.take_closed_spans();
        let window = closed[1].1.window.as_ref().unwrap();
        assert_eq!(
            (window.kinds[0].rows, window.kinds[0].rows_expected, window.kinds[0].row_count_mismatches),
            (8, 2, 1)
        );
        assert_eq!(closed[1].1.interval.as_ref().unwrap().counts.reads, 3);
    }

    #[test]
    fn each_code_has_a_class_in_intervals_and_totals() {
        let mut recorder = recorder(false);
        recorder.error(10 * MS, "40P01", ErrorClass::Deadlock);
        recorder.error(20 * MS, "40001", ErrorClass::Lost);
        recorder.error(30 * MS, "40001", ErrorClass::Serialization);
        recorder.error(110 * MS, "40P01", ErrorClass::Deadlock);
        recorder.error(120 * MS, "40001", ErrorClass::Serialization);
        recorder.advance(400 * MS);
        let spans: Vec<_> =
            recorder.take_closed_spans().into_iter().filter_map(|(_, closed)| closed.interval).collect();
        let classes = |counts: &Counts| -> Vec<_> { counts.error_classes.values().copied().collect() };
        assert_eq!(classes(&spans[0].counts), [ErrorClass::Lost, ErrorClass::Deadlock]);
        assert_eq!(classes(&spans[1].counts), [ErrorClass::Serialization, ErrorClass::Deadlock]);
        assert_eq!(classes(&spans[2].counts), []);
        let mut totals = Totals::default();
        spans.iter().for_each(|span| totals.add(span));
        assert_eq!(classes(&totals.counts), [ErrorClass::Lost, ErrorClass::Deadlock]);
        assert_eq!(totals.counts.errors.values().sum::<u64>(), 5);
    }

    #[test]
    fn an_early_stop_closes_a_short_interval() {
        let mut recorder = recorder(false);
        recorder.begin(0, 110 * MS);
        recorder.event(0, event(110 * MS, 120 * MS));
        recorder.stop_at(130 * MS);
        recorder.advance(130 * MS);
        assert!(recorder.is_over());
        let last = recorder.take_closed_spans().pop().unwrap();
        assert_eq!(last.0, 130 * MS);
        let span = last.1.interval.unwrap();
        assert_eq!((span.start / MS, span.end / MS, span.counts.events), (100, 130, 1));
        assert_eq!(last.1.phase.unwrap().accounting.done, 1);
    }
}
