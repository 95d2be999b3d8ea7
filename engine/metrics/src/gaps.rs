//! Gaps: spans of time in which no event completed.
//!
//! A gap of the run is a time in which no worker completed an event, so it is the intersection of one gap of each worker.
//! Each worker therefore keeps every gap that is long enough to matter, not only its longest one.

use dbdyno_load::Nanos;
use dbdyno_schema::record::{GAP_US_MIN, Gaps};

/// Shorter gaps are dropped, except at the limits of a span, beyond which a gap may continue.
const SHORTEST: Nanos = GAP_US_MIN * 1000;

/// Beginning and end of each gap of a span, ascending. The first begins with the span, and the last ends with it.
pub type GapList = Vec<(Nanos, Nanos)>;

/// The gaps of the current span of one worker.
#[derive(Debug, Default)]
pub(crate) struct GapRecorder {
    since: Nanos,
    gaps: GapList,
}

impl GapRecorder {
    /// Records that an event completed. One that completed before its span began counts from the beginning: the
    /// span's end was read after it.
    #[inline]
    pub(crate) fn complete_event(&mut self, end: Nanos) {
        let end = end.max(self.since);
        if end >= self.since + SHORTEST || self.gaps.is_empty() {
            self.gaps.push((self.since, end));
        }
        self.since = end;
    }

    /// The gaps of the span that ends at `end`; the next one begins there. The last event may have completed later.
    pub(crate) fn take(&mut self, end: Nanos) -> GapList {
        self.gaps.push((self.since.min(end), end));
        self.since = end;
        std::mem::take(&mut self.gaps)
    }
}

/// The gaps that two workers have in common in the span from `start` to `end`.
pub(crate) fn intersect(
    one: &[(Nanos, Nanos)],
    other: &[(Nanos, Nanos)],
    (start, end): (Nanos, Nanos),
) -> GapList {
    let (mut common, mut i, mut j) = (GapList::new(), 0, 0);
    while let (Some(a), Some(b)) = (one.get(i), other.get(j)) {
        let (low, high) = (a.0.max(b.0), a.1.min(b.1));
        if low <= high && (high - low >= SHORTEST || low == start || high == end) {
            common.push((low, high));
        }
        if a.1 <= b.1 { i += 1 } else { j += 1 }
    }
    common
}

/// The gaps of consecutive spans, of which only the longest is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct GapTotals {
    start: Nanos,
    end: Nanos,
    /// When the first event completed.
    first: Option<Nanos>,
    /// When the last event completed; `start` without events.
    since: Nanos,
    longest: (Nanos, Nanos),
}

impl GapTotals {
    pub(crate) fn new(start: Nanos) -> Self {
        Self { start, end: start, since: start, ..Self::default() }
    }

    /// Adds the gaps of the next span.
    pub(crate) fn add(&mut self, gaps: &[(Nanos, Nanos)]) {
        let [first, .., last] = gaps else {
            // Without events, or without any worker's span.
            if let [(_, end)] = gaps {
                self.end = *end;
                self.keep_longest((self.since, *end));
            }
            return;
        };
        self.first.get_or_insert(first.1);
        self.end = last.1;
        self.keep_longest((self.since, first.1));
        gaps[1..].iter().for_each(|&gap| self.keep_longest(gap));
        self.since = last.0;
    }

    fn keep_longest(&mut self, gap: (Nanos, Nanos)) {
        // An event may have completed before the phase of its span began.
        if gap.1.saturating_sub(gap.0) >= SHORTEST.max(self.longest.1 - self.longest.0 + 1) {
            self.longest = gap;
        }
    }

    pub(crate) fn to_record(&self) -> Gaps {
        Gaps {
            longest_us: (self.longest.1 - self.longest.0) / 1000,
            longest_start_us: self.longest.0 / 1000,
            leading_us: self.first.unwrap_or(self.end).saturating_sub(self.start) / 1000,
            trailing_us: self.end.saturating_sub(self.since) / 1000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn gaps(span: (Nanos, Nanos), ends: &[Nanos]) -> GapList {
        let mut recorder = GapRecorder { since: span.0 * MS, gaps: GapList::new() };
        ends.iter().for_each(|end| recorder.complete_event(end * MS));
        recorder.take(span.1 * MS)
    }

    fn record(spans: &[GapList]) -> Gaps {
        let mut totals = GapTotals::new(spans[0][0].0);
        spans.iter().for_each(|gaps| totals.add(gaps));
        totals.to_record()
    }

    #[test]
    fn the_longest_gap_is_between_two_events_or_at_a_limit_of_the_span() {
        let seen = |ends: &[Nanos]| {
            let Gaps { longest_us, longest_start_us, leading_us, trailing_us } =
                record(&[gaps((0, 100), ends)]);
            [longest_us, longest_start_us, leading_us, trailing_us].map(|us| us / 1000)
        };
        assert_eq!(seen(&[10, 20, 60, 95]), [40, 20, 10, 5]);
        assert_eq!(seen(&[70, 95]), [70, 0, 70, 5]);
        assert_eq!(seen(&[10, 15]), [85, 15, 10, 85]);
        assert_eq!(seen(&[]), [100, 0, 100, 100]);
        assert_eq!(seen(&[0]), [100, 0, 0, 100]);
    }

    #[test]
    fn an_event_beyond_the_limits_of_its_span_makes_no_gap_of_negative_length() {
        // The last event of the first span completed after its end, the first one of the second before its beginning.
        let mut recorder = GapRecorder { since: 0, gaps: GapList::new() };
        recorder.complete_event(101 * MS);
        let first = recorder.take(100 * MS);
        recorder.complete_event(99 * MS);
        let second = recorder.take(200 * MS);
        assert!(first.iter().chain(&second).all(|gap| gap.0 <= gap.1), "{first:?} {second:?}");
        let mut totals = GapTotals::new(150 * MS);
        totals.add(&gaps((0, 100), &[50]));
        assert_eq!(totals.to_record().leading_us, 0);
        assert_eq!(record(&[first, second]).longest_us, 101_000);
    }

    #[test]
    fn a_gap_continues_over_the_limits_of_spans() {
        let spans = [gaps((0, 100), &[10, 80]), gaps((100, 200), &[]), gaps((200, 300), &[230, 290])];
        let expected =
            Gaps { longest_us: 150_000, longest_start_us: 80_000, leading_us: 10_000, trailing_us: 10_000 };
        assert_eq!(record(&spans), expected);
        let silent =
            Gaps { longest_us: 200_000, leading_us: 200_000, trailing_us: 200_000, ..Gaps::default() };
        assert_eq!(record(&[gaps((0, 100), &[]), gaps((100, 200), &[])]), silent);
    }

    #[test]
    fn a_gap_of_the_run_is_one_of_all_workers() {
        // Against the gaps of all events in one list, for many random events.
        let mut state = 1_u64;
        let mut random = |most: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % most
        };
        for _ in 0..500 {
            let mut ends: Vec<Vec<Nanos>> =
                (0..3).map(|_| (0..random(9)).map(|_| random(100)).collect()).collect();
            ends.iter_mut().for_each(|ends| ends.sort_unstable());
            let lists = ends.iter().map(|ends| gaps((0, 100), ends));
            let merged = lists.reduce(|one, other| intersect(&one, &other, (0, 100 * MS))).unwrap();
            let mut all = ends.concat();
            all.sort_unstable();
            assert_eq!(record(&[merged]), record(&[gaps((0, 100), &all)]), "{ends:?}");
        }
    }

    #[test]
    fn short_gaps_are_not_kept() {
        let mut recorder = GapRecorder::default();
        (1..1000).for_each(|end| recorder.complete_event(end * MS / 2));
        assert_eq!(recorder.take(500 * MS), [(0, MS / 2), (999 * MS / 2, 500 * MS)]);
        let mut totals = GapTotals::new(0);
        totals.add(&[(0, MS / 2), (999 * MS / 2, 500 * MS)]);
        assert_eq!(totals.to_record().longest_us, 0);
    }
}
