//! Slices: the times in which a load that pauses and resumes on command may begin events.
//!
//! ```text
//!        resumed     counted_from                        end         last event ended
//! paused ──┼──────────────┼───────────────────────────────┼─────────────────┼── paused
//!          │ guard time   │ events that end here count    │ no event begins │
//! ```

use crate::Nanos;

/// One slice. The times are the same on all workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slice {
    /// First instant at which an event may begin.
    pub resumed: Nanos,
    /// End of the guard time: events that end earlier do not count in the slice.
    pub counted_from: Nanos,
    /// First instant at which no event begins.
    pub end: Nanos,
}

impl Slice {
    /// The slice of `for_us` microseconds that begins at `now`, rounded down to a microsecond.
    pub fn new(now: Nanos, guard_us: u64, for_us: u64) -> Self {
        let resumed = now / 1000 * 1000;
        Self { resumed, counted_from: resumed + guard_us * 1000, end: resumed + for_us * 1000 }
    }

    /// The instants at which the counts before, in and after the guard time are separated.
    pub fn boundaries(&self) -> [Nanos; 3] {
        [self.resumed, self.counted_from, self.end]
    }
}

/// Admits the events of one worker during slices.
#[derive(Clone, Debug, Default)]
pub struct SliceGate {
    slice: Slice,
    first_begin: Option<Nanos>,
    /// Whether the worker has paused since the end of the slice.
    is_paused: bool,
}

impl SliceGate {
    /// A gate that is closed until the first slice.
    pub fn closed() -> Self {
        Self { is_paused: true, ..Self::default() }
    }

    /// Opens the gate for `slice`. Returns false if it is the current slice already.
    pub fn resume(&mut self, slice: Slice) -> bool {
        let is_new = slice != self.slice;
        if is_new {
            *self = Self { slice, first_begin: None, is_paused: false };
        }
        is_new
    }

    /// Whether an event may begin at `now`.
    #[inline]
    pub fn is_open(&self, now: Nanos) -> bool {
        now < self.slice.end
    }

    /// Records that a user that waited for the slice begins its first event.
    pub fn note_begin(&mut self, now: Nanos) {
        self.first_begin.get_or_insert(now);
    }

    /// The begin of the worker's first event, in the first call after the slice at which no event is in flight.
    pub fn take_pause(&mut self, now: Nanos, in_flight: u64) -> Option<WorkerPause> {
        if self.is_paused || self.is_open(now) || in_flight > 0 {
            return None;
        }
        self.is_paused = true;
        Some(WorkerPause { first_begin: self.first_begin, paused: now })
    }
}

/// The first begin and the last end of one worker's events in a slice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerPause {
    /// When the first event began; `None` without events.
    pub first_begin: Option<Nanos>,
    /// When the last event had ended.
    pub paused: Nanos,
}

impl WorkerPause {
    /// Adds another worker.
    pub fn merge(&mut self, other: WorkerPause) {
        self.first_begin = [self.first_begin, other.first_begin].into_iter().flatten().min();
        self.paused = self.paused.max(other.paused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    #[test]
    fn a_slice_begins_at_a_microsecond_and_separates_the_guard_time() {
        let slice = Slice::new(5_000_999, 2_000, 10_000);
        assert_eq!(slice.boundaries(), [5 * MS, 7 * MS, 15 * MS]);
    }

    #[test]
    fn events_begin_only_in_a_slice() {
        let mut gate = SliceGate::closed();
        assert!(!gate.is_open(0) && gate.take_pause(0, 0).is_none(), "it paused before the first slice");
        let slice = Slice::new(5 * MS, 0, 10_000);
        assert!(gate.resume(slice));
        assert!(gate.is_open(15 * MS - 1) && !gate.is_open(15 * MS));
        assert!(gate.resume(Slice::new(20 * MS, 0, 10_000)) && gate.is_open(29 * MS));
    }

    #[test]
    fn a_worker_pauses_once_and_only_without_events_in_flight() {
        let mut gate = SliceGate::closed();
        let slice = Slice::new(5 * MS, 0, 10_000);
        gate.resume(slice);
        gate.note_begin(6 * MS);
        gate.note_begin(7 * MS);
        assert_eq!(gate.take_pause(14 * MS, 0), None, "the slice has not ended");
        assert_eq!(gate.take_pause(15 * MS, 1), None, "an event is in flight");
        let paused = WorkerPause { first_begin: Some(6 * MS), paused: 17 * MS };
        assert_eq!([gate.take_pause(17 * MS, 0), gate.take_pause(18 * MS, 0)], [Some(paused), None]);
        assert!(!gate.resume(slice) && gate.take_pause(19 * MS, 0).is_none(), "the slice is known");
    }

    #[test]
    fn a_pause_lasts_from_the_first_begin_to_the_last_end_of_all_workers() {
        let mut pause = WorkerPause { first_begin: None, paused: 9 };
        pause.merge(WorkerPause { first_begin: Some(5), paused: 8 });
        pause.merge(WorkerPause { first_begin: Some(6), paused: 7 });
        assert_eq!(pause, WorkerPause { first_begin: Some(5), paused: 9 });
    }
}
