//! The records of the engine: one JSON object a line, `{"type":…,"data":{…}}`.
//!
//! Times are microseconds since the start of the run, monotonic. Every count belongs to the half-open span
//! `[start_us, end_us)` of its record; the sum of a phase's intervals equals that phase's totals in `end`.
//!
//! ```text
//! hello → ready → phase(warmup) → tick* interval* statements* → phase(measure) → … → end
//! hello → ready → phase(measure) → slice* → statements* → end      (load in slices)
//! ```
//! If a stream has no `end` line, the engine died.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Buckets;
use crate::plan::Plan;

mod counts;
mod end;
mod error_class;
mod gaps;
mod generator;
mod loading;
mod slice;

pub use counts::{Counts, Percentile, Percentiles};
pub use dbdyno_load::timeline::PhaseName;
pub use end::{Accounting, End, EndReason, FailedAction, Failure, PhaseTotals, ServerFailure, UserTotals};
pub use error_class::ErrorClass;
pub use gaps::{GAP_US_MIN, Gaps};
pub use generator::{CLIENT_DELAY_LIMIT, CPU_LIMIT, Generator, LAG_US_LIMIT};
pub use loading::{Loaded, LoadedTable, Loading, LoadingStep, LoadingWay};
pub use slice::Slice;

/// One line of the event stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Record {
    /// First line: the engine and its plan.
    Hello(Box<Hello>),
    /// Every connection is open and its statements are prepared.
    Ready(Ready),
    /// A phase begins.
    Phase(Phase),
    /// Number of events in a short span, for warm-up detection.
    Tick(Tick),
    /// One reporting interval.
    Interval(Box<Interval>),
    /// One slice of a load that pauses and resumes on command.
    Slice(Box<Slice>),
    /// Statistics per statement kind.
    Statements(Statements),
    /// Progress of `prepare`, `cleanup` and `prewarm`.
    Loading(Loading),
    /// Result of `prepare`.
    Loaded(Box<Loaded>),
    /// A problem that impairs the measurement.
    Warning(Warning),
    /// Last line.
    End(Box<End>),
}

/// The engine and its plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hello {
    /// Version of the schema of these records.
    pub schema: u32,
    /// Version of the engine.
    pub engine: String,
    /// Process id of the engine.
    pub pid: u32,
    /// Wall time at which this line was written, microseconds since 1970.
    pub unix_us: u64,
    /// The plan with every default filled in, without any secret.
    pub plan: Plan,
    /// The statements of one transaction.
    pub statements: Vec<StatementKind>,
}

/// One kind of statement of the workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementKind {
    /// Name, as in the `statements` records.
    pub kind: String,
    /// SQL on the first table, or of the first statement of that name.
    pub sql: String,
    /// Times per transaction; 0 if only some transactions send it.
    pub per_event: u32,
    /// Statements of this kind on each connection: one per table it may use, or 1.
    pub per_connection: u32,
    /// Whether the server prepares them.
    pub prepared: bool,
}

/// Counter of a statement. A statement without a class counts as a read if it returns rows, as a write if it changes rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementClass {
    /// Among `reads`.
    Read,
    /// Among `writes`.
    Write,
    /// Among `other`.
    Other,
}

/// Every connection is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ready {
    /// Open connections.
    pub connections: u32,
    /// Time from the first connection attempt to the last statement prepared, in microseconds.
    pub connect_us: u64,
    /// Prepared statements held on the server, over all connections.
    pub prepared_statements: u64,
    /// The session that the first connection negotiated.
    #[serde(flatten)]
    pub session: Session,
}

/// The properties of a session that the login negotiated. They should be equal for all variants of a comparison.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Server version from the greeting.
    pub server_version: String,
    /// Version and cipher suite, as in `TLSv1.3 TLS13_AES_256_GCM_SHA384`; null without encryption.
    pub tls: Option<String>,
    /// `zlib`, or `zstd` with its level; null without compression.
    pub compression: Option<String>,
    /// Authentication method of the account; null if there is none.
    pub authentication: Option<String>,
}

/// A phase begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// The phase that begins.
    pub name: PhaseName,
    /// First instant of the phase.
    pub at_us: u64,
    /// Wall time of that instant, microseconds since 1970.
    pub at_unix_us: u64,
}

/// Number of events in a short span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tick {
    /// End of the span.
    pub at_us: u64,
    /// Events that ended in the span.
    pub events: u64,
}

/// One reporting interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Number of the interval, from 0 over both phases.
    pub seq: u64,
    /// The phase that contains it.
    pub phase: PhaseName,
    /// First instant.
    pub start_us: u64,
    /// First instant after it.
    pub end_us: u64,
    /// Counters.
    #[serde(flatten)]
    pub counts: Counts,
    /// Latency of events: from the time when they were due to their end.
    pub latency_us: Buckets,
    /// Service time of events: from their start to their end. Empty in a closed loop, where it equals the latency.
    pub service_us: Buckets,
    /// Exact sum of the latencies.
    pub latency_sum_us: f64,
    /// Smallest latency; null without events.
    pub latency_min_us: Option<f64>,
    /// Largest latency; null without events.
    pub latency_max_us: Option<f64>,
    /// Times without a completed event. All 0 in records of older engines.
    #[serde(default)]
    pub gaps: Gaps,
    /// Beginning and end of each gap, in nanoseconds; only of one of several engines (`segment`). A gap of the run is one
    /// that all engines have in common. The first begins with the interval, and the last ends with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_spans_ns: Vec<(u64, u64)>,
    /// Totals of each user of this engine since the last mark, or since the phase began. Only in intervals
    /// that end at a mark or with the phase, if a program that embeds the engine requests it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserTotals>,
    /// The latencies in buckets of a logarithmic scale, as `[bucket, count]`, if a program that embeds the
    /// engine requests them; it chooses the scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_buckets: Vec<(u16, u64)>,
    /// Percentiles of the latencies of events that ended in the interval; null without events.
    pub percentiles_us: Option<Percentiles>,
    /// Events due and not started at the end of the interval.
    pub backlog: u64,
    /// Events started and not ended at the end of the interval.
    pub in_flight: u64,
    /// Users that have not finished their last event at the end of the interval.
    #[serde(default)]
    pub users_active: u32,
    /// Resource use of the load generator.
    pub generator: Generator,
}

/// Statistics per statement kind over a window of several seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statements {
    /// The phase that contains them.
    pub phase: PhaseName,
    /// First instant.
    pub start_us: u64,
    /// First instant after it.
    pub end_us: u64,
    /// One entry per kind that ran.
    pub kinds: BTreeMap<String, StatementStats>,
}

/// Statistics of one statement kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementStats {
    /// Statements that completed without error.
    pub count: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Rows that the workload expects.
    pub rows_expected: u64,
    /// Statements that returned or changed another number of rows than the workload expects.
    pub row_count_mismatches: u64,
    /// Time from sending the statement to the last byte of its result.
    pub latency_us: Buckets,
}

/// A problem that impairs the measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name of the warning.
    pub code: String,
    /// What happened.
    pub text: String,
    /// How to fix it.
    #[serde(rename = "hint")]
    pub fix: String,
}
