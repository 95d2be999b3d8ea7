//! What the engine answers: one JSON object a line, `{"type":…,"data":{…}}`.
//!
//! Times are microseconds since the start of the run, monotonic. Every count belongs to the half-open span
//! `[start_us, end_us)` of its record; the sum of a phase's intervals equals that phase's totals in `end`.
//!
//! ```text
//! hello → ready → phase(warmup) → tick* interval* statements* → phase(measure) → … → end
//! ```
//! A stream without an `end` line means that the engine died.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::histogram::Buckets;
use crate::plan::Plan;

/// One line of the event stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub enum Record {
    /// First line: who runs and what it was asked to do.
    Hello(Box<Hello>),
    /// Every connection is open and its statements are prepared.
    Ready(Ready),
    /// A phase begins.
    Phase(Phase),
    /// Counts alone, for warm-up detection.
    Tick(Tick),
    /// One reporting interval.
    Interval(Box<Interval>),
    /// Statistics per statement kind.
    Statements(Statements),
    /// Progress of `prepare` and `cleanup`, and of the reading before a run.
    Loading(Loading),
    /// What `prepare` did, once everything is loaded.
    Loaded(Box<Loaded>),
    /// Something makes the measurement worth less.
    Warning(Warning),
    /// Last line.
    End(Box<End>),
}

/// Who runs and what it was asked to do.
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
    /// What one transaction holds.
    pub statements: Vec<StatementKind>,
}

/// One kind of statement of the workload, and what it promises.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatementKind {
    /// Name, as in the `statements` records.
    pub kind: String,
    /// SQL of the first table.
    pub sql: String,
    /// Times per transaction.
    pub per_event: u32,
    /// Statements of this kind on each connection: one per table it may name, or 1.
    pub per_connection: u32,
    /// Whether the server is asked to prepare them.
    pub prepared: bool,
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
    /// What the login of the first connection settled.
    #[serde(flatten)]
    pub session: Session,
}

/// What a login settled. Both sides of a comparison should have settled the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Session {
    /// Version the server gave in its greeting.
    pub server_version: String,
    /// Version and cipher suite, as in `TLSv1.3 TLS13_AES_256_GCM_SHA384`; null without encryption.
    pub tls: Option<String>,
    /// `zlib`, or `zstd` and its level; null without compression.
    pub compression: Option<String>,
    /// Authentication method of the account; null where there is none.
    pub authentication: Option<String>,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PhaseName {
    /// Not part of the result.
    Warmup,
    /// The result.
    Measure,
}

/// A phase begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Which.
    pub name: PhaseName,
    /// When.
    pub at_us: u64,
    /// Wall time of that instant, microseconds since 1970.
    pub at_unix_us: u64,
}

/// Counts of a short span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tick {
    /// End of the span.
    pub at_us: u64,
    /// Events that ended in it.
    pub events: u64,
}

/// What was counted in a span of time. Sums over spans are sums over fields.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Counts {
    /// Transactions that ended well.
    pub events: u64,
    /// Statements that returned rows.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Other statements: BEGIN, COMMIT, ROLLBACK, and changes that found no row.
    pub other: u64,
    /// Rows returned.
    pub rows: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Errors by server code, retried ones included.
    pub errors: BTreeMap<String, u64>,
    /// Events started anew after an error.
    pub retries: u64,
    /// Connections opened again.
    pub reconnects: u64,
    /// Events that began more than 1 ms after they were due.
    pub late: u64,
    /// Events that were due and not started because a queue was full.
    pub dropped: u64,
    /// Statements whose number of rows broke the workload's contract.
    pub off_contract: u64,
}

/// How the generator itself fared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Generator {
    /// CPU time of the worker threads over wall time, per worker: 1.0 is a full core each.
    pub cpu: f64,
    /// Largest delay of the engine's own timer. In an open loop that is how much later than due an event began that
    /// found a free connection; in a closed loop how late the engine woke up to close a tick.
    pub lag_us_max: u64,
    /// 99th percentile of the same; 0 where nothing was measured.
    pub lag_us_p99: u64,
    /// Share of the machine's CPU time that the hypervisor gave to others.
    pub steal: f64,
    /// Time the worker threads were runnable and waited for a CPU, all workers together.
    pub run_queue_wait_us: u64,
    /// 99th percentile of the delay from a reply's arrival at this machine to its reading, from samples.
    /// Null without samples: over unix sockets, and where nothing arrived.
    pub client_delay_us_p99: Option<u64>,
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

/// One reporting interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Counts from 0 over both phases.
    pub seq: u64,
    /// The phase it lies in.
    pub phase: PhaseName,
    /// First instant.
    pub start_us: u64,
    /// First instant after it.
    pub end_us: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// Latency of events from the instant they were due to their end.
    pub latency_us: Buckets,
    /// Service time of events, from their start to their end. Empty in a closed loop, where it is the latency.
    pub service_us: Buckets,
    /// Exact sum of the latencies.
    pub latency_sum_us: f64,
    /// Smallest latency; null without events.
    pub latency_min_us: Option<f64>,
    /// Largest latency; null without events.
    pub latency_max_us: Option<f64>,
    /// Percentiles of the latencies of events that ended in the interval; null without events.
    pub percentiles_us: Option<Percentiles>,
    /// Events due and not started at the end of the interval.
    pub backlog: u64,
    /// Events started and not ended at the end of the interval.
    pub in_flight: u64,
    /// How the generator itself fared.
    pub generator: Generator,
}

/// Statistics per statement kind over some seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Statements {
    /// The phase they lie in.
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
    /// Statements that ended well.
    pub count: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Rows that the contract promised.
    pub rows_expected: u64,
    /// Statements whose number of rows broke the contract.
    pub off_contract: u64,
    /// Time from sending the statement to its last byte.
    pub latency_us: Buckets,
}

/// Progress of `prepare` and `cleanup`, and of the reading before a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loading {
    /// What is done now.
    pub step: LoadingStep,
    /// The table.
    pub table: String,
    /// Rows loaded, or read, over all tables.
    pub rows: u64,
    /// Rows to load, or to read, over all tables.
    pub rows_planned: u64,
    /// Time since the beginning.
    pub at_us: u64,
}

/// A step of `prepare` or `cleanup`, or of the reading before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadingStep {
    /// The table was made.
    Created,
    /// Rows went in.
    Rows,
    /// The index on k was made.
    Indexed,
    /// The table stood there already, with the same specification.
    Kept,
    /// The table was dropped.
    Dropped,
    /// The table and its indexes were read, before a run.
    Prewarmed,
}

/// What `prepare` did. Rows and index are timed apart: first every row goes in, then every index is made, then
/// the server counts what it has (ANALYZE). Tables that were there already are not in it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loaded {
    /// How rows travelled.
    pub way: LoadingWay,
    /// Connections that loaded at the same time.
    pub streams: u32,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of rows sent, with what separates them, without the protocol's headers.
    pub bytes: u64,
    /// From the first row sent to the last one stored, over all tables.
    pub rows_us: u64,
    /// From the beginning of the first index to the end of the last; 0 without an index.
    pub index_us: u64,
    /// ANALYZE over all tables.
    pub analyze_us: u64,
    /// Statements sent again because streams were in each other's way (deadlock, lock wait timeout).
    pub retries: u64,
    /// What the loading connections set for their sessions, by name.
    pub session_settings: BTreeMap<String, String>,
    /// Table by table. Tables that are loaded at the same time overlap.
    pub tables: Vec<LoadedTable>,
}

/// How rows travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LoadingWay {
    /// LOAD DATA LOCAL INFILE.
    LoadDataLocal,
    /// INSERT of many rows.
    Insert,
    /// There was nothing to load.
    None,
}

/// What was loaded into one table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadedTable {
    /// The table.
    pub table: String,
    /// Rows loaded.
    pub rows: u64,
    /// Bytes of rows sent.
    pub bytes: u64,
    /// From its first row sent to its last one stored.
    pub rows_us: u64,
    /// Making its index; 0 without one.
    pub index_us: u64,
}

/// Something makes the measurement worth less.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// Stable name of the warning.
    pub code: String,
    /// What happened.
    pub text: String,
    /// What would help.
    pub hint: String,
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The planned time is over.
    TimeLimit,
    /// `prepare` or `cleanup` is done.
    Done,
    /// A signal asked for the end.
    Interrupted,
    /// The end of standard input, or no start command in time.
    Abandoned,
    /// The server could not be reached or refused the login.
    ConnectFailed,
    /// The server answered with an error that is not retried.
    ServerError,
    /// A connection was lost in the run.
    ConnectionLost,
    /// The data that are there do not fit the plan.
    DataConflict,
}

/// An error, for people and for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Server error number, where the server gave one.
    pub code: Option<u16>,
    /// What happened.
    pub text: String,
    /// What would help.
    pub hint: Option<String>,
}

/// Last line of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Why.
    pub reason: EndReason,
    /// The error, where there was one.
    pub failure: Option<Failure>,
    /// Totals of each phase that began. Equal to the sum of its intervals.
    pub phases: BTreeMap<PhaseName, PhaseTotals>,
    /// Peak resident memory of the engine, in bytes.
    pub memory_peak_bytes: u64,
    /// User and system CPU time of the engine from the start of the clock to here, in microseconds.
    pub cpu_us: u64,
}

/// Totals of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PhaseTotals {
    /// First instant.
    pub start_us: u64,
    /// First instant after it.
    pub end_us: u64,
    /// What was counted.
    #[serde(flatten)]
    pub counts: Counts,
    /// due = events + failed + dropped + unfinished.
    pub accounting: Accounting,
    /// Latency of events from the instant they were due to their end.
    pub latency_us: Buckets,
    /// Exact sum of the latencies.
    pub latency_sum_us: f64,
    /// Smallest latency; null without events.
    pub latency_min_us: Option<f64>,
    /// Largest latency; null without events.
    pub latency_max_us: Option<f64>,
    /// Open loops: latency of the events that were under way when the measurement ended and ended after it, within
    /// the time to drain. They are among the unfinished.
    pub drained_us: Buckets,
    /// Open loops: how long each event had been due at the end of the phase that was dropped, or unfinished and is not
    /// among the drained. Its latency is more than that.
    pub censored_us: Buckets,
    /// Percentiles over all events that were due: those that ended, the drained, and the censored. In a closed loop
    /// over those that ended. Null without events.
    pub percentiles_us: Option<Percentiles>,
}

/// What became of the events that were due. The identity `due = done + failed + dropped + unfinished` is
/// asserted by the engine before it writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accounting {
    /// Events due in the phase, and those carried in unfinished from the phase before.
    pub due: u64,
    /// Ended well in the phase.
    pub done: u64,
    /// Given up after an error.
    pub failed: u64,
    /// Never started because a queue was full.
    pub dropped: u64,
    /// In flight or waiting when the phase ended.
    pub unfinished: u64,
    /// How long these had been due by then, all together. With it Little's law holds exactly at both edges of a
    /// phase, whatever stalls there were.
    pub unfinished_us: u64,
}
