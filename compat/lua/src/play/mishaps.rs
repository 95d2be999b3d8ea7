//! What becomes of errors: counted, logged in sysbench's words, and for some of them a connection opened anew.

use std::time::Duration;

use crate::sql::{Answer, ConnectionId, SqlError, StatementId};
use crate::{Context, Level};
use dbdyno_schema::record::ErrorClass;
use dbdyno_wire::mysql::errors::{CLIENT_LOST, CR_SERVER_GONE_ERROR};
use dbdyno_wire::postgres::errors::CONNECTION_DOES_NOT_EXIST;
use dbdyno_wire::scripted::ScriptedConnector;
use dbdyno_wire::{Connection, WireError};

use super::broker::{Broker, Line, Place};
use super::exec_kind::ExecKind;
use dbdyno_runner::client_words;
use dbdyno_runner::external::{self, is_lost, is_retried};

/// Between attempts to open a lost connection.
const PAUSE: Duration = Duration::from_millis(1);

/// Most bytes of a statement that a message tells. A bulk insert has half a MiB.
const TOLD_BYTES: usize = 4096;

impl<C: ScriptedConnector> Broker<C> {
    /// A statement has failed.
    pub(super) async fn mishap(
        &self,
        context: &Context,
        connection: ConnectionId,
        error: WireError,
        exec: ExecKind,
        text: impl FnOnce() -> Vec<u8>,
        hold: bool,
    ) -> Answer {
        let (plan, pgsql) = (&self.shared.plan, context.program.database.is_pgsql());
        let (code, state, message) = client_words::told(&error, &plan.target);
        let ignorable = is_retried(&error, plan);
        self.count_error(context, &external::code(&error, &plan.target).to_string(), error.class());
        let lost = if pgsql { is_lost(&error) } else { CLIENT_LOST.contains(&code) };
        if !ignorable {
            let text = text();
            let text = String::from_utf8_lossy(&text[..text.len().min(TOLD_BYTES)]);
            for line in exec.lines(pgsql, (code, &message), &text) {
                self.shared.front.log(Level::Fatal, &line);
            }
        } else {
            if !pgsql {
                self.shared.front.log(Level::Debug, &format!("Ignoring error {code} {message}, "));
            }
            if lost {
                self.reopen(context, connection, hold).await;
            } else if plan.retry.rollback {
                self.roll_back(connection, hold).await;
            }
        }
        context.sql.failed(connection, SqlError { code, state, message, ignorable })
    }

    /// Ends the transaction that has failed, as sysbench's driver does it, which does not count that statement.
    async fn roll_back(&self, connection: ConnectionId, hold: bool) {
        if let Some(mut line) = self.take(connection, hold) {
            // Where this fails the next statement finds out why.
            let _ = line.connection.query(b"ROLLBACK").await;
            self.put(connection, line, hold);
        }
    }

    /// Opens a lost connection again and again, until it stands or the run is over.
    async fn reopen(&self, context: &Context, connection: ConnectionId, hold: bool) {
        let Some(lost) = self.take(connection, false) else { return };
        let number = lost.number;
        drop(lost);
        context.sql.opened(connection, false);
        loop {
            let opened = match self.place() {
                Some(Place { desk, .. }) if !hold => {
                    match desk.unless_over(self.open(context, number, false)).await {
                        Some(opened) => opened,
                        None => return,
                    }
                }
                _ => self.open(context, number, hold).await,
            };
            if let Ok(opened) = opened {
                self.put(connection, Line { connection: opened, number }, false);
                context.sql.opened(connection, true);
                self.count_reconnect(context);
                return;
            }
            if hold {
                if self.place().is_none_or(|place| place.desk.is_over()) {
                    return;
                }
                std::thread::sleep(PAUSE);
            } else {
                tokio::time::sleep(PAUSE).await;
            }
        }
    }

    pub(super) fn not_connected(&self, context: &Context, error: &WireError, number: u64) -> Answer {
        let target = &self.shared.plan.target;
        let failure = client_words::connecting(error, target, number);
        let log = |text: String| self.shared.front.log(Level::Fatal, &text);
        if target.is_postgresql() {
            log(format!("Connection to database failed: {}\n", failure.message));
            return Answer::Flag(false);
        }
        let places = &context.program.database.places;
        // A connection's number chooses its endpoint, too.
        let place = places.get(number as usize % places.len().max(1));
        let place = place.map_or("nobody", String::as_str);
        log(format!("unable to connect to MySQL server on {place}, aborting..."));
        log(format!("error {}: {}", failure.code, failure.message));
        Answer::Flag(false)
    }

    pub(super) fn not_prepared(
        &self,
        context: &Context,
        connection: ConnectionId,
        error: &WireError,
    ) -> Answer {
        let plan = &self.shared.plan;
        let (code, state, message) = client_words::told(error, &plan.target);
        let log = |text: &str| self.shared.front.log(Level::Fatal, text);
        if plan.target.is_postgresql() {
            log(&format!("PQprepare() failed: ERROR:  {message}\n"));
        } else {
            log("mysql_stmt_prepare() failed");
            log(&format!("MySQL error: {code} \"{message}\""));
        }
        let ignorable = is_retried(error, plan);
        context.sql.refused(connection, SqlError { code, state, message, ignorable })
    }

    /// An execution without its parameters.
    pub(super) fn unbound(
        &self,
        context: &Context,
        connection: ConnectionId,
        statement: StatementId,
    ) -> Answer {
        let text = context.sql.statement_text(statement);
        let text = String::from_utf8_lossy(&text);
        self.count_error(context, "0", ErrorClass::Other);
        let log = |text: &str| self.shared.front.log(Level::Fatal, text);
        if context.sql.has_parameters(statement) {
            log("Wrong number of parameters to mysql_stmt_bind_param");
        }
        log(&format!("mysql_stmt_execute() returned error 0 () for query '{text}'"));
        let state = "00000".to_owned();
        context.sql.failed(connection, SqlError { state, ..SqlError::default() })
    }

    /// A connection that could not be opened again.
    pub(super) fn closed(&self, context: &Context, connection: ConnectionId) -> Answer {
        let message = "Server has gone away".to_owned();
        let (code, state) = match context.program.database.is_pgsql() {
            true => (0, CONNECTION_DOES_NOT_EXIST),
            false => (CR_SERVER_GONE_ERROR, "HY000"),
        };
        let error = SqlError { code, state: state.into(), message, ignorable: false };
        context.sql.failed(connection, error)
    }
}
