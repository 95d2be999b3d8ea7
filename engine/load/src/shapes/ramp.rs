//! Load shape ramp: a rate or a number of busy connections that changes linearly to another one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load_shape::{Gaps, LoadShape, connections_problem, duration_problem, rate_problem, zero_problem};
use crate::Nanos;
use crate::load_curve::{LoadCurve, NS_PER_S};

/// Open loop whose rate changes linearly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ramp {
    /// Events per second at the beginning.
    pub from_per_s: f64,
    /// Events per second at the end.
    pub to_per_s: f64,
    /// Duration of the change, in microseconds.
    pub over_us: u64,
    /// Gaps between events.
    #[serde(default)]
    pub gaps: Gaps,
}

/// Closed loop whose number of busy connections changes linearly, rounded to integers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedRamp {
    /// Busy connections at the beginning.
    pub from: u32,
    /// Busy connections at the end.
    pub to: u32,
    /// Duration of the change, in microseconds.
    pub over_us: u64,
}

impl LoadShape for Ramp {
    fn gaps(&self) -> Option<Gaps> {
        Some(self.gaps)
    }

    fn curve(&self, begin: Nanos) -> LoadCurve {
        LoadCurve::ramp(self.from_per_s, self.to_per_s, begin, self.over_us * 1000)
    }

    fn problems(&self, _: u32) -> Vec<Option<String>> {
        vec![
            duration_problem("over_us", self.over_us),
            rate_problem("from_per_s", self.from_per_s),
            rate_problem("to_per_s", self.to_per_s),
            zero_problem([self.from_per_s, self.to_per_s]),
        ]
    }
}

impl LoadShape for ClosedRamp {
    fn curve(&self, begin: Nanos) -> LoadCurve {
        LoadCurve::ramp(self.from.into(), self.to.into(), begin, self.over_us * 1000)
    }

    fn problems(&self, connections: u32) -> Vec<Option<String>> {
        vec![
            duration_problem("over_us", self.over_us),
            connections_problem("from", self.from, connections),
            connections_problem("to", self.to, connections),
            zero_problem([self.from.into(), self.to.into()]),
        ]
    }
}

impl LoadCurve {
    /// `from` until `begin`, then a linear change to `to` within `over`, then `to`.
    pub(crate) fn ramp(from: f64, to: f64, begin: Nanos, over: Nanos) -> Self {
        let (begin_s, over_s) = (begin as f64 / NS_PER_S, over as f64 / NS_PER_S);
        Self::constant(from).with_segment(begin_s, from, (to - from) / over_s).with_segment(
            begin_s + over_s,
            to,
            0.0,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = 1_000_000_000;

    #[test]
    fn a_ramp_holds_then_climbs_then_holds() {
        let curve = LoadCurve::ramp(100.0, 300.0, 10 * S, 20 * S);
        let seen: Vec<_> = [0, 10, 15, 20, 30, 99].map(|time| curve.value_at(time * S)).to_vec();
        assert_eq!(seen, [100.0, 100.0, 150.0, 200.0, 300.0, 300.0]);
    }

    /// Areas worked out by hand: 1000 by 10 s; 100 x + 5 x^2 more after x seconds of ramp; 4000 more at its end.
    #[test]
    fn events_are_due_where_the_area_says() {
        let curve = LoadCurve::ramp(100.0, 300.0, 10 * S, 20 * S);
        for (area, time_s) in
            [(0.0, 0), (500.0, 5), (1000.0, 10), (2500.0, 20), (5000.0, 30), (5300.0, 31), (8000.0, 40)]
        {
            assert_eq!(curve.time_of_area(area), time_s * S, "{area}");
        }
    }

    #[test]
    fn a_ramp_may_begin_and_end_at_nothing() {
        let up = LoadCurve::ramp(0.0, 10.0, 5 * S, 10 * S);
        assert_eq!(up.time_of_area(0.0), 5 * S, "nothing is due in the warm-up");
        assert_eq!(up.time_of_area(50.0), 15 * S);
        let down = LoadCurve::ramp(10.0, 0.0, 0, 10 * S);
        // 10 x - x^2 / 2 = 32 at x = 4.
        assert_eq!(down.time_of_area(32.0), 4 * S);
        assert_eq!(down.time_of_area(51.0), Nanos::MAX);
    }

    #[test]
    fn a_connection_joins_where_the_ramp_passes_it() {
        let curve = LoadCurve::ramp(0.0, 10.0, 0, 10 * S);
        assert_eq!(curve.first_time_at_least(2.5, 0), Some(2_500_000_000));
        assert_eq!(curve.first_time_at_least(9.5, 0), Some(9_500_000_000));
        assert_eq!(curve.first_time_at_least(10.5, 0), None);
    }
}
