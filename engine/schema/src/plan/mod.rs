//! A plan: one target, one workload, one load, for a bounded time.
//!
//! `prepare`, `run` and `cleanup` read the same plan, so they cannot disagree about tables or rows.
//! A plan holds no secret: it names the environment variable or the file that holds the password.

pub mod limits;
mod literal;
mod loading;
mod reconnect;
mod replay;
mod script;
mod script_validation;
mod slices_validation;
mod sql;
mod sql_loops_validation;
mod sql_parameters_validation;
mod sql_sources_validation;
mod sql_tables;
mod sql_tables_validation;
mod sql_validation;
mod statement_mode;
mod target;
mod validation;
mod workload;

pub use dbdyno_load::pauses::TransactionPauses;
pub use dbdyno_load::plan::{Load, Phases, ThinkTime};
pub use dbdyno_load::report::Report;
pub use dbdyno_load::shapes::{
    ClosedRamp, ClosedSlices, ClosedSteps, ConnectionStep, Constant, Gaps, Poisson, Ramp, RateStep, Shape,
    Steps,
};
pub use dbdyno_random::key::Distribution;
pub use literal::Literal;
pub use loading::{Loading, LoadingMethod, LoadingPart, Prewarm};
pub use reconnect::{ErrorCode, OnLost, Reconnect, Retry};
pub use replay::{LogFormat, Replay};
pub use script::{ScriptOption, ScriptWorkload};
pub use sql::{
    CsvSource, LineOrder, LoopTimes, ParameterSource, ResultType, SequenceOrder, SqlStatement,
    SqlTransaction, SqlWorkload, StatementLoop, TransactionOrder,
};
pub use sql_tables::{
    ColumnSource, GeneratedColumn, GeneratedTable, ParentTable, TextLength, TextWord, TimeOrder,
};
pub use statement_mode::StatementMode;
pub use target::{Compression, Endpoint, Secret, Target, Tls, TlsMode};
pub use workload::{OltpOptions, Workload, WorkloadName};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The plan of one engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Version of this schema; must be 1.
    pub schema: u32,
    /// The server under load.
    pub target: Target,
    /// The repeated transaction and its data.
    pub workload: Workload,
    /// How many connections, and when each event is due.
    pub load: Load,
    /// Length of warm-up and measurement.
    pub phases: Phases,
    /// Seeds keys, strings and row content. Rows depend on (seed, table, id) only.
    pub seed: u64,
    /// This engine's share of the work, if several engines together produce the load; a single engine is 0 of 1.
    #[serde(default)]
    pub segment: Segment,
    /// When the clock starts.
    #[serde(default)]
    pub start: Start,
    /// Whether the end of standard input ends every command within seconds, as it ends a run that starts on command. The
    /// engine then cancels the statements that the server still executes for it. A plan from a pipe or a file leaves it out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watch_input: bool,
    /// How the engine itself runs.
    #[serde(default)]
    pub client: Client,
    /// How often the engine reports.
    #[serde(default)]
    pub report: Report,
    /// Which errors restart an event.
    #[serde(default)]
    pub retry: Retry,
    /// How the engine handles lost connections.
    #[serde(default)]
    pub reconnect: Reconnect,
    /// How rows are loaded by `prepare`.
    #[serde(default)]
    pub loading: Loading,
    /// What `run` reads before it opens its connections.
    #[serde(default)]
    pub prewarm: Prewarm,
    /// Statements that `run` sends on every new connection, after those of the workload; not counted. A script's own
    /// statements come later, because the script sends them itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session: Vec<String>,
}

impl Plan {
    /// Whether the end of standard input ends the command.
    pub fn watches_input(&self) -> bool {
        self.watch_input || matches!(self.start, Start::OnCommand { .. })
    }
}

/// One engine's share of the work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Number of this share, from 0.
    pub index: u32,
    /// Number of shares.
    pub count: u32,
}

impl Default for Segment {
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

/// When the clock starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Start {
    /// As soon as every connection is ready. The end of standard input is ignored, except with `watch_input`.
    #[default]
    AtOnce,
    /// On the line `{"type":"start","data":{"at_unix_us":N}}`; after it, the end of standard input stops the run.
    OnCommand {
        /// How long to wait for that line, in microseconds.
        start_timeout_us: u64,
    },
}

/// A line on standard input after the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", content = "data", rename_all = "snake_case", deny_unknown_fields)]
pub enum Command {
    /// Start the clock.
    Start {
        /// Wall time of the start, microseconds since 1970; a time in the past means now.
        at_unix_us: u64,
    },
    /// Loads of the shape `closed_slices`: resume the load for a time. The engine answers with the record `slice` when
    /// the last event has ended; only then may the next resume follow. The first may follow after the record `phase`.
    Resume {
        /// A number for this slice, which its record repeats.
        slice: u64,
        /// Time from this command until no more events begin, in microseconds; longer than the guard time.
        for_us: u64,
    },
    /// Loads of the shape `closed_slices`: end the run.
    Finish {},
}

/// How the engine itself runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// Event loops, one thread each.
    pub workers: u32,
    /// Scheduling class of the worker threads.
    pub scheduling: Scheduling,
}

impl Default for Client {
    fn default() -> Self {
        Self { workers: 1, scheduling: Scheduling::Normal }
    }
}

/// Scheduling class of the worker threads, as Linux names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scheduling {
    /// SCHED_OTHER.
    Normal,
    /// SCHED_BATCH: a worker that a reply wakes does not preempt the server. For clients that share CPUs with it.
    Batch,
}
