//! Handles failed statements and connections: counts the error, logs the message that sysbench logs, and reopens a lost
//! connection.

use std::time::Duration;

use dbdyno_runner::client_errors;
use dbdyno_runner::external::{self, is_lost, is_retried};
use dbdyno_schema::record::{ErrorClass, FailedAction};
use dbdyno_sysbench::log::Level;
use dbdyno_wire::mysql::errors::{CLIENT_LOST, CR_SERVER_GONE_ERROR};
use dbdyno_wire::postgres::errors::CONNECTION_DOES_NOT_EXIST;
use dbdyno_wire::scripted::ScriptedConnector;
use dbdyno_wire::{Connection, WireError};

use super::failure::session_failure;
use super::session::{NumberedConnection, OpenFailure, UserSession};
use crate::context::Context;
use crate::sql::{Answer, ConnectionId, SqlError, StatementId};

/// Pause between attempts to reopen a lost connection.
const RECONNECT_PAUSE: Duration = Duration::from_millis(1);

/// Maximum length of a statement in a message, in bytes. The INSERT of a bulk insert has up to 512 KiB.
const STATEMENT_BYTES: usize = 4096;

/// The call by which sysbench's client library sends a statement; messages contain its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExecKind {
    /// A prepared statement.
    Execute,
    /// A statement as text.
    Query,
}

impl ExecKind {
    /// The FATAL lines about a failed statement.
    fn fatal_lines(self, pgsql: bool, (code, message): (u16, &str), text: &str) -> Vec<String> {
        match (pgsql, self) {
            (false, ExecKind::Execute) => {
                vec![format!("mysql_stmt_execute() returned error {code} ({message}) for query '{text}'")]
            }
            (false, ExecKind::Query) => {
                vec![format!("mysql_drv_query() returned error {code} ({message}) for query '{text}'")]
            }
            // 7 is PGRES_FATAL_ERROR.
            (true, ExecKind::Execute) => vec![format!("PQexecPrepared() failed: 7 {message}")],
            (true, ExecKind::Query) => {
                vec![format!("PQexec() failed: 7 {message}"), format!("failed query was: {text}")]
            }
        }
    }
}

impl<C: ScriptedConnector> UserSession<C> {
    fn log(&self, level: Level, text: &str) {
        self.thread.run.host.log(level, text);
    }

    /// Handles a failed statement, whose text `statement_text` returns, and returns the answer for the script.
    pub(super) async fn handle_error(
        &self,
        context: &Context,
        connection: ConnectionId,
        error: WireError,
        exec: ExecKind,
        statement_text: impl FnOnce() -> Vec<u8>,
        blocking: bool,
    ) -> Answer {
        let (plan, pgsql) = (&self.thread.run.plan, context.config.database.is_pgsql());
        let (code, state, message) = client_errors::describe(&error, &plan.target);
        let ignorable = is_retried(&error, plan);
        self.count_error(context, &external::error_code(&error, &plan.target).to_string(), error.class());
        let lost = if pgsql { is_lost(&error) } else { CLIENT_LOST.contains(&code) };
        if !ignorable {
            let text = statement_text();
            let text = String::from_utf8_lossy(&text[..text.len().min(STATEMENT_BYTES)]);
            for line in exec.fatal_lines(pgsql, (code, &message), &text) {
                self.log(Level::Fatal, &line);
            }
        } else {
            if !pgsql {
                self.log(Level::Debug, &format!("Ignoring error {code} {message}, "));
            }
            if lost {
                self.reopen(context, connection, blocking).await;
            } else if plan.retry.rollback {
                self.roll_back(connection, blocking).await;
            }
        }
        // Without a connection the event cannot restart.
        let ignorable = ignorable && !self.has_lost_server.get();
        context.sql.connection(connection).fail(SqlError { code, state, message, ignorable })
    }

    /// Rolls back the failed transaction. As in sysbench, this statement is not counted.
    async fn roll_back(&self, connection: ConnectionId, blocking: bool) {
        if let Some(mut taken) = self.take(connection, blocking) {
            // If ROLLBACK fails, the next statement fails too and reports the error.
            let _ = taken.connection.query(b"ROLLBACK").await;
            self.put(connection, taken, blocking);
        }
    }

    /// Reopens a lost connection. Retries until this succeeds, or the run or its time is over.
    async fn reopen(&self, context: &Context, connection: ConnectionId, blocking: bool) {
        let Some(lost) = self.take(connection, false) else { return };
        let number = lost.number;
        drop(lost);
        context.sql.set_open(connection, false);
        let (user, lost_at) = (self.measured_user(), self.now());
        loop {
            let open = self.open(context, number, blocking);
            let opened = match &user {
                Some(user) if !blocking => user.worker.until_time_limit(open).await,
                _ => Some(open.await),
            };
            match (opened, &user) {
                (None, _) => return self.has_lost_server.set(true),
                (Some(Ok(open)), user) => {
                    user.iter().for_each(|user| user.worker.note_reopened(user.id));
                    self.put(connection, NumberedConnection { connection: open, number }, false);
                    context.sql.set_open(connection, true);
                    return self.count_reconnect(context);
                }
                (Some(Err(failure)), Some(user)) => user.worker.note_lost(user.id, lost_at, &failure.error),
                (Some(Err(_)), None) if blocking => return,
                (Some(Err(_)), None) => {}
            }
            if !blocking {
                tokio::time::sleep(RECONNECT_PAUSE).await;
            } else if user.as_ref().is_some_and(|user| user.worker.is_time_over()) {
                return self.has_lost_server.set(true);
            } else {
                std::thread::sleep(RECONNECT_PAUSE);
            }
        }
    }

    /// Logs why connection `number` of the run could not be opened.
    pub(super) fn fail_connect(&self, context: &Context, opening: &OpenFailure, number: u64) -> Answer {
        let target = &self.thread.run.plan.target;
        let failure = match &opening.session_sql {
            Some(sql) => client_errors::statement_failure(FailedAction::Query, &opening.error, sql),
            None => client_errors::connect_failure(&opening.error, target, number),
        };
        let _ = self.thread.run.counters.refused.set(failure.clone());
        if opening.session_sql.is_some() {
            self.log(Level::Fatal, &session_failure(&failure));
            return Answer::Flag(false);
        }
        if target.is_postgresql() {
            self.log(Level::Fatal, &format!("Connection to database failed: {}\n", failure.message));
            return Answer::Flag(false);
        }
        let names = &context.config.database.server_names;
        let name = names.get(number as usize % names.len().max(1)).map_or("nobody", String::as_str);
        self.log(Level::Fatal, &format!("unable to connect to MySQL server on {name}, aborting..."));
        self.log(Level::Fatal, &format!("error {}: {}", failure.code, failure.message));
        Answer::Flag(false)
    }

    pub(super) fn fail_prepare(
        &self,
        context: &Context,
        connection: ConnectionId,
        error: &WireError,
    ) -> Answer {
        let plan = &self.thread.run.plan;
        let (code, state, message) = client_errors::describe(error, &plan.target);
        if plan.target.is_postgresql() {
            self.log(Level::Fatal, &format!("PQprepare() failed: ERROR:  {message}\n"));
        } else {
            self.log(Level::Fatal, "mysql_stmt_prepare() failed");
            self.log(Level::Fatal, &format!("MySQL error: {code} \"{message}\""));
        }
        let ignorable = is_retried(error, plan);
        context.sql.connection(connection).fail_prepare(SqlError { code, state, message, ignorable })
    }

    /// Fails an execution with a wrong number of parameters.
    pub(super) fn fail_unbound(
        &self,
        context: &Context,
        connection: ConnectionId,
        statement: StatementId,
    ) -> Answer {
        self.count_error(context, "0", ErrorClass::Other);
        if context.sql.statement(statement).has_parameters() {
            self.log(Level::Fatal, "Wrong number of parameters to mysql_stmt_bind_param");
        }
        let text = String::from_utf8_lossy(&context.sql.statement(statement).sql).into_owned();
        self.log(Level::Fatal, &format!("mysql_stmt_execute() returned error 0 () for query '{text}'"));
        let state = "00000".to_owned();
        context.sql.connection(connection).fail(SqlError { state, ..SqlError::default() })
    }

    /// Fails a statement whose connection could not be reopened.
    pub(super) fn fail_closed(&self, context: &Context, connection: ConnectionId) -> Answer {
        let message = "Server has gone away".to_owned();
        let (code, state) = match context.config.database.is_pgsql() {
            true => (0, CONNECTION_DOES_NOT_EXIST),
            false => (CR_SERVER_GONE_ERROR, "HY000"),
        };
        let error = SqlError { code, state: state.into(), message, ignorable: false };
        context.sql.connection(connection).fail(error)
    }
}
