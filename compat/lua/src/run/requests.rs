//! Executes a script's requests on its connections.

use std::sync::atomic::Ordering;

use dbdyno_load::Nanos;
use dbdyno_runner::external::SetupMarks;
use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::{self, ResultSet, Rows, Scripted, ScriptedConnector};

use super::blocking::block_until_ready;
use super::errors::ExecKind;
use super::session::{CurrentEvent, MeasuredUser, NumberedConnection, UserSession};
use crate::context::{Context, RequestHandler};
use crate::sql::{Answer, ConnectionId, Quoting, Request, StatementId, StatementMode};

fn quoting(context: &Context) -> Quoting {
    if context.config.database.is_pgsql() { Quoting::Doubled } else { Quoting::Backslashes }
}

/// Writes a statement that marks the tables that it creates.
#[cold]
fn write_marked(connection: &mut impl Scripted, marks: &SetupMarks, text: &[u8]) {
    let marked = std::str::from_utf8(text).ok().and_then(|sql| marks.clone().add(sql));
    connection.write_query(marked.as_deref().map_or(text, str::as_bytes));
}

impl<C: ScriptedConnector> UserSession<C> {
    /// Executes `request`. With `blocking`, blocks the thread instead of suspending the task.
    #[inline]
    pub(super) async fn execute_request(
        &self,
        context: &Context,
        request: Request,
        blocking: bool,
    ) -> Answer {
        match request {
            Request::Execute(statement) => self.execute(context, statement, blocking).await,
            Request::Query(connection) => self.query(context, connection, blocking).await,
            // Boxed, so that the futures of thousands of users stay small.
            other => Box::pin(self.execute_other_request(context, other, blocking)).await,
        }
    }

    async fn execute_other_request(&self, context: &Context, request: Request, blocking: bool) -> Answer {
        match request {
            Request::Execute(_) | Request::Query(_) => unreachable!("`execute_request` handles these"),
            Request::Connect(connection) => self.connect(context, connection, blocking).await,
            Request::Reconnect(connection) => {
                self.close(context, connection, blocking).await;
                let answer = self.connect(context, connection, blocking).await;
                if answer == Answer::Nothing {
                    self.count_reconnect(context);
                }
                answer
            }
            Request::Disconnect(connection) => {
                self.close(context, connection, blocking).await;
                Answer::Nothing
            }
            Request::Prepare(statement) => self.prepare(context, statement, blocking).await,
            Request::CloseStatement(statement) => self.close_statement(context, statement, blocking).await,
            Request::NextResult(connection) => self.next_result(context, connection),
            Request::NextEvent => {
                self.close_unreferenced(context).await;
                Answer::Flag(self.next_event(blocking).await)
            }
        }
    }

    async fn execute(&self, context: &Context, statement: StatementId, blocking: bool) -> Answer {
        let mut execution = context.sql.execution(statement);
        if execution.mode == StatementMode::Unprepared {
            // The connection on which the statement was prepared was lost, so the statement must be prepared again.
            if Box::pin(self.prepare(context, statement, blocking)).await == Answer::Flag(false) {
                return Answer::Flag(false);
            }
            execution = context.sql.execution(statement);
        }
        let connection = execution.connection;
        if !context.sql.statement(statement).is_bound() {
            return self.fail_unbound(context, connection, statement);
        }
        if context.config.database.dry_run {
            return self.succeed_without_sending(context, connection);
        }
        let Some(mut taken) = self.take(connection, blocking) else {
            return self.fail_closed(context, connection);
        };
        match execution.mode {
            StatementMode::Prepared(id) => context.sql.with_parameters(statement, |parameters| {
                taken.connection.write_execute(id, parameters, execution.sends_types);
            }),
            _ => {
                let quoting = quoting(context);
                context.sql.with_literals(statement, quoting, |text| taken.connection.write_query(text));
            }
        }
        let start = self.begin_wait();
        let result = taken.connection.skim().await;
        self.end_wait();
        let result_sets = taken.connection.take_result_sets();
        self.put(connection, taken, blocking);
        match result {
            Ok(outcome) => self.succeed(context, connection, (outcome, None, result_sets), start),
            Err(error) => {
                let prepared = matches!(execution.mode, StatementMode::Prepared(_));
                let exec = if prepared { ExecKind::Execute } else { ExecKind::Query };
                // The text as it was sent: with `?` if the parameters were sent separately, and otherwise with their
                // values.
                let text = || match exec {
                    ExecKind::Execute => context.sql.statement(statement).sql.clone(),
                    ExecKind::Query => context.sql.with_literals(statement, quoting(context), <[u8]>::to_vec),
                };
                Box::pin(self.handle_error(context, connection, error, exec, text, blocking)).await
            }
        }
    }

    async fn query(&self, context: &Context, connection: ConnectionId, blocking: bool) -> Answer {
        if context.config.database.dry_run {
            return self.succeed_without_sending(context, connection);
        }
        let Some(mut taken) = self.take(connection, blocking) else {
            return self.fail_closed(context, connection);
        };
        context.sql.with_text(|text| match &self.thread.run.marks {
            None => taken.connection.write_query(text),
            Some(marks) => write_marked(&mut taken.connection, marks, text),
        });
        // The new rows reuse this memory.
        let rows = std::mem::take(&mut context.sql.connection(connection).rows);
        let start = self.begin_wait();
        let (rows, result) = taken.connection.fetch_rows(rows).await;
        self.end_wait();
        let result_sets = taken.connection.take_result_sets();
        self.put(connection, taken, blocking);
        match result {
            Ok(outcome) => self.succeed(context, connection, (outcome, Some(rows), result_sets), start),
            Err(error) => {
                let text = || context.sql.with_text(<[u8]>::to_vec);
                Box::pin(self.handle_error(context, connection, error, ExecKind::Query, text, blocking)).await
            }
        }
    }

    /// Stores and counts a successful statement. Each result after the first counts when the script reads it.
    #[inline]
    fn succeed(
        &self,
        context: &Context,
        connection: ConnectionId,
        (outcome, rows, result_sets): (Outcome, Option<Rows>, Vec<ResultSet>),
        start: Nanos,
    ) -> Answer {
        let answer = context.sql.connection(connection).succeed(outcome, rows);
        if result_sets.is_empty() {
            self.count_statement(context, outcome, start);
            return answer;
        }
        let first = context.sql.connection(connection).set_results(result_sets).unwrap_or_default();
        self.count_statement(context, Outcome { bytes: outcome.bytes, ..first }, start);
        if first.returns_rows { Answer::Flag(true) } else { Answer::Nothing }
    }

    fn next_result(&self, context: &Context, connection: ConnectionId) -> Answer {
        let outcome = context.sql.connection(connection).next_result_set();
        let Some(outcome) = outcome else { return Answer::Nothing };
        self.count_statement(context, outcome, self.now());
        if outcome.returns_rows { Answer::Flag(true) } else { Answer::Nothing }
    }

    /// `--mysql-dry-run`: statements succeed without being sent.
    fn succeed_without_sending(&self, context: &Context, connection: ConnectionId) -> Answer {
        self.succeed(context, connection, (Outcome::default(), None, Vec::new()), self.now())
    }

    async fn connect(&self, context: &Context, connection: ConnectionId, blocking: bool) -> Answer {
        let number = self.thread.run.counters.connections.fetch_add(1, Ordering::Relaxed);
        if !context.config.database.dry_run {
            match self.open(context, number, blocking).await {
                Ok(open) => self.put(connection, NumberedConnection { connection: open, number }, false),
                Err(failure) => return self.fail_connect(context, &failure, number),
            }
        }
        context.sql.set_open(connection, true);
        Answer::Nothing
    }

    async fn prepare(&self, context: &Context, statement: StatementId, blocking: bool) -> Answer {
        let (connection, text) = {
            let statement = context.sql.statement(statement);
            (statement.connection, statement.sql.clone())
        };
        let set_mode = |mode, placeholders| {
            context.sql.statement(statement).set_mode(mode, placeholders);
            Answer::Nothing
        };
        let send_as_text =
            || set_mode(StatementMode::Text, text.iter().filter(|&&byte| byte == b'?').count() as u16);
        let database = &context.config.database;
        if database.dry_run || !database.prepared {
            return send_as_text();
        }
        let Some(mut taken) = self.take(connection, blocking) else {
            return self.fail_closed(context, connection);
        };
        taken.connection.write_prepare(&text);
        let result = taken.connection.send_prepare().await;
        self.put(connection, taken, blocking);
        match result {
            Ok(prepared) => set_mode(StatementMode::Prepared(prepared.id), prepared.parameters),
            // MySQL cannot prepare some statements, for example BEGIN.
            Err(error) if error.is_unsupported_prepared() => send_as_text(),
            Err(error) => self.fail_prepare(context, connection, &error),
        }
    }

    async fn close_statement(&self, context: &Context, statement: StatementId, blocking: bool) -> Answer {
        let execution = context.sql.execution(statement);
        if let StatementMode::Prepared(id) = execution.mode
            && let Some(mut taken) = self.take(execution.connection, blocking)
        {
            // If the connection is broken, the next statement reports the error.
            let _ = taken.connection.close_statement(id).await;
            self.put(execution.connection, taken, blocking);
        }
        Answer::Nothing
    }

    /// Waits until the next event is due, for a script with its own loop; returns false at the end of the run.
    async fn next_event(&self, blocking: bool) -> bool {
        let Some(MeasuredUser { worker, id }) = self.measured_user() else { return false };
        if self.event.take().is_some() {
            // The script did not call `sb_event_stop` for its last event.
            worker.abandon_event(id, worker.now());
        }
        let due = worker.next_due(id, self.free_since.take());
        let due = if blocking { block_until_ready(&worker, due) } else { due.await };
        let start = worker.now();
        self.event.set(due.map(|due| CurrentEvent { due, start }));
        due.is_some()
    }
}

impl<C: ScriptedConnector> RequestHandler for UserSession<C> {
    fn handle(&self, context: &Context, request: Request) -> Answer {
        scripted::block_on(self.execute_request(context, request, true))
    }

    fn use_database(&self) {
        self.thread.run.counters.uses_database.store(true, Ordering::Relaxed);
    }

    fn restart_event(&self) {
        if let Some(MeasuredUser { worker, .. }) = &*self.measured_user.borrow() {
            worker.count_retry(worker.now());
        }
    }

    fn start_event(&self) {
        let start = self.now();
        let due = match (self.event.get(), self.measured_user()) {
            (Some(event), _) => event.due,
            (None, None) => return,
            // The script did not call `sb_more_events` first; the event counts all the same.
            (None, Some(MeasuredUser { worker, id })) => {
                worker.begin_unscheduled(id, start);
                start
            }
        };
        self.event.set(Some(CurrentEvent { due, start }));
    }

    fn stop_event(&self) {
        let (Some(CurrentEvent { due, start }), Some(MeasuredUser { worker, id })) =
            (self.event.take(), self.measured_user())
        else {
            return;
        };
        let end = worker.now();
        worker.end_event(id, dbdyno_metrics::Event { due, start, end });
        self.free_since.set(Some(end));
    }
}
