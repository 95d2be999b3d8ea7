//! The runner's common interface to all workloads: the OLTP family, user-defined SQL, and recorded statements.

use std::sync::Arc;

use dbdyno_schema::Plan;
use dbdyno_schema::plan::{StatementMode, TransactionPauses};
use dbdyno_schema::record::StatementKind;

use crate::call::{Call, Statement, UserIndex};
use crate::new_ids::NewRowIds;
use crate::oltp::{self, Oltp};
use crate::replay::{self, Recording, ReplayProgram};
use crate::sql::{self, Columns, Sql};

/// The workload of a run.
#[derive(Clone, Debug)]
pub enum Program {
    /// The OLTP family.
    Oltp(Box<Oltp>),
    /// User-defined SQL.
    Sql(Sql),
    /// Recorded statements.
    Replay(ReplayProgram),
}

/// Content of the files that a plan names.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// Columns of CSV files, from which parameters get values.
    pub columns: Columns,
    /// Recorded statements.
    pub recording: Option<Arc<Recording>>,
}

/// The current transaction of one connection.
#[derive(Debug)]
pub enum Event {
    /// A transaction of the OLTP family.
    Oltp(Box<oltp::Event>),
    /// A user-defined transaction.
    Sql(Box<sql::Event>),
    /// A recorded transaction.
    Replay(Box<replay::Event>),
}

impl Program {
    /// The workload of a plan. `new_row_ids` is the rule for the ids of added rows.
    pub fn from_plan(plan: &Plan, contents: &Contents, new_row_ids: NewRowIds) -> Self {
        let recording = contents.recording.clone();
        match (plan.workload.custom_sql(), recording) {
            (Some(custom), Some(recording)) => Program::Replay(ReplayProgram::new(custom, recording, plan)),
            (Some(custom), None) => {
                let prepared = plan.workload.statements == StatementMode::Prepared;
                Program::Sql(Sql::new(custom, prepared, &contents.columns, plan))
            }
            (None, _) => Program::Oltp(Box::new(Oltp::from_plan(plan, new_row_ids))),
        }
    }

    /// All statements; [`Call::statement`] is an index of this list.
    pub fn statements(&self) -> Vec<Statement> {
        match self {
            Program::Oltp(oltp) => oltp.statements().collect(),
            Program::Sql(sql) => sql.statements(),
            Program::Replay(replay) => replay.statements(),
        }
    }

    /// Numbers of the statements in the order in which to prepare them.
    pub fn preparation_order(&self) -> Vec<usize> {
        match self {
            Program::Oltp(oltp) => oltp.preparation_order(),
            Program::Sql(sql) => (0..sql.statements().len()).collect(),
            Program::Replay(_) => vec![0],
        }
    }

    /// The statement kinds for the records.
    pub fn describe(&self) -> Vec<StatementKind> {
        match self {
            Program::Oltp(oltp) => oltp.describe(),
            Program::Sql(sql) => sql.describe(),
            Program::Replay(replay) => replay.describe(),
        }
    }

    /// Statements to send on every new connection before preparing any.
    pub fn session(&self) -> Vec<String> {
        match self {
            Program::Oltp(_) => Vec::new(),
            Program::Sql(sql) => sql.session().to_vec(),
            Program::Replay(replay) => replay.session().to_vec(),
        }
    }

    /// Statements that a user sends before it closes its connection at the end.
    pub fn teardown(&self) -> &[String] {
        match self {
            Program::Oltp(_) => &[],
            Program::Sql(sql) => sql.teardown(),
            Program::Replay(replay) => replay.teardown(),
        }
    }

    /// The transactions of one user.
    pub fn events(&self, user: UserIndex) -> Event {
        match self {
            Program::Oltp(oltp) => Event::Oltp(Box::new(oltp.events(user))),
            Program::Sql(sql) => Event::Sql(Box::new(sql.events(user))),
            Program::Replay(replay) => Event::Replay(Box::new(replay.events(user))),
        }
    }
}

impl Event {
    /// Restarts the transaction: the next statement is its first.
    #[inline]
    pub fn restart(&mut self) {
        match self {
            Event::Oltp(event) => event.restart(),
            Event::Sql(event) => event.restart(),
            Event::Replay(event) => event.restart(),
        }
    }

    /// The statement that [`Event::next`] returned last.
    pub fn last(&self) -> &Call {
        match self {
            Event::Oltp(event) => event.last(),
            Event::Sql(event) => event.last(),
            Event::Replay(event) => event.last(),
        }
    }

    /// The next statement, or `None` at the end of the transaction; after that a new one begins.
    #[inline]
    pub fn next(&mut self, program: &Program) -> Option<&Call> {
        match (self, program) {
            (Event::Oltp(event), Program::Oltp(oltp)) => event.next(oltp),
            (Event::Sql(event), Program::Sql(sql)) => event.next(sql),
            (Event::Replay(event), Program::Replay(replay)) => event.next(replay),
            _ => unreachable!("an event belongs to the program that created it"),
        }
    }

    /// How long the user waits before its next transaction, which this chooses if it has pauses.
    #[inline]
    pub fn pauses(&mut self, program: &Program) -> TransactionPauses {
        match (self, program) {
            (Event::Sql(event), Program::Sql(sql)) => event.pauses(sql),
            _ => TransactionPauses::default(),
        }
    }

    /// Stores the first row of the last statement's result, as text, for later statements ([`Call::is_result_used`]). `row`
    /// is empty if the result has no rows.
    pub fn store_result(&mut self, program: &Program, row: &[Option<Vec<u8>>]) {
        if let (Event::Sql(event), Program::Sql(sql)) = (self, program) {
            event.store_result(sql, row);
        }
    }

    /// Whether the user has completed its last transaction.
    #[inline]
    pub fn is_done(&self) -> bool {
        match self {
            Event::Oltp(_) => false,
            Event::Sql(event) => event.is_done(),
            Event::Replay(event) => event.is_done(),
        }
    }

    /// The INSERT of the buffered rows that no event has sent; `None` if the buffer is empty.
    pub fn remaining_insert(&mut self) -> Option<&Call> {
        match self {
            Event::Oltp(event) => event.remaining_insert(),
            Event::Sql(_) | Event::Replay(_) => None,
        }
    }

    /// Whether events buffer rows for a later INSERT.
    #[inline]
    pub fn has_row_buffer(&self) -> bool {
        match self {
            Event::Oltp(event) => event.has_row_buffer(),
            Event::Sql(_) | Event::Replay(_) => false,
        }
    }

    /// The statement that selects the last id of the user's own table, if new ids continue after it.
    pub fn last_id_sql(&self) -> Option<String> {
        match self {
            Event::Oltp(event) => event.last_id_sql(),
            Event::Sql(_) | Event::Replay(_) => None,
        }
    }

    /// Continues ids after `last`.
    pub fn continue_ids_after(&mut self, last: u64) {
        if let Event::Oltp(event) = self {
            event.continue_ids_after(last);
        }
    }
}
