//! The plan's keys for the load: connections, due times, phases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::shapes::{ClosedSlices, Shape};

/// Connections, and when each event is due.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Load {
    /// Connections to open; in an open loop the maximum of concurrent events.
    pub connections: u32,
    /// When each event is due.
    #[serde(default)]
    pub shape: Shape,
    /// Closed loops: the pause of a connection between two events. It is not part of any latency. The first pause
    /// begins before the clock starts, at a random instant, so that connections are not synchronised.
    #[serde(default)]
    pub think_time: Option<ThinkTime>,
    /// Open loops: maximum number of events that wait for a free connection, over all engines of the run. The engine
    /// drops and counts further events. Without a limit it drops none.
    #[serde(default)]
    pub queue_limit: Option<u32>,
    /// Events after which a connection is closed and reopened, which counts in the latency of its next event;
    /// 0 for never.
    #[serde(default)]
    pub reconnect_every: u32,
    /// How long a connection may wait for the answer to a statement, in microseconds. After it the run ends and says which
    /// connection waits for what. Without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_timeout_us: Option<u64>,
    /// Closed loops: the most events per second that begin, over all engines of the run. Connections that have ended an event
    /// earlier wait; the wait is not part of any latency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rate_per_s: Option<f64>,
    /// The run ends within a second when the load exceeds one of these limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub abort_if: Option<AbortIf>,
}

impl Load {
    /// The settings of a load that pauses and resumes on command; `None` for every other load.
    pub fn slices(&self) -> Option<ClosedSlices> {
        match self.shape {
            Shape::ClosedSlices(slices) => Some(slices),
            _ => None,
        }
    }

    /// Problems of the load, each one sentence with key, value and limit.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.shape.problems(self.connections);
        if let Some(ThinkTime::Constant { us } | ThinkTime::Exponential { mean_us: us }) = self.think_time {
            if !(1..=limits::DURATION_US).contains(&us) {
                let most = limits::DURATION_US;
                problems.push(format!(
                    "load.think_time is {us} us; it must be between 1 and {most}, or left out"
                ));
            }
            if self.shape.is_open() {
                problems.push(
                    "load.think_time is set, but it has no effect in an open loop; leave it out".into(),
                );
            }
        }
        if self.think_time.is_some() && self.slices().is_some() {
            problems
                .push("load.think_time is set, but a load in slices has no think time; leave it out".into());
        }
        if let Some(us) = self.answer_timeout_us.filter(|us| !(1..=limits::DURATION_US).contains(us)) {
            let most = limits::DURATION_US;
            problems.push(format!(
                "load.answer_timeout_us is {us}; it must be between 1 and {most}, or left out"
            ));
        }
        problems.extend(self.rate_limit_problem());
        problems.extend(self.abort_if.iter().flat_map(AbortIf::problems));
        if let Some(limit) = self.queue_limit.filter(|_| !self.shape.is_open()) {
            problems
                .push(format!("load.queue_limit is {limit}, but a closed loop has no queue; leave it out"));
        }
        problems
    }

    fn rate_limit_problem(&self) -> Option<String> {
        let rate = self.max_rate_per_s?;
        if self.shape.is_open() || self.slices().is_some() {
            let loop_kind = if self.shape.is_open() { "an open loop" } else { "a load in slices" };
            return Some(format!("load.max_rate_per_s is set, but {loop_kind} cannot have it; leave it out"));
        }
        let valid = rate > 0.0 && rate <= limits::RATE_PER_S;
        (!valid).then(|| {
            format!(
                "load.max_rate_per_s is {rate}; it must be above 0 and at most {}, or left out",
                limits::RATE_PER_S
            )
        })
    }
}

/// Limits of a load on a server that others use too.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AbortIf {
    /// Limits of the latency of events.
    #[serde(default)]
    pub latency: Vec<LatencyLimit>,
    /// The most errors per 1,000 events.
    #[serde(default)]
    pub errors_per_1000: Option<f64>,
}

/// The highest value of a percentile of the latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyLimit {
    /// The percentile, such as 99.
    pub percentile: f64,
    /// The highest value, in microseconds.
    pub most_us: u64,
}

impl AbortIf {
    /// Problems of the limits, one sentence each.
    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.latency.is_empty() && self.errors_per_1000.is_none() {
            problems.push("load.abort_if has no limit; add one or leave it out".into());
        }
        for limit in &self.latency {
            if !(limit.percentile > 0.0 && limit.percentile < 100.0) {
                problems.push(format!(
                    "load.abort_if.latency has the percentile {}; it must be above 0 and below 100",
                    limit.percentile
                ));
            }
            if !(1..=limits::DURATION_US).contains(&limit.most_us) {
                let (us, most) = (limit.most_us, limits::DURATION_US);
                problems
                    .push(format!("load.abort_if.latency.most_us is {us}; it must be between 1 and {most}"));
            }
        }
        if let Some(errors) = self.errors_per_1000.filter(|errors| *errors < 0.0) {
            problems.push(format!("load.abort_if.errors_per_1000 is {errors}; it must be 0 or more"));
        }
        problems
    }
}

/// The pause of a connection between two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ThinkTime {
    /// Constant.
    Constant {
        /// Length, in microseconds.
        us: u64,
    },
    /// Exponentially distributed.
    Exponential {
        /// Mean length, in microseconds.
        mean_us: u64,
    },
}

/// Duration of the load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Phases {
    /// Length of the warm-up, in microseconds; 0 for none.
    #[serde(default)]
    pub warmup_us: u64,
    /// Length of the measurement, in microseconds; 0 for no limit.
    pub measure_us: u64,
    /// Events after which the measurement ends, over all workers of this engine, not counting events that started in the
    /// warm-up. The measurement ends with the last of them. Without it only `measure_us` ends the measurement.
    #[serde(default)]
    pub events: Option<u64>,
    /// How long events in flight may take to end after the time limit, in microseconds; 18446744073709551615 for no
    /// limit. They count as unfinished, not as done; in an open loop their latency enters the
    /// percentiles of the phase.
    #[serde(default = "drain_us")]
    pub drain_us: u64,
}

impl Phases {
    /// The time limit in microseconds since the start; `u64::MAX` if there is none.
    pub fn limit_us(&self) -> u64 {
        if self.measure_us == 0 { u64::MAX } else { self.warmup_us.saturating_add(self.measure_us) }
    }
}

fn drain_us() -> u64 {
    10_000_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::Poisson;

    #[test]
    fn pauses_belong_to_closed_loops_and_queues_to_open_ones() {
        let mut load = Load {
            connections: 1,
            shape: Shape::Poisson(Poisson { rate_per_s: 1.0 }),
            think_time: Some(ThinkTime::Constant { us: 0 }),
            queue_limit: Some(0),
            reconnect_every: 0,
            answer_timeout_us: Some(0),
            max_rate_per_s: Some(1.0),
            abort_if: None,
        };
        assert_eq!(load.problems().len(), 4, "{:?}", load.problems());
        load.answer_timeout_us = Some(1);
        load.max_rate_per_s = Some(0.0);
        load.shape = Shape::Closed;
        load.think_time = Some(ThinkTime::Exponential { mean_us: 5 });
        load.abort_if = Some(AbortIf { latency: Vec::new(), errors_per_1000: None });
        let problems = load.problems();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[0].starts_with("load.max_rate_per_s is 0;"), "{problems:?}");
        assert!(problems[1].starts_with("load.abort_if has no limit"), "{problems:?}");
        assert_eq!(problems[2], "load.queue_limit is 0, but a closed loop has no queue; leave it out");
    }
}
