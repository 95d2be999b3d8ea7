//! What can be wrong with a plan that has the right shape.

use super::{Distribution, LoadingForm, LoadingMethod, Plan, Target};

/// Limits of a plan, checked by [`Plan::faults`].
pub mod limits {
    /// Most connections of one engine.
    pub const CONNECTIONS: u32 = 65_535;
    /// Most places where one target listens.
    pub const ENDPOINTS: usize = 1000;
    /// Most event loops of one engine.
    pub const WORKERS: u32 = 64;
    /// Longest step of a load, and longest time to wait for a lost connection: one day.
    pub const DURATION_US: u64 = 86_400_000_000;
    /// Longest measurement and warm-up: as many seconds as sysbench's options hold.
    pub const RUN_US: u64 = i32::MAX as u64 * 1_000_000;
    /// Most tables.
    pub const TABLES: u32 = 100_000;
    /// Most rows per table. Beyond the signed 32-bit INTEGER the id column is BIGINT.
    pub const TABLE_SIZE: u64 = 1 << 40;
    /// Most parameters of one statement, as the MySQL protocol numbers them.
    pub const PARAMETERS: u32 = 65_535;
    /// Most events per second.
    pub const RATE_PER_S: f64 = 1e7;
    /// Most steps of a load.
    pub const STEPS: usize = 1000;
    /// Most marks of a report.
    pub const MARKS: usize = 256;
    /// Most statements of a workload in SQL, repeated ones as often as they are sent.
    pub const SQL_STATEMENTS: u64 = 1_000_000;
    /// Longest statement, in bytes: what fits into one packet of the MySQL protocol, with room for parameters.
    pub const SQL_BYTES: usize = 15 << 20;
    /// Most columns of a generated table: as many as PostgreSQL allows.
    pub const COLUMNS: usize = 1600;
    /// Most characters of a generated string.
    pub const TEXT_LENGTH: u32 = 1_000_000;
    /// Most characters of an alphabet.
    pub const ALPHABET: usize = 65_536;
    /// Most bytes of a generated row; a statement holds one at least.
    pub const ROW_BYTES: u64 = 8 << 20;
    /// Most loading connections.
    pub const STREAMS: u32 = 256;
}

impl Plan {
    /// Everything that is wrong with the plan, each as one sentence with key, value and limit.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut within = |key: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                faults.push(format!("{key} is {value}; it must be between {low} and {high}"));
            }
        };
        let options = &self.workload.options;
        within("schema", self.schema.into(), crate::SCHEMA_VERSION.into(), crate::SCHEMA_VERSION.into());
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
        faults.extend(self.loading_fault());
        if !self.loading.create_table_options.is_empty() && self.loading.form == LoadingForm::Marked {
            faults.push(
                "loading.create_table_options is given, and form marked says itself what its tables are; use form \
                 sysbench"
                    .into(),
            );
        }
        faults.extend(self.report.faults());
        faults.extend(self.target.faults());
        faults.extend(self.retry.faults());
        faults.extend(self.reconnect.faults());
        faults.extend(self.load.faults());
        faults.extend(self.workload.keys.fault("workload.keys"));
        faults.extend(self.workload.sql_faults(self.target.quoting()));
        faults.extend(self.script_faults());
        faults
    }

    /// A way for rows to travel that the target does not have.
    fn loading_fault(&self) -> Option<String> {
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

impl Distribution {
    /// What is wrong with the parameters of the distribution called `key`.
    pub(super) fn fault(&self, key: &str) -> Option<String> {
        match *self {
            Distribution::Gaussian { iterations } | Distribution::Special { iterations, .. }
                if !(1..=1000).contains(&iterations) =>
            {
                Some(format!("{key}.iterations is {iterations}; it must be between 1 and 1000"))
            }
            Distribution::Special { percent, hot_percent, .. } if percent > 100 || hot_percent > 100 => {
                Some(format!("{key}.percent is {percent} and hot_percent {hot_percent}; 100 is the most"))
            }
            Distribution::Pareto { h } if !(h > 0.0 && h < 1.0) => {
                Some(format!("{key}.h is {h}; it must be above 0 and below 1"))
            }
            Distribution::Zipfian { exponent } if !(0.0..=100.0).contains(&exponent) => {
                Some(format!("{key}.exponent is {exponent}; it must be between 0 and 100"))
            }
            _ => None,
        }
    }
}
