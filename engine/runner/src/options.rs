//! Options of programs that embed the engine to emulate another tool. They exist only in Rust; the plan, which users
//! write and store, does not contain them.

use std::sync::Arc;

pub use dbdyno_load::timeline::MeasurementEnd;
pub use dbdyno_metrics::ExtraCounts;
use dbdyno_schema::Plan;
use dbdyno_wire::OpenSessions;
use dbdyno_workload::Program;
use dbdyno_workload::schema::Schema;
pub use dbdyno_workload::{NewRowIds, TableStatements};

use crate::Secrets;

/// A plan, its options and its secrets. With [`Options::default`] the engine does what `dbdyno-engine` does.
#[derive(Clone)]
pub struct RunSpec {
    /// Target, workload, load and phases.
    pub plan: Arc<Plan>,
    /// Options of the embedding program.
    pub options: Options,
    /// Values to which the plan refers only by name.
    pub secrets: Secrets,
    /// The sessions that this process has opened.
    pub open_sessions: OpenSessions,
}

impl RunSpec {
    /// A plan without options.
    pub fn new(plan: Plan, secrets: Secrets) -> Self {
        Self {
            plan: Arc::new(plan),
            options: Options::default(),
            secrets,
            open_sessions: OpenSessions::default(),
        }
    }

    pub(crate) fn program(&self) -> Program {
        Program::from_plan(&self.plan, &self.secrets.contents, self.options.new_row_ids)
    }

    pub(crate) fn schema(&self) -> Schema {
        Schema::from_plan(&self.plan).with_statements(self.options.tables.as_ref())
    }
}

/// Options of a program that embeds the engine.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The ids of rows that the load inserts, if the table does not generate them.
    pub new_row_ids: NewRowIds,
    /// Statements for tables without dbdyno's mark. Stream t of n creates, fills and indexes the tables t, t + n, … one
    /// after the other, and reports the start of every step. `cleanup` drops these tables without looking for a mark.
    pub tables: Option<Arc<dyn TableStatements>>,
    /// Whether the measurement ends at the time limit, or with the last event.
    pub measurement_end: MeasurementEnd,
    /// Counts per event in addition to the usual ones.
    pub extra_counts: ExtraCounts,
    /// What happens to an event that becomes due when the queue is full.
    pub queue_overflow: QueueOverflow,
    /// When a connection is renewed after `load.reconnect_every` events.
    pub renewal: Renewal,
    /// Whether statement counts exclude the ROLLBACK of `retry.rollback`.
    pub uncounted_rollback: bool,
    /// MySQL and MariaDB: whether a text may contain several statements, separated by semicolons.
    pub multi_statements: bool,
    /// MySQL and MariaDB: whether an UPDATE counts only the rows that it changed, as with the clients of both. If false, it
    /// counts every row that its WHERE matched, as PostgreSQL does.
    pub only_changed_rows: bool,
    /// Without a server: whether every statement neither returns nor changes rows. If false, results have the rows that
    /// the OLTP workloads expect.
    pub empty_answers: bool,
}

/// What happens to an event that becomes due while `load.queue_limit` others wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOverflow {
    /// Count the event as dropped.
    #[default]
    Drop,
    /// End the run as `queue-full`.
    Abort,
}

/// When a connection is replaced by a new one after `load.reconnect_every` events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Before the next event; the time counts as part of that event.
    #[default]
    BeforeNextEvent,
    /// At the end of the last of these events; the time counts as part of it.
    WithinLastEvent,
}
