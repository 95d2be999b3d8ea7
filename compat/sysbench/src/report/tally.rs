//! Figures of a stretch of a run: of an interval, or of all since the last full report.

use std::collections::BTreeMap;

use dbdyno_runner::external::mysql_errors;
use dbdyno_schema::histogram;
use dbdyno_schema::record::{Interval, UserTotals};

use super::super::latency;

/// Figures of a stretch of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// First microsecond.
    pub start_us: u64,
    /// First microsecond after it.
    pub end_us: u64,
    /// Events that ended.
    pub events: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements.
    pub other: u64,
    /// Errors after which an event started anew.
    pub errors: u64,
    /// All errors by the server's number.
    pub errors_by_code: BTreeMap<String, u64>,
    /// Connections opened again.
    pub reconnects: u64,
    /// Sum of the latencies, in microseconds.
    pub latency_sum_us: f64,
    /// Smallest latency, in microseconds.
    pub latency_min_us: Option<f64>,
    /// Largest latency, in microseconds.
    pub latency_max_us: Option<f64>,
    /// sysbench's buckets, ascending.
    pub buckets: Vec<(u16, u64)>,
    /// By user; empty where that is not known.
    pub users: Vec<UserTotals>,
    /// Users that have not ended.
    pub active: u32,
    /// Events that wait at the end of it.
    pub backlog: u64,
    /// Events under way at the end of it.
    pub in_flight: u64,
}

impl Tally {
    /// Nothing yet, from here on.
    pub fn from(start_us: u64) -> Self {
        Self { start_us, end_us: start_us, ..Self::default() }
    }

    /// Adds an interval that follows.
    pub fn add(&mut self, interval: &Interval) {
        let counts = &interval.counts;
        self.end_us = interval.end_us;
        self.events += counts.events;
        self.reads += counts.reads;
        self.writes += counts.writes;
        self.other += counts.other;
        self.errors += ignored(interval);
        for (code, &count) in &counts.errors {
            *self.errors_by_code.entry(code.clone()).or_default() += count;
        }
        self.reconnects += counts.reconnects;
        self.latency_sum_us += interval.latency_sum_us;
        self.latency_min_us = fold(self.latency_min_us, interval.latency_min_us, f64::min);
        self.latency_max_us = fold(self.latency_max_us, interval.latency_max_us, f64::max);
        histogram::merge_counts(&mut self.buckets, &interval.log_buckets);
        if !interval.users.is_empty() {
            self.users.clone_from(&interval.users);
        }
        self.active = interval.users_active;
        self.backlog = interval.backlog;
        self.in_flight = interval.in_flight;
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end_us - self.start_us) as f64 / 1e6
    }

    /// Statements of all kinds.
    pub fn queries(&self) -> u64 {
        self.reads + self.writes + self.other
    }

    /// So many a second; 0 where no time has passed.
    pub fn rate(&self, count: u64) -> f64 {
        let seconds = self.seconds();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// A percentile in ms, as sysbench has it.
    pub fn percentile_ms(&self, percent: f64) -> f64 {
        latency::scale().percentile(&self.buckets, percent)
    }
}

/// Ignored errors. After a lost connection sysbench opens another one and counts no error.
fn ignored(interval: &Interval) -> u64 {
    let is_lost = |code: &str| code.parse().is_ok_and(|number| mysql_errors::CLIENT_LOST.contains(&number));
    interval.counts.errors.iter().filter(|(code, _)| !is_lost(code)).map(|(_, count)| count).sum()
}

fn fold(one: Option<f64>, other: Option<f64>, pick: fn(f64, f64) -> f64) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(pick(one, other)),
        (one, other) => one.or(other),
    }
}
