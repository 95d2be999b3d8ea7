//! The last record: why a stream ended, what failed, and the totals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PhaseName;
use super::counts::{Counts, Percentiles};
use super::error_class::ErrorClass;
use super::generator::Generator;
use crate::histogram::Buckets;
use crate::plan::Endpoint;

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The planned time is over.
    TimeLimit,
    /// As many events as planned have been started.
    EventLimit,
    /// Events under way at the limit had not ended when the time to drain was over.
    ForcedShutdown,
    /// More events than planned waited for a connection.
    QueueFull,
    /// A script has failed.
    ScriptError,
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
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Server error number, where the server gave one.
    pub code: Option<u16>,
    /// What the error means; absent where neither a server nor a connection is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// What happened.
    pub text: String,
    /// How to fix it.
    pub hint: Option<String>,
    /// The same in the terms of MySQL's own clients, where a server or the way to it is to blame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerFailure>>,
}

/// A failure in the terms of MySQL's own clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerFailure {
    /// What failed.
    pub action: FailedAction,
    /// The server's error number, or the one that MySQL's clients give what is wrong on the way (2003, 2013, …).
    pub code: u16,
    /// SQLSTATE; `HY000` where there is none of its own.
    pub sqlstate: String,
    /// The server's message, or dbdyno's where the server sent none.
    pub message: String,
    /// The statement as it was sent, with its `?` where it was prepared; empty while connecting.
    pub statement: String,
    /// Where the connection was to lead; null where it was established.
    pub endpoint: Option<Endpoint>,
}

/// The action that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailedAction {
    /// A connection was being opened.
    Connect,
    /// A statement was being prepared.
    Prepare,
    /// A prepared statement was being executed.
    Execute,
    /// A statement was sent as text.
    Query,
}

/// Last line of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Why the stream ended.
    pub reason: EndReason,
    /// The error, where there was one.
    pub failure: Option<Failure>,
    /// Totals of each phase that began. Equal to the sum of its intervals.
    pub phases: BTreeMap<PhaseName, PhaseTotals>,
    /// Totals of each user of this engine, in the order of their numbers, from the start of the clock to the end; where a program that
    /// embeds the engine asks for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub users: Vec<UserTotals>,
    /// Peak resident memory of the engine, in bytes.
    pub memory_peak_bytes: u64,
    /// User and system CPU time of the engine from the start of the clock to here, in microseconds.
    pub cpu_us: u64,
}

/// Totals of one user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserTotals {
    /// Events that completed without error.
    pub events: u64,
    /// Sum of their latencies, in microseconds.
    pub busy_us: f64,
    /// Smallest latency; null without events.
    pub min_us: Option<f64>,
    /// Largest latency; null without events.
    pub max_us: Option<f64>,
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
    /// Latencies once more, counted in buckets of a logarithmic scale as `[bucket, count]`, where a program that embeds the
    /// engine asks for it and chooses the scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_buckets: Vec<(u16, u64)>,
    /// Open loops: latency of the events that were under way when the measurement ended and ended after it, within
    /// the time to drain. They are among the unfinished.
    pub drained_us: Buckets,
    /// Open loops: how long each event had been due at the end of the phase that was dropped, or unfinished and is not
    /// among the drained. Its latency is more than that.
    pub censored_us: Buckets,
    /// Percentiles over all events that were due: those that ended, the drained, and the censored. In a closed loop
    /// over those that ended. Null without events.
    pub percentiles_us: Option<Percentiles>,
    /// The load generator's figures over the phase. All 0 in records of versions that did not write them.
    #[serde(default)]
    pub generator: Generator,
}

/// The events that were due, by their outcome. The identity `due = done + failed + dropped + unfinished` is
/// asserted by the engine before it writes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accounting {
    /// Events due in the phase, and those carried in unfinished from the phase before.
    pub due: u64,
    /// Completed without error in the phase.
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
