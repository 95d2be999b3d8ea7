//! The counters of one thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbdyno_load::Nanos;
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::{ClosedSpans, Event, ExtraCounts, Recorder};
use dbdyno_schema::record::UserTotals;

use crate::test::Work;

/// The index of the only user of a thread's recorder.
const USER: usize = 0;

/// Aligned so that no two threads write to the same cache line or prefetched pair of lines.
#[repr(align(128))]
pub(super) struct Meter {
    counters: Mutex<Counters>,
    /// Due time of the current event plus 1, in nanoseconds; 0 between events. The conductor reads it without the lock.
    begun: AtomicU64,
}

/// The counters that the lock of a meter protects.
pub(super) struct Counters {
    recorder: Recorder,
    /// Reads, writes and bytes since the last closed span.
    work: Work,
    closed: Vec<ThreadSpan>,
    /// Whether the recorder knows the start of the current event.
    registered: bool,
}

/// A span that the meter of one thread has closed.
pub(super) struct ThreadSpan {
    pub(super) bound: Nanos,
    pub(super) closed: ClosedSpans,
    pub(super) work: Work,
}

impl Meter {
    pub(super) fn new(timeline: &Timeline, extra_counts: &ExtraCounts, number: u64, open_loop: bool) -> Self {
        let recorder = Recorder::new(timeline.clone(), 0, open_loop).counting(extra_counts, &[number]);
        let counters = Counters { recorder, work: Work::default(), closed: Vec::new(), registered: false };
        Self { counters: Mutex::new(counters), begun: AtomicU64::new(0) }
    }

    fn counters(&self) -> MutexGuard<'_, Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    pub(super) fn begin(&self, due: Nanos) {
        // Relaxed ordering is enough: the lock in `end` orders this store, and `close` may see the store some
        // nanoseconds late.
        self.begun.store(due + 1, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn end(&self, event: Event, work: Work) {
        let mut counters = self.counters();
        counters.advance(event.end);
        if !std::mem::take(&mut counters.registered) {
            counters.recorder.begin(USER, event.due);
        }
        counters.recorder.event(USER, event);
        counters.work += work;
        self.begun.store(0, Ordering::Relaxed);
    }

    /// Ends the thread at `now` and adds the work of [`Runner::finish`](crate::test::Runner::finish).
    pub(super) fn leave(&self, now: Nanos, work: Work) {
        let mut counters = self.counters();
        counters.advance(now);
        counters.work += work;
        counters.recorder.leave(now);
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
        let begun = self.begun.load(Ordering::Relaxed);
        if begun != 0 && !counters.registered {
            counters.registered = true;
            counters.recorder.begin(USER, begun - 1);
        }
        update(&mut counters);
        std::mem::take(&mut counters.closed)
    }

    /// The thread's number and totals.
    pub(super) fn totals(&self) -> Vec<(u64, UserTotals)> {
        self.counters().recorder.user_totals()
    }
}

impl Counters {
    #[inline]
    fn advance(&mut self, now: Nanos) {
        if self.recorder.next_bound().is_some_and(|bound| bound <= now) {
            self.close(now);
        }
    }

    #[cold]
    fn close(&mut self, now: Nanos) {
        self.recorder.advance(now);
        for (bound, closed) in self.recorder.take_closed_spans() {
            // All work belongs to the first span: `end` closes spans before it adds the work of an event.
            self.closed.push(ThreadSpan { bound, closed, work: std::mem::take(&mut self.work) });
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_load::timeline::MeasurementEnd;
    use dbdyno_schema::plan::{Phases, Report};

    use super::*;

    const MS: Nanos = 1_000_000;

    /// 300 ms in intervals of 100 ms.
    fn meter() -> Meter {
        let phases = Phases { warmup_us: 0, measure_us: 300_000, events: None, drain_us: u64::MAX };
        let report = Report { interval_us: 100_000, tick_us: 0, ..Report::default() };
        let timeline = Timeline::new(&phases, &report, MeasurementEnd::AfterLastEvent);
        let extra_counts = ExtraCounts { users: true, ..ExtraCounts::default() };
        Meter::new(&timeline, &extra_counts, 7, false)
    }

    fn event(meter: &Meter, start: Nanos, end: Nanos) {
        meter.begin(start);
        meter.end(Event { due: start, start, end }, Work { reads: 1, ..Work::default() });
    }

    fn seen(spans: &[ThreadSpan]) -> Vec<(Nanos, u64, u64, u64)> {
        let row = |part: &ThreadSpan| {
            let span = part.closed.interval.as_ref().unwrap();
            (part.bound / MS, span.counts.events, part.work.reads, span.in_flight)
        };
        spans.iter().map(row).collect()
    }

    #[test]
    fn work_is_counted_in_the_span_in_which_its_event_ended() {
        let meter = meter();
        event(&meter, 10 * MS, 50 * MS);
        event(&meter, 60 * MS, 250 * MS);
        assert_eq!(seen(&meter.close(250 * MS)), [(100, 1, 1, 0), (200, 0, 0, 0)]);
        meter.leave(260 * MS, Work { reads: 5, ..Work::default() });
        assert_eq!(seen(&meter.end_run(270 * MS)), [(270, 1, 6, 0)]);
        let totals = meter.totals();
        assert_eq!((totals[0].0, totals[0].1.events, totals[0].1.busy_us), (7, 2, 230_000.0));
    }

    #[test]
    fn an_event_under_way_is_seen_from_outside() {
        let meter = meter();
        meter.begin(10 * MS);
        assert_eq!(seen(&meter.close(100 * MS)), [(100, 0, 0, 1)]);
        assert_eq!(seen(&meter.close(200 * MS)), [(200, 0, 0, 1)]);
        meter.end(Event { due: 10 * MS, start: 10 * MS, end: 240 * MS }, Work::default());
        meter.begin(245 * MS);
        let last = meter.end_run(250 * MS);
        assert_eq!(seen(&last), [(250, 1, 0, 1)]);
        let accounting = &last[0].closed.phase.as_ref().unwrap().accounting;
        assert_eq!((accounting.due, accounting.done, accounting.unfinished), (2, 1, 1));
    }
}
