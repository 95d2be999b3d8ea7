//! The timeline of a run: its phases, and the times at which workers report their counters.
//!
//! ```text
//! 0        warm-up        warmup_us          measure            warmup_us + measure_us
//! |--+--+--+--+--+--+--+--|--+--+--+--+--+--+--+--+--+--+--+--+--|   ticks
//! |-----------|-----------|-----------|-----------|-------------|    intervals, counted from each phase
//! ```
//! A span is a tick, an interval or a window of statement statistics. The last span of a phase may be shorter than the
//! others. The length of an interval is rounded up to a multiple of the tick, and the length of a window to a multiple of
//! the interval, so that a tick ends with every interval and an interval with every window. A mark ends an interval at an
//! additional time and does not shift the other ends.
//!
//! If the measurement ends after the last event, its end is not known in advance. The timeline then extends to the drain
//! limit, if there is one, and is truncated when the last event ends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::plan::Phases;
use crate::report::Report;

/// A phase of a run: the warm-up or the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// The warm-up, which is not part of the result.
    Warmup,
    /// The measurement.
    Measure,
}

/// When the measurement ends if events are in flight at the time limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MeasurementEnd {
    /// At the time limit. Events in flight count as unfinished. They may end within the plan's `drain_us`; in an open
    /// loop their latency then enters the percentiles of the phase.
    #[default]
    AtTimeLimit,
    /// When the last event in flight has ended. These events count as done. Events that have not ended `drain_us` after
    /// the time limit are unfinished, and the run ends with `forced-shutdown`.
    AfterLastEvent,
}

/// The phases of a run and the spans inside them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    phases: Vec<PhaseSpan>,
    /// Length of a tick; 0 without ticks.
    tick: Nanos,
    /// Length of an interval; 0 if only marks and phases end intervals.
    interval: Nanos,
    /// Length of a window of statement statistics; 0 if the window is the phase.
    window: Nanos,
    /// Times of the marks, ascending.
    marks: Vec<Nanos>,
}

/// One phase of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Whether this is the warm-up or the measurement.
    pub name: PhaseName,
    /// The first instant of the phase.
    pub start: Nanos,
    /// The first instant after the phase.
    pub end: Nanos,
}

/// The end of a span (a tick, an interval, a window of statement statistics, or a phase), and which of these end then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanEnd {
    /// When the span ends.
    pub time: Nanos,
    /// The phase that contains the span.
    pub phase: PhaseName,
    /// Whether an interval ends then.
    pub ends_interval: bool,
    /// Whether this is a mark (an additional end of an interval, set in the plan) or the end of the phase.
    pub is_mark: bool,
    /// Whether a window of statement statistics ends then.
    pub ends_window: bool,
    /// Whether the phase ends then.
    pub ends_phase: bool,
}

impl Timeline {
    /// The timeline of a plan.
    pub fn new(phases: &Phases, report: &Report, measurement_end: MeasurementEnd) -> Self {
        let warmup = phases.warmup_us * 1000;
        let mut spans = Vec::new();
        if warmup > 0 {
            spans.push(PhaseSpan { name: PhaseName::Warmup, start: 0, end: warmup });
        }
        spans.push(PhaseSpan { name: PhaseName::Measure, start: warmup, end: end(phases, measurement_end) });
        let interval = report.interval_us * 1000;
        let tick = if report.tick_us == 0 { interval } else { report.tick_us * 1000 };
        let interval = rounded(interval, tick);
        let window = if interval == 0 { 0 } else { rounded(report.statements_us * 1000, interval) };
        let marks = report.marks_us.iter().map(|mark_us| warmup.saturating_add(mark_us.saturating_mul(1000)));
        Self { phases: spans, tick, interval, window, marks: marks.collect() }
    }

    /// The first instant after the last phase.
    pub fn end(&self) -> Nanos {
        self.phases.last().map_or(0, |phase| phase.end)
    }

    /// Ends the run at `at`, before its planned end.
    pub fn truncate(&mut self, at: Nanos) {
        self.phases.retain(|phase| phase.start < at);
        if let Some(last) = self.phases.last_mut() {
            last.end = last.end.min(at);
        }
    }

    /// Replaces the marks. `marks` are ascending, and no span that ends after the first of them has been closed.
    pub fn set_marks(&mut self, marks: &[Nanos]) {
        self.marks = marks.to_vec();
    }

    /// The phase that contains `now`.
    pub fn phase_at(&self, now: Nanos) -> Option<PhaseSpan> {
        self.phases.iter().copied().find(|phase| (phase.start..phase.end).contains(&now))
    }

    /// The first end of a span after `now`; `None` after the end of the run.
    pub fn next_span_end(&self, now: Nanos) -> Option<SpanEnd> {
        let phase = self.phase_at(now)?;
        let next = |length: Nanos| match (now - phase.start).checked_div(length) {
            None => Nanos::MAX,
            Some(passed) => phase.start.saturating_add((passed + 1).saturating_mul(length)),
        };
        let mark = self.marks.get(self.marks.partition_point(|&mark| mark <= now)).copied();
        let mark = mark.unwrap_or(Nanos::MAX);
        let time = next(self.tick).min(mark).min(phase.end);
        let ends_phase = time == phase.end;
        let ends = |length: Nanos| ends_phase || length != 0 && (time - phase.start).is_multiple_of(length);
        Some(SpanEnd {
            time,
            phase: phase.name,
            ends_interval: time == mark || ends(self.interval),
            is_mark: time == mark || ends_phase,
            ends_window: ends(self.window),
            ends_phase,
        })
    }
}

/// Latest possible end of the measurement; `Nanos::MAX` if there is none.
fn end(phases: &Phases, measurement_end: MeasurementEnd) -> Nanos {
    let end_us = match measurement_end {
        MeasurementEnd::AtTimeLimit => phases.limit_us(),
        MeasurementEnd::AfterLastEvent => phases.limit_us().saturating_add(phases.drain_us),
    };
    end_us.saturating_mul(1000)
}

/// `length` rounded up to a multiple of `unit`, unless `unit` is 0.
fn rounded(length: Nanos, unit: Nanos) -> Nanos {
    if unit == 0 { length } else { length.next_multiple_of(unit) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn timeline(warmup_ms: u64, measure_ms: u64, interval_ms: u64, tick_ms: u64) -> Timeline {
        marked((warmup_ms, measure_ms), (interval_ms, tick_ms), &[], MeasurementEnd::AtTimeLimit)
    }

    fn marked(
        (warmup_ms, measure_ms): (u64, u64),
        (interval_ms, tick_ms): (u64, u64),
        marks_ms: &[u64],
        measurement_end: MeasurementEnd,
    ) -> Timeline {
        Timeline::new(
            &Phases {
                warmup_us: warmup_ms * 1000,
                measure_us: measure_ms * 1000,
                events: None,
                drain_us: 500_000,
            },
            &Report {
                interval_us: interval_ms * 1000,
                marks_us: marks_ms.iter().map(|ms| ms * 1000).collect(),
                tick_us: tick_ms * 1000,
                statements_us: 2000 * 1000,
            },
            measurement_end,
        )
    }

    fn ends(timeline: &Timeline) -> Vec<SpanEnd> {
        std::iter::successors(timeline.next_span_end(0), |end| timeline.next_span_end(end.time)).collect()
    }

    #[test]
    fn intervals_start_with_their_phase_and_the_last_one_may_be_short() {
        let ends = ends(&timeline(150, 250, 100, 0));
        let seen: Vec<_> = ends.iter().map(|end| (end.time / MS, end.ends_phase)).collect();
        assert_eq!(seen, [(100, false), (150, true), (250, false), (350, false), (400, true)]);
        assert!(ends.iter().all(|end| end.ends_interval));
        assert_eq!(ends[1].phase, PhaseName::Warmup);
        assert_eq!(ends[2].phase, PhaseName::Measure);
    }

    #[test]
    fn ticks_lie_inside_intervals() {
        let ends = ends(&timeline(0, 1000, 500, 100));
        assert_eq!(ends.len(), 10);
        assert_eq!(
            ends.iter().filter(|end| end.ends_interval).map(|end| end.time / MS).collect::<Vec<_>>(),
            [500, 1000]
        );
    }

    #[test]
    fn the_end_of_a_span_belongs_to_the_next_span() {
        let timeline = timeline(100, 100, 50, 0);
        assert_eq!(timeline.next_span_end(100 * MS).unwrap().time, 150 * MS);
        assert_eq!(timeline.phase_at(100 * MS).unwrap().name, PhaseName::Measure);
        assert_eq!(timeline.next_span_end(200 * MS), None);
    }

    fn intervals(timeline: &Timeline, count: usize) -> Vec<u64> {
        let ends = std::iter::successors(timeline.next_span_end(0), |end| timeline.next_span_end(end.time));
        ends.filter(|end| end.ends_interval).take(count).map(|end| end.time / MS).collect()
    }

    #[test]
    fn a_mark_ends_an_interval_and_does_not_shift_others() {
        let timeline = marked((100, 1000), (400, 0), &[0, 150, 400, 5000], MeasurementEnd::AtTimeLimit);
        assert_eq!(intervals(&timeline, 9), [100, 250, 500, 900, 1100]);
        let marks = ends(&timeline).into_iter().filter(|end| end.is_mark).map(|end| end.time / MS);
        assert_eq!(marks.collect::<Vec<_>>(), [100, 250, 500, 1100]);
        assert!(!timeline.next_span_end(100 * MS).unwrap().ends_window, "a mark ends no window");
    }

    #[test]
    fn without_intervals_spans_end_at_marks_and_phase_ends() {
        let timeline = marked((100, 1000), (0, 0), &[300], MeasurementEnd::AtTimeLimit);
        assert_eq!(intervals(&timeline, 9), [100, 400, 1100]);
        let ticking = marked((0, 1000), (0, 250), &[300], MeasurementEnd::AtTimeLimit);
        assert_eq!(intervals(&ticking, 9), [300, 1000]);
        assert_eq!(ends(&ticking).len(), 5);
        assert_eq!(ends(&ticking).iter().filter(|end| end.ends_window).count(), 1);
    }

    #[test]
    fn without_a_time_limit_intervals_continue_until_the_timeline_is_truncated() {
        let mut timeline = marked((0, 0), (100, 0), &[], MeasurementEnd::AtTimeLimit);
        assert_eq!(intervals(&timeline, 3), [100, 200, 300]);
        assert_eq!(timeline.end(), Nanos::MAX);
        timeline.truncate(250 * MS);
        assert_eq!(intervals(&timeline, 9), [100, 200, 250]);
        let nothing = marked((0, 0), (0, 0), &[], MeasurementEnd::AtTimeLimit);
        assert_eq!(nothing.next_span_end(5).map(|end| (end.time, end.ends_phase)), Some((Nanos::MAX, true)));
    }

    #[test]
    fn counted_events_may_end_until_they_are_given_up() {
        let timeline = marked((0, 200), (100, 0), &[], MeasurementEnd::AfterLastEvent);
        assert_eq!(intervals(&timeline, 9), [100, 200, 300, 400, 500, 600, 700]);
        assert_eq!(ends(&timeline).iter().filter(|end| end.ends_phase).count(), 1);
    }
}
