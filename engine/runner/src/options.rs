//! What a program that embeds the engine may ask for beyond the plan. The plan is what people write and what is stored; this
//! is for programs that have to behave like another one, and has no form outside Rust.

use std::sync::Arc;

pub use dbdyno_load::timeline::LastEvents;
pub use dbdyno_metrics::ExtraCounts;
use dbdyno_schema::Plan;
use dbdyno_workload::Program;
use dbdyno_workload::schema::Schema;
pub use dbdyno_workload::{NewRows, TableStatements};

use crate::Secrets;

/// What is to be done: with [`Options::default`] what `dbdyno-engine` does with the same plan.
#[derive(Clone)]
pub struct Order {
    /// Target, workload, load and phases.
    pub plan: Arc<Plan>,
    /// What is asked for beyond it.
    pub options: Options,
    /// What it names and does not hold.
    pub secrets: Secrets,
}

impl Order {
    /// A plan without options.
    pub fn new(plan: Plan, secrets: Secrets) -> Self {
        Self { plan: Arc::new(plan), options: Options::default(), secrets }
    }

    /// What its users play.
    pub(crate) fn program(&self) -> Program {
        Program::of(&self.plan, &self.secrets.contents, self.options.new_rows)
    }

    /// The tables of the OLTP family.
    pub(crate) fn schema(&self) -> Schema {
        Schema::of(&self.plan).in_form_of(self.options.tables.as_ref())
    }
}

/// What a program that embeds the engine may ask for beyond the plan.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How rows are numbered that the load adds, where a table does not number them by itself.
    pub new_rows: NewRows,
    /// Tables of another form than dbdyno's marked ones. Stream t of n makes, fills and indexes the tables t, t + n, … one
    /// after the other, every step is told when it begins, and `cleanup` drops them whoever made them.
    pub tables: Option<Arc<dyn TableStatements>>,
    /// What becomes of the events that are under way when the time is used up.
    pub last_events: LastEvents,
    /// What is counted of every event beside the usual.
    pub extra_counts: ExtraCounts,
    /// What becomes of an event that finds `load.queue_limit` others waiting.
    pub queue_overflow: QueueOverflow,
    /// When a connection is renewed that `load.reconnect_every` events have worn out.
    pub renewal: Renewal,
    /// Whether the ROLLBACK of `retry.rollback` is left out of the counts of statements.
    pub uncounted_rollback: bool,
    /// MySQL and MariaDB: whether one text may hold several statements, separated by semicolons.
    pub multi_statements: bool,
    /// Without a server: whether no statement returns or changes a row. Otherwise the answers keep what the OLTP family
    /// promises.
    pub empty_answers: bool,
}

/// What becomes of an event that finds `load.queue_limit` others waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueOverflow {
    /// It is dropped and counted.
    #[default]
    Drop,
    /// The run ends as `queue-full`.
    Abort,
}

/// When a connection is renewed that has played as many events as it may.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Renewal {
    /// Before the next event, as a part of it.
    #[default]
    BeforeNextEvent,
    /// At the end of the last of those events, as a part of it.
    WithinLastEvent,
}
