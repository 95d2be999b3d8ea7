//! What is counted of one thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use dbdyno_load::Nanos;
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::{ClosedSpans, Event, ExtraCounts, Recorder};
use dbdyno_schema::record::UserTotals;

use crate::test::Work;

/// One thread's place: every thread has a recorder of its own.
const SEAT: usize = 0;

/// A thread's meter, and what the conductor can see of it without its lock. No two threads write into one line of the
/// processor's cache, nor into a pair of them.
#[repr(align(128))]
pub(super) struct Shared {
    meter: Mutex<Meter>,
    /// When the event that is under way was due, and 1; 0 between two events.
    begun: AtomicU64,
}

/// What one thread has counted and not handed over.
pub(super) struct Meter {
    recorder: Recorder,
    /// Since the last span that was closed.
    work: Work,
    closed: Vec<Part>,
    /// Whether the recorder knows of the event that is under way.
    told: bool,
}

/// A span that one thread has closed.
pub(super) struct Part {
    pub(super) bound: Nanos,
    pub(super) closed: ClosedSpans,
    pub(super) work: Work,
}

impl Shared {
    pub(super) fn new(timeline: &Timeline, extra_counts: &ExtraCounts, number: u64, open_loop: bool) -> Self {
        let recorder = Recorder::new(timeline.clone(), 0, open_loop).counting(extra_counts, &[number]);
        let meter = Meter { recorder, work: Work::default(), closed: Vec::new(), told: false };
        Self { meter: Mutex::new(meter), begun: AtomicU64::new(0) }
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread begins an event that was due at `due`.
    #[inline]
    pub(super) fn begin(&self, due: Nanos) {
        // Who takes the lock sees it; who does not, sees it some nanoseconds later.
        self.begun.store(due + 1, Ordering::Relaxed);
    }

    /// The event has ended.
    #[inline]
    pub(super) fn end(&self, event: Event, work: Work) {
        let mut meter = self.meter();
        meter.advance(event.end);
        if !std::mem::take(&mut meter.told) {
            meter.recorder.begin(SEAT, event.due);
        }
        meter.recorder.event(SEAT, event);
        meter.work += work;
        self.begun.store(0, Ordering::Relaxed);
    }

    /// The thread has ended at `now`, after some last work.
    pub(super) fn leave(&self, now: Nanos, work: Work) {
        let mut meter = self.meter();
        meter.advance(now);
        meter.work += work;
        meter.recorder.leave(now);
    }

    /// Closes what ended at or before `now`, and hands it over.
    pub(super) fn close(&self, now: Nanos) -> Vec<Part> {
        self.settled(|meter| meter.advance(now))
    }

    /// Ends the run at `at`, which lies after everything that is closed.
    pub(super) fn end_run(&self, at: Nanos) -> Vec<Part> {
        self.settled(|meter| {
            meter.recorder.stop_at(at);
            meter.advance(at);
        })
    }

    /// What was handed over once the recorder knows of the event under way and `settle` has been done.
    fn settled(&self, settle: impl FnOnce(&mut Meter)) -> Vec<Part> {
        let mut meter = self.meter();
        let begun = self.begun.load(Ordering::Relaxed);
        if begun != 0 && !meter.told {
            meter.told = true;
            meter.recorder.begin(SEAT, begun - 1);
        }
        settle(&mut meter);
        std::mem::take(&mut meter.closed)
    }

    /// What the thread did from the start on, with its number.
    pub(super) fn totals(&self) -> Vec<(u64, UserTotals)> {
        self.meter().recorder.user_totals()
    }
}

impl Meter {
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
            // All of it was done before the first of these bounds: whoever works looks at the bounds first.
            self.closed.push(Part { bound, closed, work: std::mem::take(&mut self.work) });
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_load::timeline::LastEvents;
    use dbdyno_schema::plan::{Phases, Report};

    use super::*;

    const MS: Nanos = 1_000_000;

    /// 300 ms in intervals of 100 ms.
    fn shared() -> Shared {
        let phases = Phases { warmup_us: 0, measure_us: 300_000, events: None, drain_us: u64::MAX };
        let report = Report { interval_us: 100_000, tick_us: 0, ..Report::default() };
        let timeline = Timeline::new(&phases, &report, LastEvents::Counted);
        let extra_counts = ExtraCounts { users: true, ..ExtraCounts::default() };
        Shared::new(&timeline, &extra_counts, 7, false)
    }

    fn event(shared: &Shared, start: Nanos, end: Nanos) {
        shared.begin(start);
        shared.end(Event { due: start, start, end }, Work { reads: 1, ..Work::default() });
    }

    fn seen(parts: &[Part]) -> Vec<(Nanos, u64, u64, u64)> {
        let row = |part: &Part| {
            let span = part.closed.interval.as_ref().unwrap();
            (part.bound / MS, span.counts.events, part.work.reads, span.in_flight)
        };
        parts.iter().map(row).collect()
    }

    #[test]
    fn work_is_counted_in_the_span_in_which_its_event_ended() {
        let shared = shared();
        event(&shared, 10 * MS, 50 * MS);
        event(&shared, 60 * MS, 250 * MS);
        assert_eq!(seen(&shared.close(250 * MS)), [(100, 1, 1, 0), (200, 0, 0, 0)]);
        shared.leave(260 * MS, Work { reads: 5, ..Work::default() });
        assert_eq!(seen(&shared.end_run(270 * MS)), [(270, 1, 6, 0)]);
        let totals = shared.totals();
        assert_eq!((totals[0].0, totals[0].1.events, totals[0].1.busy_us), (7, 2, 230_000.0));
    }

    #[test]
    fn an_event_under_way_is_seen_from_outside() {
        let shared = shared();
        shared.begin(10 * MS);
        assert_eq!(seen(&shared.close(100 * MS)), [(100, 0, 0, 1)]);
        assert_eq!(seen(&shared.close(200 * MS)), [(200, 0, 0, 1)]);
        shared.end(Event { due: 10 * MS, start: 10 * MS, end: 240 * MS }, Work::default());
        shared.begin(245 * MS);
        let last = shared.end_run(250 * MS);
        assert_eq!(seen(&last), [(250, 1, 0, 1)]);
        let accounting = &last[0].closed.phase.as_ref().unwrap().accounting;
        assert_eq!((accounting.due, accounting.done, accounting.unfinished), (2, 1, 1));
    }
}
