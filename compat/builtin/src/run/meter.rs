//! The counters of one thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbdyno_load::Nanos;
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::{ClosedSpans, Event, ExtraCounts, Recorder};
use dbdyno_schema::record::UserTotals;

use crate::test::IoCounts;

/// The index of the only user of a thread's recorder.
const USER: usize = 0;

/// Aligned so that no two threads write to the same cache line or prefetched pair of lines.
#[repr(align(128))]
pub(super) struct Meter {
    counters: Mutex<Counters>,
    /// Due time of the current event in nanoseconds, plus 1; 0 between events. The coordinator reads it without the lock.
    current_due_plus_1: AtomicU64,
}

/// The counters that the lock of a meter protects.
pub(super) struct Counters {
    recorder: Recorder,
    /// I/O since the last closed span.
    io: IoCounts,
    closed_spans: Vec<ThreadSpan>,
    /// Whether the recorder knows the start of the current event.
    is_start_recorded: bool,
}

/// A span that the meter of one thread has closed.
pub(super) struct ThreadSpan {
    pub(super) span_end: Nanos,
    pub(super) closed: ClosedSpans,
    pub(super) io: IoCounts,
}

impl Meter {
    pub(super) fn new(timeline: &Timeline, extra_counts: &ExtraCounts, number: u64, open_loop: bool) -> Self {
        // Thousands of threads have a meter each, and the reports use only the extra counts.
        let recorder =
            Recorder::coarse(timeline.clone(), open_loop).with_extra_counts(extra_counts, &[number]);
        let counters = Counters {
            recorder,
            io: IoCounts::default(),
            closed_spans: Vec::new(),
            is_start_recorded: false,
        };
        Self { counters: Mutex::new(counters), current_due_plus_1: AtomicU64::new(0) }
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn begin(&self, due: Nanos) {
        // Relaxed ordering is enough: the lock in `end` orders this store, and `close` may see the store some
        // nanoseconds late.
        self.current_due_plus_1.store(due + 1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn end(&self, event: Event, io: IoCounts) {
        let mut counters = self.counters();
        counters.advance(event.end);
        if !std::mem::take(&mut counters.is_start_recorded) {
            counters.recorder.start_event(USER, event.due);
        }
        counters.recorder.complete_event(USER, event);
        counters.io += io;
        self.current_due_plus_1.store(0, Ordering::Relaxed);
    }

    /// Records that the thread ends at `now`. `io` is the I/O of [`Runner::finish`](crate::test::Runner::finish).
    pub(super) fn end_thread(&self, now: Nanos, io: IoCounts) {
        let mut counters = self.counters();
        counters.advance(now);
        counters.io += io;
        counters.recorder.finish_user(now);
    }

    /// Closes the spans that ended by `now` and returns them.
    pub(super) fn close(&self, now: Nanos) -> Vec<ThreadSpan> {
        self.take_closed(|counters| counters.advance(now))
    }

    /// Ends the run at `at` and closes the last span.
    pub(super) fn end_run(&self, at: Nanos) -> Vec<ThreadSpan> {
        self.take_closed(|counters| {
            counters.recorder.stop_at(at);
            counters.advance(at);
        })
    }

    /// Passes the start of the current event to the recorder, calls `update`, and returns the spans closed since the
    /// last call.
    fn take_closed(&self, update: impl FnOnce(&mut Counters)) -> Vec<ThreadSpan> {
        let mut counters = self.counters();
        let due_plus_1 = self.current_due_plus_1.load(Ordering::Relaxed);
        if due_plus_1 != 0 && !counters.is_start_recorded {
            counters.is_start_recorded = true;
            counters.recorder.start_event(USER, due_plus_1 - 1);
        }
        update(&mut counters);
        std::mem::take(&mut counters.closed_spans)
    }

    /// The thread's number and totals.
    pub(super) fn totals(&self) -> Vec<(u64, UserTotals)> {
        self.counters().recorder.user_totals()
    }
}

impl Counters {
    #[inline]
    fn advance(&mut self, now: Nanos) {
        if self.recorder.next_span_end().is_some_and(|span_end| span_end <= now) {
            self.close(now);
        }
    }

    #[cold]
    fn close(&mut self, now: Nanos) {
        self.recorder.close_spans_until(now);
        for (span_end, closed) in self.recorder.take_closed_spans() {
            // All I/O belongs to the first span: `end` closes spans before it adds the I/O of an event.
            self.closed_spans.push(ThreadSpan { span_end, closed, io: std::mem::take(&mut self.io) });
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_load::timeline::MeasurementEnd;
    use dbdyno_schema::plan::{Phases, Report};

    use super::*;

    const MS: Nanos = 1_000_000;

    /// The meter of a run of 300 ms with intervals of 100 ms.
    fn meter() -> Meter {
        let phases = Phases { warmup_us: 0, measure_us: 300_000, events: None, drain_us: u64::MAX };
        let report = Report { interval_us: 100_000, tick_us: 0, ..Report::default() };
        let timeline = Timeline::new(&phases, &report, MeasurementEnd::AfterLastEvent);
        let extra_counts = ExtraCounts { users: true, ..ExtraCounts::default() };
        Meter::new(&timeline, &extra_counts, 7, false)
    }

    fn event(meter: &Meter, start: Nanos, end: Nanos) {
        meter.begin(start);
        meter.end(Event { due: start, start, end }, IoCounts { reads: 1, ..IoCounts::default() });
    }

    fn summarize(spans: &[ThreadSpan]) -> Vec<(Nanos, u64, u64, u64)> {
        let summary = |thread: &ThreadSpan| {
            let span = thread.closed.interval.as_ref().unwrap();
            (thread.span_end / MS, span.counts.events, thread.io.reads, span.in_flight)
        };
        spans.iter().map(summary).collect()
    }

    #[test]
    fn io_is_counted_in_the_span_in_which_its_event_ended() {
        let meter = meter();
        event(&meter, 10 * MS, 50 * MS);
        event(&meter, 60 * MS, 250 * MS);
        assert_eq!(summarize(&meter.close(250 * MS)), [(100, 1, 1, 0), (200, 0, 0, 0)]);
        meter.end_thread(260 * MS, IoCounts { reads: 5, ..IoCounts::default() });
        assert_eq!(summarize(&meter.end_run(270 * MS)), [(270, 1, 6, 0)]);
        let totals = meter.totals();
        assert_eq!((totals[0].0, totals[0].1.events, totals[0].1.busy_us), (7, 2, 230_000.0));
    }

    #[test]
    fn an_unfinished_event_is_counted_as_in_flight() {
        let meter = meter();
        meter.begin(10 * MS);
        assert_eq!(summarize(&meter.close(100 * MS)), [(100, 0, 0, 1)]);
        assert_eq!(summarize(&meter.close(200 * MS)), [(200, 0, 0, 1)]);
        meter.end(Event { due: 10 * MS, start: 10 * MS, end: 240 * MS }, IoCounts::default());
        meter.begin(245 * MS);
        let last = meter.end_run(250 * MS);
        assert_eq!(summarize(&last), [(250, 1, 0, 1)]);
        let accounting = &last[0].closed.phase.as_ref().unwrap().accounting;
        assert_eq!((accounting.due, accounting.done, accounting.unfinished), (2, 1, 1));
    }
}
