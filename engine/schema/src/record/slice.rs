//! The record of a slice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counts::{Counts, Percentiles};
use super::gaps::Gaps;
use super::generator::Generator;
use crate::histogram::Buckets;

/// One slice of a load that pauses and resumes on command. The engine writes it when the load has paused: the last event
/// has ended, and no connection is busy until the next resume.
///
/// Counts and latencies are those of `[start_us, end_us)`, after the guard time. The sum of `guard_events`, `events` and
/// the count of `in_flight_latency_us` over all slices equals the events of the phase in `end`, unless the end of the run
/// cuts off a slice; that slice has no record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slice {
    /// Number of the slice, from the command that resumed the load.
    pub slice: u64,
    /// When the load resumed, which is the beginning of the guard time.
    pub resumed_us: u64,
    /// When the first event began; null without events.
    pub began_us: Option<u64>,
    /// First instant after the guard time.
    pub start_us: u64,
    /// First instant at which no event begins.
    pub end_us: u64,
    /// When the last event ended.
    pub paused_us: u64,
    /// Events that ended in the guard time.
    pub guard_events: u64,
    /// Events in flight at `end_us`. They ended by `paused_us`. Their statements and errors are only in the totals of `end`.
    pub in_flight: u64,
    /// Latency of those of them that completed without error. The longer an event takes, the likelier it is in flight, so
    /// `latency_us` alone has too few long events. Empty in records of older engines.
    #[serde(default)]
    pub in_flight_latency_us: Buckets,
    /// Counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// Latency of the events.
    pub latency_us: Buckets,
    /// Exact sum of the latencies.
    pub latency_sum_us: f64,
    /// Smallest latency; null without events.
    pub latency_min_us: Option<f64>,
    /// Largest latency; null without events.
    pub latency_max_us: Option<f64>,
    /// Times without a completed event. All 0 in records of older engines.
    #[serde(default)]
    pub gaps: Gaps,
    /// Percentiles of the latencies; null without events.
    pub percentiles_us: Option<Percentiles>,
    /// Resource use of the load generator.
    pub generator: Generator,
}
