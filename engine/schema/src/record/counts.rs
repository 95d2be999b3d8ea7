//! Counters of a span of time, and percentiles of latency.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error_class::ErrorClass;

/// Counters of a span of time. Spans are added up field by field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Transactions that completed without error.
    pub events: u64,
    /// Statements that returned rows; in user-defined SQL those that begin with SELECT or a similar keyword.
    pub reads: u64,
    /// Statements that changed rows; in user-defined SQL those that begin with INSERT, UPDATE, DELETE or a similar keyword.
    pub writes: u64,
    /// Other statements: BEGIN, COMMIT, ROLLBACK, and changes that found no row.
    pub other: u64,
    /// Rows returned.
    pub rows: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Errors by server code, retried ones included.
    pub errors: BTreeMap<String, u64>,
    /// The class of each code in `errors`. Absent in records of older engines.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub error_classes: BTreeMap<String, ErrorClass>,
    /// Events restarted after an error.
    pub retries: u64,
    /// Connections reopened.
    pub reconnects: u64,
    /// Events that began more than 1 ms after they were due.
    pub late: u64,
    /// Time that connections have waited because of `load.max_rate_per_s`, in microseconds. Absent without it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub rate_limit_wait_us: u64,
    /// Due events that never started because the queue was full.
    pub dropped: u64,
    /// Statements that returned or changed another number of rows than the workload expects.
    pub row_count_mismatches: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// A percentile of latency, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentile {
    /// In microseconds: the middle of the bucket.
    pub value_us: f64,
    /// Whether `value_us` is only a lower bound, because events had not ended.
    pub censored: bool,
}

/// Percentiles of latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// The median.
    pub p50: Percentile,
    /// 90 %.
    pub p90: Percentile,
    /// 95 %.
    pub p95: Percentile,
    /// 99 %.
    pub p99: Percentile,
    /// 99.9 %.
    #[serde(rename = "p99.9")]
    pub p99_9: Percentile,
    /// The largest.
    pub max: Percentile,
}
