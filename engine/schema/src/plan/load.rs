//! How many connections, when each event is due, and for how long.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many connections, and when each event is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Connections opened; in an open loop the most that can be busy at once.
    pub connections: u32,
    /// When each event is due.
    #[serde(default)]
    pub shape: Shape,
    /// Closed loops: the pause of a connection between two events. It is no part of any latency. The first pause
    /// begins before the clock starts, at a random instant, so that connections do not march in step.
    #[serde(default)]
    pub think_time: Option<ThinkTime>,
    /// Open loops: events that may wait for a free connection, over the whole fleet. One that is due when so many
    /// wait is dropped and counted. Without it nothing is ever dropped.
    #[serde(default)]
    pub queue_limit: Option<u32>,
    /// After so many events a connection is closed and opened anew, which counts in the latency of its next event;
    /// 0 for never.
    #[serde(default)]
    pub reconnect_every: u32,
}

/// When each event is due.
///
/// A shape that changes begins to change with the measurement; in the warm-up its first level holds, and after its
/// end its last one. Rates are over the whole fleet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Shape {
    /// Every connection starts its next event when the last one has ended.
    #[default]
    Closed,
    /// A closed loop whose number of busy connections changes evenly, rounded to whole connections.
    ClosedRamp {
        /// Busy connections at the beginning.
        from: u32,
        /// Busy connections at the end.
        to: u32,
        /// Length of the change, in microseconds.
        over_us: u64,
    },
    /// A closed loop whose number of busy connections changes in steps.
    ClosedSteps {
        /// One after the other.
        steps: Vec<ConnectionStep>,
    },
    /// Open loop with equal gaps.
    Constant {
        /// Events per second.
        rate_per_s: f64,
    },
    /// Open loop with exponential gaps: independent users.
    Poisson {
        /// Mean events per second.
        rate_per_s: f64,
    },
    /// Open loop whose rate changes evenly.
    Ramp {
        /// Events per second at the beginning.
        from_per_s: f64,
        /// Events per second at the end.
        to_per_s: f64,
        /// Length of the change, in microseconds.
        over_us: u64,
        /// Gaps between events.
        #[serde(default)]
        gaps: Gaps,
    },
    /// Open loop whose rate changes in steps.
    Steps {
        /// One after the other.
        steps: Vec<RateStep>,
        /// Gaps between events.
        #[serde(default)]
        gaps: Gaps,
    },
}

impl Shape {
    /// Whether events are due by a schedule of their own, whatever became of those before them.
    pub fn is_open(&self) -> bool {
        match self {
            Shape::Closed | Shape::ClosedRamp { .. } | Shape::ClosedSteps { .. } => false,
            Shape::Constant { .. } | Shape::Poisson { .. } | Shape::Ramp { .. } | Shape::Steps { .. } => true,
        }
    }
}

/// Gaps between the events of an open loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// As even as the rate allows.
    Constant,
    /// Exponential: independent users.
    #[default]
    Poisson,
}

/// A rate for some time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Events per second; 0 is a pause.
    pub rate_per_s: f64,
    /// For how long, in microseconds.
    pub for_us: u64,
}

/// A number of busy connections for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionStep {
    /// Busy connections; 0 is a pause.
    pub connections: u32,
    /// For how long, in microseconds.
    pub for_us: u64,
}

/// The pause of a connection between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ThinkTime {
    /// Always the same.
    Constant {
        /// In microseconds.
        us: u64,
    },
    /// Exponential: users who think.
    Exponential {
        /// In microseconds.
        mean_us: u64,
    },
}

/// For how long the load runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Length of the warm-up, in microseconds; 0 for none.
    #[serde(default)]
    pub warmup_us: u64,
    /// Length of the measurement, in microseconds; 0 for no limit.
    pub measure_us: u64,
    /// Events after which the measurement ends, over all workers of this engine; those started in the warm-up do not
    /// count. The measurement then ends with the last of them. Without it the time alone ends the measurement.
    #[serde(default)]
    pub events: Option<u64>,
    /// How long events in flight may take to end after the time limit, in microseconds; 18446744073709551615 for as
    /// long as they like. They are unfinished: not counted as done, and in an open loop their latency enters the
    /// percentiles of the phase.
    #[serde(default = "drain_us")]
    pub drain_us: u64,
}

impl Phases {
    /// First microsecond after the time limit, counted from the start; `u64::MAX` without one.
    pub fn limit_us(&self) -> u64 {
        if self.measure_us == 0 { u64::MAX } else { self.warmup_us.saturating_add(self.measure_us) }
    }
}

fn drain_us() -> u64 {
    10_000_000
}
