//! One virtual user: a connection, and the loop of its events.

use std::rc::Rc;

use dbdyno_door::record::{EndReason, Failure};
use dbdyno_gauge::{Event, Statement};
use dbdyno_pace::Nanos;
use dbdyno_wire::{Connection, Outcome, WireError};
use dbdyno_workload::{Call, Oltp};

use crate::desk::Desk;
use crate::failure;

/// How a statement travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As prepared statement of this number.
    Prepared(usize),
    /// As text, where that is asked for or the server does not prepare it (MySQL refuses BEGIN, error 1295).
    Text(String),
}

/// What all users of a run share.
pub(crate) struct Script {
    pub(crate) oltp: Oltp,
    /// By statement number; see [`Oltp::statements`].
    pub(crate) ways: Vec<Way>,
    pub(crate) retry_codes: Vec<u16>,
}

/// A connection that plays the script until the run is over.
pub(crate) struct User<C> {
    pub(crate) connection: C,
    pub(crate) desk: Rc<Desk>,
    pub(crate) script: Rc<Script>,
    pub(crate) event: dbdyno_workload::Event,
}

impl<C: Connection> User<C> {
    pub(crate) async fn play(mut self) {
        let mut free_since = self.desk.now();
        while let Some(due) = self.desk.next_due(free_since).await {
            match self.play_event(due).await {
                Ok(end) => free_since = end,
                Err(end) => {
                    self.desk.fail(end);
                    return;
                }
            }
        }
        self.connection.close().await;
    }

    /// Plays one event to its end, starting it anew after errors that are to be retried.
    async fn play_event(&mut self, due: Nanos) -> Result<Nanos, (EndReason, Failure)> {
        let start = self.desk.now();
        let mut sent = start;
        loop {
            let error = match self.attempt(sent).await {
                Ok(end) => {
                    self.desk.event(Event { due, start, end });
                    return Ok(end);
                }
                Err(error) => error,
            };
            let now = self.desk.now();
            let code = failure::code(&error);
            let retried = error.code().is_some_and(|code| self.script.retry_codes.contains(&code));
            self.desk.error(now, &code.to_string());
            if !retried {
                self.desk.failed(now, due);
                return Err(failure::working(&error, &self.last_sql()));
            }
            self.desk.retry(now);
            // A lock wait timeout rolls back one statement only: without this a new BEGIN would commit the rest.
            self.connection.query(b"ROLLBACK").await.map_err(|error| failure::working(&error, "ROLLBACK"))?;
            sent = self.desk.now();
            self.desk.other_statement(sent);
        }
    }

    /// Plays the statements of one transaction, the first sent at `start`. Returns when the last was answered.
    async fn attempt(&mut self, start: Nanos) -> Result<Nanos, WireError> {
        self.event.restart();
        let mut sent = start;
        while let Some(call) = self.event.next(&self.script.oltp) {
            let outcome = send(&mut self.connection, &self.script.ways, call).await?;
            let end = self.desk.now();
            self.desk.statement(Statement {
                kind: call.kind,
                start: sent,
                end,
                returns_rows: outcome.returns_rows,
                rows: outcome.rows,
                rows_expected: call.rows_expected,
                bytes: outcome.bytes,
            });
            sent = end;
        }
        Ok(sent)
    }

    fn last_sql(&self) -> String {
        let statement = self.event.last().statement;
        self.script.oltp.statements().nth(statement).map(|statement| statement.sql).unwrap_or_default()
    }
}

#[inline]
async fn send<C: Connection>(connection: &mut C, ways: &[Way], call: &Call) -> Result<Outcome, WireError> {
    match &ways[call.statement] {
        Way::Prepared(number) => connection.execute(*number, &call.values).await,
        Way::Text(template) => connection.execute_text(template, &call.values).await,
    }
}
