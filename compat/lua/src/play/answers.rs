//! What a script asks for, answered: each request, and the statement that it stands for on its connection.

use std::sync::atomic::Ordering;

use crate::sql::{Answer, ConnectionId, Quoting, Request, StatementId, Way};
use crate::{Context, World};
use dbdyno_load::Nanos;
use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::{self, ResultSet, Rows, Scripted, ScriptedConnector};

use super::blocking::wait_for;
use super::broker::{Broker, Line, Place, Under};
use super::exec_kind::ExecKind;

fn quoting(context: &Context) -> Quoting {
    if context.program.database.is_pgsql() { Quoting::Doubled } else { Quoting::Backslashes }
}

impl<C: ScriptedConnector> Broker<C> {
    /// Has `request` done. With `hold` the thread waits, and not the task.
    #[inline]
    pub(super) async fn answer(&self, context: &Context, request: Request, hold: bool) -> Answer {
        match request {
            Request::Execute(statement) => self.execute(context, statement, hold).await,
            Request::Query(connection) => self.query(context, connection, hold).await,
            // What happens rarely waits in a box of its own, so that thousands of users at work stay small.
            rare => Box::pin(self.answer_rare(context, rare, hold)).await,
        }
    }

    async fn answer_rare(&self, context: &Context, request: Request, hold: bool) -> Answer {
        match request {
            Request::Execute(_) | Request::Query(_) => unreachable!("answered before"),
            Request::Connect(connection) => self.connect(context, connection, hold).await,
            Request::Reconnect(connection) => {
                self.close(context, connection, hold).await;
                let answer = self.connect(context, connection, hold).await;
                if answer == Answer::Nothing {
                    self.count_reconnect(context);
                }
                answer
            }
            Request::Disconnect(connection) => {
                self.close(context, connection, hold).await;
                Answer::Nothing
            }
            Request::Prepare(statement) => self.prepare(context, statement, hold).await,
            Request::Forget(statement) => self.forget(context, statement, hold).await,
            Request::NextResult(connection) => self.next_result(context, connection),
            Request::NextEvent => {
                self.close_abandoned(context).await;
                Answer::Flag(self.next_event(hold).await)
            }
        }
    }

    async fn execute(&self, context: &Context, statement: StatementId, hold: bool) -> Answer {
        let mut execution = context.sql.execution(statement);
        if execution.way == Way::Unprepared {
            // The connection is not the one on which it was prepared.
            if Box::pin(self.prepare(context, statement, hold)).await == Answer::Flag(false) {
                return Answer::Flag(false);
            }
            execution = context.sql.execution(statement);
        }
        let connection = execution.connection;
        if !context.sql.is_bound(statement) {
            return self.unbound(context, connection, statement);
        }
        if context.program.database.dry_run {
            return self.dry(context, connection);
        }
        let Some(mut line) = self.take(connection, hold) else { return self.closed(context, connection) };
        match execution.way {
            Way::Prepared(id) => context.sql.with_parameters(statement, |parameters| {
                line.connection.write_execute(id, parameters, execution.types);
            }),
            _ => {
                let quoting = quoting(context);
                context.sql.with_literals(statement, quoting, |text| line.connection.write_query(text));
            }
        }
        let start = self.now();
        let result = line.connection.skim().await;
        let parts = line.connection.take_result_sets();
        self.put(connection, line, hold);
        match result {
            Ok(outcome) => self.succeeded(context, connection, (outcome, None, parts), start),
            Err(error) => {
                let prepared = matches!(execution.way, Way::Prepared(_));
                let exec = if prepared { ExecKind::Execute } else { ExecKind::Query };
                // What was sent: with `?` where parameters travel apart, else with their values.
                let text = || match exec {
                    ExecKind::Execute => context.sql.statement_text(statement),
                    ExecKind::Query => context.sql.with_literals(statement, quoting(context), <[u8]>::to_vec),
                };
                Box::pin(self.mishap(context, connection, error, exec, text, hold)).await
            }
        }
    }

    async fn query(&self, context: &Context, connection: ConnectionId, hold: bool) -> Answer {
        if context.program.database.dry_run {
            return self.dry(context, connection);
        }
        let Some(mut line) = self.take(connection, hold) else { return self.closed(context, connection) };
        context.sql.with_text(|text| line.connection.write_query(text));
        let rows = context.sql.take_rows(connection);
        let start = self.now();
        let (rows, result) = line.connection.fetch_rows(rows).await;
        let parts = line.connection.take_result_sets();
        self.put(connection, line, hold);
        match result {
            Ok(outcome) => self.succeeded(context, connection, (outcome, Some(rows), parts), start),
            Err(error) => {
                let text = || context.sql.with_text(<[u8]>::to_vec);
                Box::pin(self.mishap(context, connection, error, ExecKind::Query, text, hold)).await
            }
        }
    }

    /// A statement has an outcome. Of several results the first one counts; the others do when they are asked for.
    #[inline]
    fn succeeded(
        &self,
        context: &Context,
        connection: ConnectionId,
        (outcome, rows, parts): (Outcome, Option<Rows>, Vec<ResultSet>),
        start: Nanos,
    ) -> Answer {
        let answer = context.sql.succeeded(connection, outcome, rows);
        if parts.is_empty() {
            self.count(context, outcome, start);
            return answer;
        }
        let first = context.sql.several(connection, parts).unwrap_or_default();
        self.count(context, Outcome { bytes: outcome.bytes, ..first }, start);
        if first.returns_rows { Answer::Flag(true) } else { Answer::Nothing }
    }

    fn next_result(&self, context: &Context, connection: ConnectionId) -> Answer {
        let Some(outcome) = context.sql.next_part(connection) else { return Answer::Nothing };
        self.count(context, outcome, self.now());
        if outcome.returns_rows { Answer::Flag(true) } else { Answer::Nothing }
    }

    /// Nothing is sent, and everything succeeds: `--mysql-dry-run`.
    fn dry(&self, context: &Context, connection: ConnectionId) -> Answer {
        let outcome = Outcome::default();
        self.count(context, outcome, self.now());
        context.sql.succeeded(connection, outcome, None)
    }

    async fn connect(&self, context: &Context, connection: ConnectionId, hold: bool) -> Answer {
        let number = self.shared.common.opened.fetch_add(1, Ordering::Relaxed);
        if context.program.database.dry_run {
            context.sql.opened(connection, true);
            return Answer::Nothing;
        }
        match self.open(context, number, hold).await {
            Ok(opened) => {
                self.put(connection, Line { connection: opened, number }, false);
                context.sql.opened(connection, true);
                Answer::Nothing
            }
            Err(error) => self.not_connected(context, &error, number),
        }
    }

    async fn prepare(&self, context: &Context, statement: StatementId, hold: bool) -> Answer {
        let connection = context.sql.execution(statement).connection;
        let text = context.sql.statement_text(statement);
        let as_text = |way| {
            let placeholders = text.iter().filter(|&&byte| byte == b'?').count();
            context.sql.prepared(statement, way, placeholders as u16);
            Answer::Nothing
        };
        let database = &context.program.database;
        if database.dry_run || !database.prepared {
            return as_text(Way::Text);
        }
        let Some(mut line) = self.take(connection, hold) else { return self.closed(context, connection) };
        line.connection.write_prepare(&text);
        let result = line.connection.send_prepare().await;
        self.put(connection, line, hold);
        match result {
            Ok(prepared) => {
                context.sql.prepared(statement, Way::Prepared(prepared.id), prepared.parameters);
                Answer::Nothing
            }
            // BEGIN, say, on MySQL.
            Err(error) if error.is_unsupported_prepared() => as_text(Way::Text),
            Err(error) => self.not_prepared(context, connection, &error),
        }
    }

    async fn forget(&self, context: &Context, statement: StatementId, hold: bool) -> Answer {
        let execution = context.sql.execution(statement);
        if let Way::Prepared(id) = execution.way
            && let Some(mut line) = self.take(execution.connection, hold)
        {
            // A connection that is broken has nothing to forget, and the next statement finds that out.
            let _ = line.connection.close_statement(id).await;
            self.put(execution.connection, line, hold);
        }
        Answer::Nothing
    }

    /// For a script with a loop of its own: whether another event is due, as soon as one is.
    async fn next_event(&self, hold: bool) -> bool {
        let Some(Place { desk, seat }) = self.place() else { return false };
        if self.under.take().is_some() {
            // The script has let the last one go.
            desk.failed(seat, desk.now());
        }
        let due = desk.next_due(seat, self.free_since.take());
        let due = if hold { wait_for(&desk, due) } else { due.await };
        let start = desk.now();
        self.under.set(due.map(|due| Under { due, start }));
        due.is_some()
    }
}

impl<C: ScriptedConnector> World for Broker<C> {
    fn at_once(&self, context: &Context, request: Request) -> Answer {
        scripted::block_on(self.answer(context, request, true))
    }

    fn database_is_used(&self) {
        self.shared.common.database_is_used.store(true, Ordering::Relaxed);
    }

    fn restarted(&self) {
        if let Some(Place { desk, .. }) = &*self.place.borrow() {
            desk.retry(desk.now());
        }
    }

    fn event_start(&self) {
        let start = self.now();
        let due = match (self.under.get(), self.place()) {
            (Some(under), _) => under.due,
            (None, None) => return,
            // Nobody was asked whether it may, and it counts all the same.
            (None, Some(Place { desk, seat })) => {
                desk.begin_unasked(seat, start);
                start
            }
        };
        self.under.set(Some(Under { due, start }));
    }

    fn event_stop(&self) {
        let (Some(Under { due, start }), Some(Place { desk, seat })) = (self.under.take(), self.place())
        else {
            return;
        };
        let end = desk.now();
        desk.event(seat, dbdyno_metrics::Event { due, start, end });
        self.free_since.set(Some(end));
    }
}
