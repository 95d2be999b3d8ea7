//! The timeline of a run: phases, and the bounds at which counts are handed over.
//!
//! ```text
//! 0        warm-up        warmup_us          measure            warmup_us + measure_us
//! |--+--+--+--+--+--+--+--|--+--+--+--+--+--+--+--+--+--+--+--+--|   ticks
//! |-----------|-----------|-----------|-----------|-------------|    intervals, counted anew in each phase
//! ```
//! A phase's last span may be shorter than the others. Every bound of an interval is a bound of a tick, and every
//! bound of a statement window is a bound of an interval, whatever lengths the plan asks for: lengths are
//! rounded up to a multiple of the shorter kind.

use dbdyno_door::plan::{Phases, Report};
use dbdyno_door::record::PhaseName;

use crate::Nanos;

/// Where a run stands in its phases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    phases: Vec<PhaseSpan>,
    tick: Nanos,
    interval: Nanos,
    window: Nanos,
}

/// One phase of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhaseSpan {
    /// Which.
    pub name: PhaseName,
    /// First instant.
    pub start: Nanos,
    /// First instant after it.
    pub end: Nanos,
}

/// The end of the span that holds an instant, and what else ends there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// When.
    pub at: Nanos,
    /// The phase before it.
    pub phase: PhaseName,
    /// An interval ends here.
    pub interval: bool,
    /// A window of statement statistics ends here.
    pub window: bool,
    /// The phase ends here.
    pub phase_end: bool,
}

impl Timeline {
    /// The timeline of a plan.
    pub fn new(phases: &Phases, report: &Report) -> Self {
        let (warmup, measure) = (phases.warmup_us * 1000, phases.measure_us * 1000);
        let mut spans = Vec::new();
        if warmup > 0 {
            spans.push(PhaseSpan { name: PhaseName::Warmup, start: 0, end: warmup });
        }
        spans.push(PhaseSpan { name: PhaseName::Measure, start: warmup, end: warmup + measure });
        let interval = report.interval_us * 1000;
        let tick = if report.tick_us == 0 { interval } else { report.tick_us * 1000 };
        let interval = interval.next_multiple_of(tick);
        let window = (report.statements_us * 1000).next_multiple_of(interval);
        Self { phases: spans, tick, interval, window }
    }

    /// First instant after the last phase.
    pub fn end(&self) -> Nanos {
        self.phases.last().map_or(0, |phase| phase.end)
    }

    /// Ends the run at `at`, earlier than planned.
    pub fn truncate(&mut self, at: Nanos) {
        self.phases.retain(|phase| phase.start < at);
        if let Some(last) = self.phases.last_mut() {
            last.end = last.end.min(at);
        }
    }

    /// The phase that holds `now`.
    pub fn phase_at(&self, now: Nanos) -> Option<PhaseSpan> {
        self.phases.iter().copied().find(|phase| (phase.start..phase.end).contains(&now))
    }

    /// The first bound after `now`; `None` when the run is over.
    pub fn bound_after(&self, now: Nanos) -> Option<Bound> {
        let phase = self.phase_at(now)?;
        let since = now - phase.start;
        let at = (phase.start + (since / self.tick + 1) * self.tick).min(phase.end);
        let phase_end = at == phase.end;
        Some(Bound {
            at,
            phase: phase.name,
            interval: phase_end || (at - phase.start).is_multiple_of(self.interval),
            window: phase_end || (at - phase.start).is_multiple_of(self.window),
            phase_end,
        })
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_door::plan::LastEvents;

    use super::*;

    const MS: Nanos = 1_000_000;

    fn timeline(warmup_ms: u64, measure_ms: u64, interval_ms: u64, tick_ms: u64) -> Timeline {
        Timeline::new(
            &Phases {
                warmup_us: warmup_ms * 1000,
                measure_us: measure_ms * 1000,
                events: None,
                last_events: LastEvents::default(),
                drain_us: 0,
            },
            &Report {
                interval_us: interval_ms * 1000,
                tick_us: tick_ms * 1000,
                statements_us: 2000 * 1000,
                ..Report::default()
            },
        )
    }

    fn bounds(timeline: &Timeline) -> Vec<Bound> {
        std::iter::successors(timeline.bound_after(0), |bound| timeline.bound_after(bound.at)).collect()
    }

    #[test]
    fn every_phase_starts_its_own_intervals_and_may_end_in_a_short_one() {
        let bounds = bounds(&timeline(150, 250, 100, 0));
        let seen: Vec<_> = bounds.iter().map(|bound| (bound.at / MS, bound.phase_end)).collect();
        assert_eq!(seen, [(100, false), (150, true), (250, false), (350, false), (400, true)]);
        assert!(bounds.iter().all(|bound| bound.interval));
        assert_eq!(bounds[1].phase, PhaseName::Warmup);
        assert_eq!(bounds[2].phase, PhaseName::Measure);
    }

    #[test]
    fn ticks_lie_inside_intervals() {
        let bounds = bounds(&timeline(0, 1000, 500, 100));
        assert_eq!(bounds.len(), 10);
        assert_eq!(
            bounds.iter().filter(|bound| bound.interval).map(|b| b.at / MS).collect::<Vec<_>>(),
            [500, 1000]
        );
    }

    #[test]
    fn an_instant_on_a_bound_belongs_to_the_span_after_it() {
        let timeline = timeline(100, 100, 50, 0);
        assert_eq!(timeline.bound_after(100 * MS).unwrap().at, 150 * MS);
        assert_eq!(timeline.phase_at(100 * MS).unwrap().name, PhaseName::Measure);
        assert_eq!(timeline.bound_after(200 * MS), None);
    }
}
