//! The plan's keys for the lengths of ticks, intervals and windows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// How often the engine reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Report {
    /// Length of an interval, in microseconds; with 0, intervals end only at marks and at the ends of phases.
    pub interval_us: u64,
    /// Additional instants at which intervals end, in microseconds since the measurement began, ascending. They do not
    /// shift later intervals, whose boundaries stay multiples of `interval_us`.
    pub marks_us: Vec<u64>,
    /// Length of a tick, in microseconds; 0 for none.
    pub tick_us: u64,
    /// Length of a window of statement statistics, in microseconds. Without intervals the window is the phase.
    pub statements_us: u64,
}

impl Default for Report {
    fn default() -> Self {
        Self { interval_us: 1_000_000, marks_us: Vec::new(), tick_us: 100_000, statements_us: 5_000_000 }
    }
}

impl Report {
    /// Problems of these settings, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut within = |key: &str, value: u64| {
            if !(10_000..=limits::RUN_US).contains(&value) {
                let most = limits::RUN_US;
                problems.push(format!("report.{key} is {value}; it must be between 10000 and {most}"));
            }
        };
        within("statements_us", self.statements_us);
        for (key, value) in [("interval_us", self.interval_us), ("tick_us", self.tick_us)] {
            if value != 0 {
                within(key, value);
            }
        }
        if self.marks_us.len() > limits::MARKS {
            let (count, most) = (self.marks_us.len(), limits::MARKS);
            problems.push(format!("report.marks_us has {count} entries; the maximum is {most}"));
        }
        if !self.marks_us.is_sorted() {
            problems.push("report.marks_us is not in ascending order; sort it".into());
        }
        problems
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_limits_and_marks_an_order() {
        let none = Report { interval_us: 0, tick_us: 0, marks_us: vec![0, 1, 1], ..Report::default() };
        assert!(none.problems().is_empty() && Report::default().problems().is_empty());
        let wrong =
            Report { interval_us: 9_999, statements_us: 0, marks_us: vec![2, 1], ..Report::default() };
        let problems = wrong.problems();
        assert_eq!(problems.len(), 3, "{problems:?}");
        assert!(problems[1].starts_with("report.interval_us is 9999;"), "{problems:?}");
        let many = Report { marks_us: vec![1; limits::MARKS + 1], ..Report::default() };
        assert_eq!(many.problems(), ["report.marks_us has 257 entries; the maximum is 256"]);
    }
}
