//! The totals of a period of a run: of an interval, or of the time since the last full report.

use std::collections::BTreeMap;

use dbdyno_runner::external::mysql_errors;
use dbdyno_schema::histogram;
use dbdyno_schema::record::{Interval, UserTotals};

use super::super::latency;

/// The totals of a period of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals {
    /// Start of the measurement, in microseconds after the start of the run.
    pub origin_us: u64,
    pub start_us: u64,
    pub end_us: u64,
    pub events: u64,
    pub reads: u64,
    pub writes: u64,
    pub other: u64,
    /// Number of ignored errors, after each of which the event restarts.
    pub errors: u64,
    /// All errors by error number.
    pub errors_by_code: BTreeMap<String, u64>,
    pub reconnects: u64,
    pub latency_sum_us: f64,
    pub latency_min_us: Option<f64>,
    pub latency_max_us: Option<f64>,
    /// The counts in sysbench's latency buckets, ascending.
    pub buckets: Vec<(u16, u64)>,
    /// Totals by user; empty if the records do not contain them.
    pub users: Vec<UserTotals>,
    /// Number of users that have not finished.
    pub active: u32,
    /// Number of queued events at the end of the period.
    pub backlog: u64,
    /// Number of running events at the end of the period.
    pub in_flight: u64,
}

impl Totals {
    /// The empty totals of a period that begins at `start_us`.
    pub fn starting(origin_us: u64, start_us: u64) -> Self {
        Self { origin_us, start_us, end_us: start_us, ..Self::default() }
    }

    /// Adds the next interval.
    pub fn add(&mut self, interval: &Interval) {
        let counts = &interval.counts;
        self.end_us = interval.end_us;
        self.events += counts.events;
        self.reads += counts.reads;
        self.writes += counts.writes;
        self.other += counts.other;
        for (code, &count) in &counts.errors {
            *self.errors_by_code.entry(code.clone()).or_default() += count;
            // After a lost connection, sysbench reconnects and does not count an error.
            let is_lost = code.parse().is_ok_and(|number| mysql_errors::CLIENT_LOST.contains(&number));
            self.errors += if is_lost { 0 } else { count };
        }
        self.reconnects += counts.reconnects;
        self.latency_sum_us += interval.latency_sum_us;
        self.latency_min_us = self.latency_min_us.into_iter().chain(interval.latency_min_us).reduce(f64::min);
        self.latency_max_us = self.latency_max_us.into_iter().chain(interval.latency_max_us).reduce(f64::max);
        histogram::merge_counts(&mut self.buckets, &interval.log_buckets);
        if !interval.users.is_empty() {
            self.users.clone_from(&interval.users);
        }
        self.active = interval.users_active;
        self.backlog = interval.backlog;
        self.in_flight = interval.in_flight;
    }

    /// Length of the period in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_us - self.start_us) as f64 / 1e6
    }

    /// Seconds from the start of the measurement to the end of the period.
    pub fn at_s(&self) -> f64 {
        self.end_us.saturating_sub(self.origin_us) as f64 / 1e6
    }

    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.other
    }

    /// `count` per second of the period; 0 if no time has passed.
    pub fn rate(&self, count: u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// Minimum, mean, maximum and sum of the latencies in milliseconds; 0 without events.
    pub fn latency_ms(&self) -> [f64; 4] {
        let mean_us = if self.events == 0 { 0.0 } else { self.latency_sum_us / self.events as f64 };
        let [min_us, max_us] = [self.latency_min_us, self.latency_max_us].map(Option::unwrap_or_default);
        [min_us, mean_us, max_us, self.latency_sum_us].map(|us| us / 1e3)
    }

    /// A percentile from sysbench's buckets, in milliseconds.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        latency::scale().percentile(&self.buckets, percent)
    }
}
