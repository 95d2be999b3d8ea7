//! The last record: reason, failure and totals.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PhaseName;
use super::counts::{Counts, Percentiles};
use super::error_class::ErrorClass;
use super::gaps::Gaps;
use super::generator::Generator;
use crate::histogram::Buckets;
use crate::plan::Endpoint;

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EndReason {
    /// The planned time is over.
    TimeLimit,
    /// The planned number of events has started.
    EventLimit,
    /// Events in flight at the limit had not ended when the drain time was over.
    ForcedShutdown,
    /// More events than allowed waited for a connection.
    QueueFull,
    /// A script failed.
    ScriptError,
    /// `prepare` or `cleanup` has finished, or the command `finish` ended a load in slices.
    Done,
    /// The load exceeded a limit of `load.abort_if`.
    LimitExceeded,
    /// A signal stopped the run.
    Interrupted,
    /// Standard input ended, no start command came in time, or a command did not fit the plan.
    Abandoned,
    /// The server was unreachable or refused the login.
    ConnectFailed,
    /// The server answered with an error that is not retried.
    ServerError,
    /// A connection was lost during the run.
    ConnectionLost,
    /// The existing data do not match the plan.
    DataConflict,
}

impl EndReason {
    /// Whether the run or the command has ended as planned.
    pub fn is_planned(self) -> bool {
        matches!(self, EndReason::TimeLimit | EndReason::EventLimit | EndReason::Done)
    }
}

/// An error, for people and for programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Server error number, if any.
    pub code: Option<u16>,
    /// Class of the error; absent if neither a server nor a connection caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<ErrorClass>,
    /// What happened.
    pub text: String,
    /// How to fix it.
    #[serde(rename = "hint")]
    pub fix: Option<String>,
    /// The error in the form in which MySQL's clients report it, if a server or its connection caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ServerFailure>>,
}

/// A failure in the form in which MySQL's clients report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerFailure {
    /// What failed.
    pub action: FailedAction,
    /// The server's error number, or the number of MySQL's client library for connection errors (2003, 2013, …).
    pub code: u16,
    /// SQLSTATE; `HY000` if there is no specific one.
    pub sqlstate: String,
    /// The server's message, or dbdyno's if the server sent none.
    pub message: String,
    /// The statement as sent, with its `?` if it was prepared; empty while connecting.
    pub statement: String,
    /// The address of a connection that could not be established; null otherwise.
    pub endpoint: Option<Endpoint>,
}

/// The action that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailedAction {
    /// Opening a connection.
    Connect,
    /// Preparing a statement.
    Prepare,
    /// Executing a prepared statement.
    Execute,
    /// Executing a statement sent as text.
    Query,
}

/// Last line of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Why the stream ended.
    pub reason: EndReason,
    /// The error, if any.
    pub failure: Option<Failure>,
    /// Totals of each phase that began, equal to the sums of its intervals; of a load in slices including the guard times.
    pub phases: BTreeMap<PhaseName, PhaseTotals>,
    /// Totals of each user of this engine, by user number, from the start of the clock to the end; if a program that
    /// embeds the engine requests them.
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
    /// Counters.
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
    /// Times without a completed event. All 0 in records of older engines.
    #[serde(default)]
    pub gaps: Gaps,
    /// The latencies in buckets of a logarithmic scale, as `[bucket, count]`, if a program that embeds the
    /// engine requests them; it chooses the scale.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub log_buckets: Vec<(u16, u64)>,
    /// Open loops: latency of the events that were in flight when the measurement ended and ended within the drain time.
    /// They count as unfinished.
    pub drained_us: Buckets,
    /// Open loops: for each event that was dropped, or unfinished and not drained, the time from its due time to the end
    /// of the phase. Its latency is larger.
    pub censored_us: Buckets,
    /// Percentiles over all due events: completed, drained and censored. In a closed loop over the completed events. Null
    /// without events.
    pub percentiles_us: Option<Percentiles>,
    /// Resource use of the load generator in the phase. All 0 in records of older versions.
    #[serde(default)]
    pub generator: Generator,
}

/// The due events by outcome. The engine asserts the identity `due = done + failed + dropped + unfinished` before it
/// writes the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accounting {
    /// Events due in the phase, including those left unfinished by the phase before.
    pub due: u64,
    /// Completed without error in the phase.
    pub done: u64,
    /// Given up after an error.
    pub failed: u64,
    /// Never started because a queue was full.
    pub dropped: u64,
    /// In flight or waiting when the phase ended.
    pub unfinished: u64,
    /// Sum of the times from each unfinished event's due time to the end of the phase. With this sum, Little's law holds
    /// exactly over a phase, even with stalls.
    pub unfinished_us: u64,
}
