//! Load shape steps: consecutive rates or numbers of busy connections, each with its duration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_shape::{Gaps, LoadShape, connections_problem, duration_problem, rate_problem, zero_problem};
use crate::load_curve::{LoadCurve, NS_PER_S};
use crate::{Nanos, limits};

/// Open loop whose rate changes in steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Steps {
    /// In chronological order.
    pub steps: Vec<RateStep>,
    /// Gaps between events.
    #[serde(default)]
    pub gaps: Gaps,
}

/// A rate and its duration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Events per second; 0 is a pause.
    pub rate_per_s: f64,
    /// Duration, in microseconds.
    pub for_us: u64,
}

/// Closed loop whose number of busy connections changes in steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedSteps {
    /// In chronological order.
    pub steps: Vec<ConnectionStep>,
}

/// A number of busy connections and its duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionStep {
    /// Busy connections; 0 is a pause.
    pub connections: u32,
    /// Duration, in microseconds.
    pub for_us: u64,
}

impl LoadShape for Steps {
    fn gaps(&self) -> Option<Gaps> {
        Some(self.gaps)
    }

    fn curve(&self, begin: Nanos) -> LoadCurve {
        LoadCurve::steps(begin, self.steps.iter().map(|step| (step.rate_per_s, step.for_us * 1000)))
    }

    fn problems(&self, _: u32) -> Vec<Option<String>> {
        let each = self.steps.iter().enumerate().flat_map(|(at, step)| {
            let rate = rate_problem(&format!("steps[{at}].rate_per_s"), step.rate_per_s);
            [rate, duration_problem(&format!("steps[{at}].for_us"), step.for_us)]
        });
        let rates = self.steps.iter().map(|step| step.rate_per_s);
        [count_problem(self.steps.len()), zero_problem(rates)].into_iter().chain(each).collect()
    }
}

impl LoadShape for ClosedSteps {
    fn curve(&self, begin: Nanos) -> LoadCurve {
        LoadCurve::steps(begin, self.steps.iter().map(|step| (step.connections.into(), step.for_us * 1000)))
    }

    fn problems(&self, connections: u32) -> Vec<Option<String>> {
        let each = self.steps.iter().enumerate().flat_map(|(at, step)| {
            let key = format!("steps[{at}].connections");
            let busy = connections_problem(&key, step.connections, connections);
            [busy, duration_problem(&format!("steps[{at}].for_us"), step.for_us)]
        });
        let connections = self.steps.iter().map(|step| step.connections.into());
        [count_problem(self.steps.len()), zero_problem(connections)].into_iter().chain(each).collect()
    }
}

fn count_problem(steps: usize) -> Option<String> {
    let most = limits::STEPS;
    (!(1..=most).contains(&steps))
        .then(|| format!("load.shape.steps has {steps} entries; it must have between 1 and {most}"))
}

impl LoadCurve {
    /// `steps` are pairs of value and duration. The first value also applies before `begin`; the last one has no end.
    fn steps(begin: Nanos, steps: impl IntoIterator<Item = (f64, Nanos)>) -> Self {
        let mut steps = steps.into_iter();
        let (first, duration) = steps.next().unwrap_or_default();
        let mut end = begin + duration;
        steps.fold(Self::constant(first), |curve, (value, duration)| {
            let start = end;
            end += duration;
            curve.with_segment(start as f64 / NS_PER_S, value, 0.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    #[test]
    fn steps_follow_one_another_and_the_last_one_stays() {
        let curve = LoadCurve::steps(2 * S, [(10.0, 3 * S), (0.0, S), (40.0, 2 * S)]);
        let seen: Vec<_> = [0, 2, 4, 5, 6, 7, 8, 50].map(|time| curve.value_at(time * S)).to_vec();
        assert_eq!(seen, [10.0, 10.0, 10.0, 0.0, 40.0, 40.0, 40.0, 40.0]);
    }

    #[test]
    fn nothing_is_due_in_a_pause() {
        let curve = LoadCurve::steps(0, [(10.0, 3 * S), (0.0, S), (40.0, 2 * S)]);
        assert_eq!(curve.time_of_area(29.0), 2_900_000_000);
        assert_eq!(curve.time_of_area(30.0), 4 * S, "the 31st event belongs to the step after the pause");
        assert_eq!(curve.time_of_area(70.0), 5 * S);
    }
}
