//! What is counted, in which part of a run, and percentiles of latency.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::error_class::ErrorClass;

/// What was counted in a span of time. Sums over spans are sums over fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Transactions that completed without error.
    pub events: u64,
    /// Statements that returned rows; of SQL of the user's own those that begin with SELECT or the like.
    pub reads: u64,
    /// Statements that changed rows; of SQL of the user's own those that begin with INSERT, UPDATE, DELETE or the like.
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
    /// Events started again after an error.
    pub retries: u64,
    /// Connections opened again.
    pub reconnects: u64,
    /// Events that began more than 1 ms after they were due.
    pub late: u64,
    /// Events that were due and not started because a queue was full.
    pub dropped: u64,
    /// Statements that returned or changed another number of rows than the workload promises.
    pub row_count_mismatches: u64,
}

/// A percentile of latency by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentile {
    /// In microseconds: the middle of its bucket.
    pub value_us: f64,
    /// Events that had not ended could change it: it is more than `value_us`, which is certain.
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
