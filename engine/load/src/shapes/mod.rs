//! Load shapes. Each file has a shape's keys of the plan, their validation and the load curve.

mod load_shape;
mod ramp;
mod slices;
mod steady;
mod steps;

pub use load_shape::Gaps;
use load_shape::LoadShape;
pub use ramp::{ClosedRamp, Ramp};
pub use slices::ClosedSlices;
pub use steady::{Constant, Poisson};
pub use steps::{ClosedSteps, ConnectionStep, RateStep, Steps};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Nanos;
use crate::load_curve::LoadCurve;

/// The load shape: when each event is due.
///
/// A ramp or a list of steps begins when the measurement begins. Its first value also applies during the warm-up, and
/// its last value after the change. Rates are the sums over all engines of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// Closed loop: every connection starts its next event when its previous one has ended.
    #[default]
    Closed,
    /// Closed loop whose number of busy connections changes linearly, rounded to integers.
    ClosedRamp(ClosedRamp),
    /// Closed loop whose number of busy connections changes in steps.
    ClosedSteps(ClosedSteps),
    /// Closed loop that pauses and resumes on command.
    ClosedSlices(ClosedSlices),
    /// Open loop with equal gaps.
    Constant(Constant),
    /// Open loop with exponential gaps, as from independent users.
    Poisson(Poisson),
    /// Open loop whose rate changes linearly.
    Ramp(Ramp),
    /// Open loop whose rate changes in steps.
    Steps(Steps),
}

impl Shape {
    fn as_load_shape(&self) -> Option<&dyn LoadShape> {
        match self {
            Shape::Closed | Shape::ClosedSlices(_) => None,
            Shape::ClosedRamp(shape) => Some(shape),
            Shape::ClosedSteps(shape) => Some(shape),
            Shape::Constant(shape) => Some(shape),
            Shape::Poisson(shape) => Some(shape),
            Shape::Ramp(shape) => Some(shape),
            Shape::Steps(shape) => Some(shape),
        }
    }

    /// Whether the shape is an open loop: events are due at scheduled times, whether or not earlier events have ended.
    pub fn is_open(&self) -> bool {
        self.gaps().is_some()
    }

    /// Distribution of the gaps between events; `None` in a closed loop.
    pub fn gaps(&self) -> Option<Gaps> {
        self.as_load_shape()?.gaps()
    }

    /// In an open loop, the events per second of all engines; in a closed one, the number of busy connections, or
    /// `None` if all connections are always busy. Ramps and steps begin at `begin`.
    pub fn curve(&self, begin: Nanos) -> Option<LoadCurve> {
        Some(self.as_load_shape()?.curve(begin))
    }

    /// Errors in the shape for a load of `connections`, one sentence each.
    pub(crate) fn problems(&self, connections: u32) -> Vec<String> {
        if let Shape::ClosedSlices(slices) = self {
            return slices.problems();
        }
        self.as_load_shape()
            .map(|shape| shape.problems(connections))
            .into_iter()
            .flatten()
            .flatten()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(shape: Shape) -> Vec<String> {
        shape.problems(10)
    }

    #[test]
    fn sound_shapes_have_no_problems() {
        let steps = vec![RateStep { rate_per_s: 0.0, for_us: 1 }, RateStep { rate_per_s: 5.0, for_us: 1 }];
        let connections = vec![ConnectionStep { connections: 10, for_us: 1 }];
        for shape in [
            Shape::Closed,
            Shape::ClosedRamp(ClosedRamp { from: 0, to: 10, over_us: 1 }),
            Shape::ClosedSteps(ClosedSteps { steps: connections }),
            Shape::ClosedSlices(ClosedSlices { guard_us: 0 }),
            Shape::Poisson(Poisson { rate_per_s: 1e7 }),
            Shape::Ramp(Ramp { from_per_s: 0.0, to_per_s: 1.0, over_us: 1, gaps: Gaps::Constant }),
            Shape::Steps(Steps { steps, gaps: Gaps::Poisson }),
        ] {
            assert_eq!(problems(shape.clone()), [""; 0], "{shape:?}");
        }
    }

    #[test]
    fn every_problem_names_key_value_and_limit() {
        let refused = |shape, part: &str| {
            let problems = problems(shape);
            assert!(problems.iter().any(|problem| problem.contains(part)), "{problems:?} lacks {part}");
        };
        let ramp = |from, to, over_us| Shape::ClosedRamp(ClosedRamp { from, to, over_us });
        refused(Shape::Constant(Constant { rate_per_s: -1.0 }), "load.shape.rate_per_s is -1;");
        refused(Shape::Constant(Constant { rate_per_s: f64::NAN }), "load.shape.rate_per_s is NaN;");
        refused(Shape::Poisson(Poisson { rate_per_s: 0.0 }), "starts no events");
        refused(ramp(1, 11, 1), "load.shape.to is 11; the maximum is load.connections, 10");
        refused(ramp(1, 2, 0), "load.shape.over_us is 0;");
        refused(Shape::ClosedSteps(ClosedSteps { steps: vec![] }), "load.shape.steps has 0 entries");
        refused(
            Shape::ClosedSlices(ClosedSlices { guard_us: 60_000_001 }),
            "load.shape.guard_us is 60000001;",
        );
        let step = RateStep { rate_per_s: 2e7, for_us: 0 };
        let shape = Shape::Steps(Steps { steps: vec![step], gaps: Gaps::Poisson });
        refused(shape.clone(), "load.shape.steps[0].rate_per_s is 20000000;");
        refused(shape, "load.shape.steps[0].for_us is 0;");
    }
}
