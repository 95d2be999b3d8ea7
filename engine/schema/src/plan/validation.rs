//! Validation of a plan.

use super::{LoadingMethod, Plan, Target, limits};
use crate::SCHEMA_VERSION;

impl Plan {
    /// Errors in the plan, each one sentence with key, value and limit.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut within = |key: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                problems.push(format!("{key} is {value}; it must be between {low} and {high}"));
            }
        };
        let options = &self.workload.options;
        within("schema", self.schema.into(), SCHEMA_VERSION.into(), SCHEMA_VERSION.into());
        within("load.connections", self.load.connections.into(), 1, limits::CONNECTIONS.into());
        within("client.workers", self.client.workers.into(), 1, limits::WORKERS.into());
        if self.phases.measure_us != 0 {
            within("phases.measure_us", self.phases.measure_us, 1_000, limits::RUN_US);
        }
        if let Some(events) = self.phases.events {
            within("phases.events", events, 1, u64::MAX);
        }
        within("phases.warmup_us", self.phases.warmup_us, 0, limits::RUN_US);
        within("workload.options.tables", options.tables.into(), 1, limits::TABLES.into());
        within("workload.options.table_size", options.table_size, 1, limits::TABLE_SIZE);
        within("workload.options.range_size", options.range_size, 1, limits::TABLE_SIZE);
        within("workload.options.random_points", options.random_points.into(), 1, limits::PARAMETERS.into());
        let ranges = options.number_of_ranges.into();
        within("workload.options.number_of_ranges", ranges, 1, u64::from(limits::PARAMETERS) / 2);
        within("loading.streams", self.loading.streams.into(), 1, limits::STREAMS.into());
        within("segment.count", self.segment.count.into(), 1, 10_000);
        within("segment.index", self.segment.index.into(), 0, self.segment.count.max(1) as u64 - 1);
        problems.extend(self.loading_problem());
        problems.extend(self.report.problems());
        problems.extend(self.target.problems());
        problems.extend(self.retry.problems());
        problems.extend(self.reconnect.problems());
        problems.extend(self.load.problems());
        problems.extend(self.workload.keys.problem("workload.keys"));
        problems.extend(self.workload.sql_problems(self.target.quoting()));
        problems.extend(self.script_problems());
        problems.extend(self.slices_problems());
        problems.extend(self.pauses_problem());
        if self.load.abort_if.is_some() && self.report.interval_us == 0 {
            problems.push("load.abort_if needs intervals; set report.interval_us".into());
        }
        if self.session.iter().any(|sql| sql.trim().is_empty()) {
            problems.push("session contains an empty statement; leave it out".into());
        }
        problems
    }

    /// The error of a loading method that the target does not have.
    fn loading_problem(&self) -> Option<String> {
        let (method, instead) = match (self.loading.method, &self.target) {
            (LoadingMethod::LoadData, Target::Postgresql { .. }) => ("load-data", "copy"),
            (LoadingMethod::Copy, Target::Mysql { .. }) => ("copy", "load-data"),
            _ => return None,
        };
        Some(format!(
            "loading.method is {method}, which the target's protocol does not have; use auto, {instead} or insert"
        ))
    }
}
