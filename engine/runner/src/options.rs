//! Options of programs that embed the engine. People write and store plans; these options exist only in Rust, for programs
//! that emulate another tool.

use std::sync::Arc;

pub use dbdyno_load::timeline::LastEvents;
pub use dbdyno_metrics::ExtraCounts;
use dbdyno_schema::Plan;
use dbdyno_workload::Program;
use dbdyno_workload::schema::Schema;
pub use dbdyno_workload::{NewRows, TableStatements};

use crate::Secrets;

/// A plan, its options and its secrets. With [`Options::default`] the engine does what `dbdyno-engine` does.
#[derive(Clone)]
pub struct RunSpec {
    /// Target, workload, load and phases.
    pub plan: Arc<Plan>,
    /// Options of the embedding program.
    pub options: Options,
    /// Values that the plan only names.
    pub secrets: Secrets,
}

impl RunSpec {
    /// A plan without options.
    pub fn new(plan: Plan, secrets: Secrets) -> Self {
        Self { plan: Arc::new(plan), options: Options::default(), secrets }
    }

    pub(crate) fn program(&self) -> Program {
        Program::of(&self.plan, &self.secrets.contents, self.options.new_rows)
    }

    pub(crate) fn schema(&self) -> Schema {
        Schema::of(&self.plan).in_form_of(self.options.tables.as_ref())
    }
}

/// Options of a program that embeds the engine.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The ids of rows that the load inserts, if the table does not generate them.
    pub new_rows: NewRows,
    /// Statements for tables that differ from dbdyno's own. Stream t of n creates, fills and indexes the tables t, t + n, … one
    /// after the other and reports the start of every step; `cleanup` drops them without checking for dbdyno's mark.
    pub tables: Option<Arc<dyn TableStatements>>,
    /// Whether events in progress at the time limit count.
    pub last_events: LastEvents,
    /// Counts per event in addition to the usual ones.
    pub extra_counts: ExtraCounts,
    /// The action if the queue is full.
    pub queue_overflow: QueueOverflow,
    /// When a connection is renewed after `load.reconnect_every` events.
    pub renewal: Renewal,
    /// Whether statement counts exclude the ROLLBACK of `retry.rollback`.
    pub uncounted_rollback: bool,
    /// MySQL and MariaDB: whether a text may contain several statements, separated by semicolons.
    pub multi_statements: bool,
    /// Without a server: whether no statement returns or changes rows. Otherwise the results have the rows that the OLTP
    /// workloads expect.
    pub empty_answers: bool,
}

/// The action if an event becomes due while `load.queue_limit` others wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOverflow {
    /// Count the event as dropped.
    #[default]
    Drop,
    /// End the run as `queue-full`.
    Abort,
}

/// When a connection is renewed after `load.reconnect_every` events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Before the next event, as a part of it.
    #[default]
    BeforeNextEvent,
    /// At the end of the last of those events, as a part of it.
    WithinLastEvent,
}
