//! One user: a session and the loop that executes its events.
//!
//! ```text
//! next due ──▶ [renew after reconnect_every events] ──▶ attempt ──▶ done
//!                                                      ▲   │ error, counted by its code
//!                                  ROLLBACK ◀── retried ┘   ├──▶ not retried: the run ends
//!                                  new session ◀── lost ────┘
//! ```

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::{Event, Statement};
use dbdyno_random::Rng;
use dbdyno_schema::plan::{OnLost, Plan};
use dbdyno_schema::record::{EndReason, ErrorClass};
use dbdyno_wire::scripted::{Rows, Scripted, ScriptedConnector};
use dbdyno_wire::{Connection, Outcome, WireError, placeholders};
use dbdyno_workload::{Call, Program};

use crate::backoff::Backoff;
use crate::failure::{self, RunFailure};
use crate::session::{Session, SessionOpener, StatementHandle};
use crate::worker_state::WorkerState;
use crate::{Options, Renewal};

/// What all users of a worker share.
pub(crate) struct RunContext {
    pub(crate) program: Program,
    pub(crate) plan: Arc<Plan>,
    pub(crate) options: Options,
}

/// Executes the events of one user on its session until the run is over.
pub(crate) struct User<C: ScriptedConnector> {
    pub(crate) session: Session<C::Connection>,
    pub(crate) opener: Rc<SessionOpener<C>>,
    pub(crate) worker: Rc<WorkerState>,
    pub(crate) run: Rc<RunContext>,
    pub(crate) event: dbdyno_workload::Event,
    /// Random numbers for the pauses between attempts to connect.
    pub(crate) rng: Rng,
}

/// Number of events, about 50 µs, after which a user that never waits yields to the other users of its thread.
const EVENTS_PER_YIELD: u32 = 256;

/// Why a user stops.
enum UserEnd {
    /// The run or its time is over while this user has no connection.
    RunOver,
    /// The run must end.
    Failed(RunFailure),
}

impl<C: ScriptedConnector> User<C> {
    pub(crate) async fn run(mut self) {
        let reconnect_every = self.run.plan.load.reconnect_every;
        let renews_within_event = self.run.options.renewal == Renewal::WithinLastEvent;
        let mut events_on_connection = 0;
        let mut free_since = None;
        if let Err(failure) = Box::pin(self.continue_row_ids()).await {
            return self.worker.fail_run(failure);
        }
        let mut collected_events = 0u32;
        while !self.event.is_done()
            && let pauses = self.event.pauses(&self.run.program)
            && let Some(due) = self.worker.next_due_after(self.session.user, free_since, pauses).await
        {
            let renew_before = reconnect_every != 0 && events_on_connection == reconnect_every;
            let renew_after = renews_within_event && events_on_connection + 1 == reconnect_every;
            match self.run_event(due, renew_before, renew_after).await {
                Ok(end) => free_since = Some(end),
                Err(UserEnd::RunOver) => return,
                Err(UserEnd::Failed(failure)) => return self.worker.fail_run(failure),
            }
            events_on_connection =
                if renew_after { 0 } else { 1 + if renew_before { 0 } else { events_on_connection } };
            if self.event.has_row_buffer() {
                // An event that only collects a row never waits, so the user must yield explicitly for the other users.
                collected_events += 1;
                if collected_events.is_multiple_of(EVENTS_PER_YIELD) {
                    tokio::task::yield_now().await;
                }
            }
        }
        let Some(ended_at) = Box::pin(self.send_remaining_rows(free_since)).await else { return };
        if let Err(failure) = Box::pin(self.send_teardown()).await {
            return self.worker.fail_run(failure);
        }
        self.worker.end_user(ended_at);
        Box::pin(self.session.connection.close()).await;
    }

    async fn send_teardown(&mut self) -> Result<(), RunFailure> {
        for sql in self.run.program.teardown() {
            let sent = self.session.connection.query(sql.as_bytes()).await;
            sent.map_err(|error| failure::from_query_error(&error, sql))?;
        }
        Ok(())
    }

    /// Continues the ids of collected rows after those of an earlier run.
    async fn continue_row_ids(&mut self) -> Result<(), RunFailure> {
        let Some(sql) = self.event.last_id_sql() else { return Ok(()) };
        let rows = self.session.connection.query_rows(&sql).await;
        let rows = rows.map_err(|error| failure::from_query_error(&error, &sql))?;
        let last = rows.into_iter().flatten().flatten().next().and_then(|text| text.parse().ok());
        self.event.continue_ids_after(last.unwrap_or(0));
        Ok(())
    }

    /// Sends the collected rows that no event has sent. Returns the time of the reply, or `None` after an error.
    async fn send_remaining_rows(&mut self, free_since: Option<Nanos>) -> Option<Nanos> {
        let sent = free_since.unwrap_or_else(|| self.worker.now());
        let Some(call) = self.event.remaining_insert() else { return Some(sent) };
        match execute_call(&mut self.session, call).await {
            Ok(outcome) => {
                let end = self.worker.now();
                self.worker.count_statement(statement_record(call, outcome, sent, end));
                Some(end)
            }
            Err(error) => {
                self.worker.fail_run(self.statement_failure(&error));
                None
            }
        }
    }

    /// Executes one event, and restarts it after errors that the plan retries. Replaces the session before the event if
    /// `renew_before`, and after it if `renew_after`. Returns the end of the event.
    async fn run_event(
        &mut self,
        due: Nanos,
        renew_before: bool,
        renew_after: bool,
    ) -> Result<Nanos, UserEnd> {
        let start = self.worker.now();
        // Rare futures are boxed to keep those of thousands of users small.
        let mut sent = if renew_before { Box::pin(self.renew()).await? } else { start };
        loop {
            let attempt = self.attempt_event(sent).await;
            self.worker.answer_waits.end(self.session.user.local);
            match attempt {
                Ok(mut end) => {
                    if renew_after {
                        end = Box::pin(self.renew()).await?;
                    }
                    self.worker.end_event(self.session.user, Event { due, start, end });
                    return Ok(end);
                }
                Err(error) => {
                    let ready = Box::pin(self.recover(error)).await?;
                    let restart = Box::pin(self.worker.next_restart(self.session.user, ready)).await;
                    sent = restart.ok_or(UserEnd::RunOver)?;
                }
            }
        }
    }

    /// Executes the statements of one transaction. The first statement is sent at `start`. Returns the time of the last
    /// reply.
    async fn attempt_event(&mut self, start: Nanos) -> Result<Nanos, WireError> {
        self.event.restart();
        let mut sent = start;
        while let Some(call) = self.event.next(&self.run.program) {
            self.worker.answer_waits.begin(self.session.user.local, sent, call.statement);
            if call.is_result_used {
                sent = Box::pin(self.execute_and_store_result(sent)).await?;
                continue;
            }
            let outcome = execute_call(&mut self.session, call).await?;
            let end = self.worker.now();
            self.worker.count_statement(statement_record(call, outcome, sent, end));
            sent = end;
        }
        Ok(sent)
    }

    /// Executes the current statement and passes the first row of its result to the event. Returns the time of the
    /// reply.
    async fn execute_and_store_result(&mut self, sent: Nanos) -> Result<Nanos, WireError> {
        let call = self.event.last();
        let Session { handles, connection, .. } = &mut self.session;
        let (StatementHandle::Text(template), values) = (&handles[call.statement], &call.values) else {
            unreachable!("a statement whose result is kept is not prepared");
        };
        let mut sql = Vec::new();
        placeholders::fill(&mut sql, template, values, self.run.plan.target.quoting());
        connection.write_query(&sql);
        let (rows, outcome) = connection.fetch_rows(Rows::default()).await;
        let end = self.worker.now();
        self.worker.count_statement(statement_record(call, outcome?, sent, end));
        let mut first = Vec::new();
        if let Some(row) = rows.row(0) {
            rows.for_each_column(row, |(_, column)| first.push(column.map(Vec::from)));
        }
        self.event.store_result(&self.run.program, &first);
        Ok(end)
    }

    /// Handles an error of an event. Returns the time from which the event may restart.
    #[cold]
    async fn recover(&mut self, mut error: WireError) -> Result<Nanos, UserEnd> {
        let plan = Arc::clone(&self.run.plan);
        let mut failure = self.statement_failure(&error);
        self.count_error(&error);
        let is_lost = failure::is_lost(&error);
        if !is_lost && matches!(error, WireError::Server { .. }) && failure::is_retried(&error, &plan) {
            match self.roll_back(plan.retry.rollback).await {
                Ok(()) => return Ok(self.worker.now()),
                Err(rollback_error) => error = rollback_error,
            }
            failure = failure::from_query_error(&error, "ROLLBACK");
            self.count_error(&error);
        }
        let now = self.worker.now();
        let reconnects = plan.reconnect.on_lost == OnLost::Reconnect || failure::is_retried(&error, &plan);
        if failure::is_lost(&error) && reconnects {
            self.worker.count_retry(now);
            return self.reconnect(&error).await;
        }
        self.worker.abandon_event(self.session.user, now);
        Err(UserEnd::Failed(failure))
    }

    fn count_error(&self, error: &WireError) {
        let code = failure::error_code(error, &self.run.plan.target);
        self.worker.count_error(self.worker.now(), &code.to_string(), error.class());
    }

    /// Counts a failed attempt to open a connection.
    fn count_connect_error(&self, now: Nanos, error: &WireError) {
        let code = failure::connect_error_code(error, &self.run.plan.target);
        self.worker.count_error(now, &code.to_string(), ErrorClass::Refused);
    }

    /// Counts a retry. Before that, sends a ROLLBACK if `rollback` is set.
    async fn roll_back(&mut self, rollback: bool) -> Result<(), WireError> {
        if rollback {
            // A lock wait timeout rolls back only one statement; without a ROLLBACK, a new BEGIN would commit the other
            // statements.
            self.session.connection.query(b"ROLLBACK").await?;
            if !self.run.options.uncounted_rollback {
                self.worker.count_other_statement(self.worker.now());
            }
        }
        self.worker.count_retry(self.worker.now());
        Ok(())
    }

    /// Replaces an intact session by a new one, as `load.reconnect_every` requires.
    #[cold]
    async fn renew(&mut self) -> Result<Nanos, UserEnd> {
        self.session.connection.close().await;
        // `open_with_permit` limits the number of concurrent renewals, for which `WorkerContext::raise_open_files` reserves
        // files.
        match self.worker.until_run_ends(self.opener.open_with_permit(self.session.user)).await {
            None => Err(UserEnd::RunOver),
            Some(Ok(session)) => Ok(self.replace_session(session)),
            Some(Err(failure)) => self.recover_renewal(failure.error).await,
        }
    }

    /// Handles the failure to open a session that replaces a closed one.
    async fn recover_renewal(&mut self, error: WireError) -> Result<Nanos, UserEnd> {
        let now = self.worker.now();
        self.count_connect_error(now, &error);
        if self.run.plan.reconnect.on_lost == OnLost::Reconnect {
            return self.reconnect(&error).await;
        }
        let user = self.session.user;
        self.worker.abandon_event(user, now);
        Err(UserEnd::Failed((
            EndReason::ConnectionLost,
            failure::from_connect_error(&error, &self.run.plan.target, user.global).1,
        )))
    }

    /// Tries to open a session until it succeeds, the run or its time is over, or `reconnect.give_up_us` has passed.
    async fn reconnect(&mut self, lost: &WireError) -> Result<Nanos, UserEnd> {
        let (settings, user) = (&self.run.plan.reconnect, self.session.user);
        let lost_at = self.worker.now();
        let give_up = lost_at + settings.give_up_us * 1000;
        let mut backoff = Backoff::new(settings);
        loop {
            let opened = self.worker.until_time_limit(self.opener.open_with_permit(user)).await;
            let error = match opened.ok_or_else(|| self.end_without_connection())? {
                Ok(session) => {
                    self.worker.note_reopened(user);
                    return Ok(self.replace_session(session));
                }
                Err(failure) => failure.error,
            };
            self.worker.note_lost(user, lost_at, &error);
            let now = self.worker.now();
            if settings.on_lost == OnLost::Reconnect {
                self.count_connect_error(now, &error);
            }
            if now >= give_up {
                self.worker.abandon_event(user, now);
                return Err(UserEnd::Failed(failure::from_reconnect_error(
                    lost,
                    &error,
                    settings.give_up_us,
                )));
            }
            let pause = backoff.next_pause(&mut self.rng).min(Duration::from_nanos(give_up - now));
            let paused = self.worker.until_time_limit(tokio::time::sleep(pause)).await;
            paused.ok_or_else(|| self.end_without_connection())?;
        }
    }

    /// Ends the user. If the time limit has passed and the run waits for events in progress, it need not wait for this one.
    fn end_without_connection(&self) -> UserEnd {
        if !self.worker.is_over() {
            let now = self.worker.now();
            self.worker.abandon_event(self.session.user, now);
            self.worker.end_user(now);
        }
        UserEnd::RunOver
    }

    fn replace_session(&mut self, session: Session<C::Connection>) -> Nanos {
        self.session = session;
        let now = self.worker.now();
        self.worker.count_reconnect(now);
        now
    }

    /// The failure of a run that ends because a statement failed with `error`.
    fn statement_failure(&self, error: &WireError) -> RunFailure {
        let call = self.event.last();
        let statements = self.run.program.statements();
        let sql =
            statements.into_iter().nth(call.statement).map(|statement| statement.sql).unwrap_or_default();
        match self.session.handles.get(call.statement) {
            Some(StatementHandle::Text(template)) => {
                let quoting = self.run.plan.target.quoting();
                let sent = placeholders::to_sql(template, &call.values, quoting);
                // For recorded statements, the text is the parameter of the statement `?`.
                failure::from_text_error(error, if sql == "?" { &sent } else { &sql }, &sent)
            }
            _ => failure::from_execute_error(error, &sql),
        }
    }
}

fn statement_record(call: &Call, outcome: Outcome, start: Nanos, end: Nanos) -> Statement {
    Statement {
        kind: call.kind,
        class: call.class,
        start,
        end,
        returns_rows: outcome.returns_rows,
        rows: outcome.rows,
        rows_expected: call.rows_expected,
        bytes: outcome.bytes,
    }
}

#[inline]
async fn execute_call<C: Connection>(session: &mut Session<C>, call: &Call) -> Result<Outcome, WireError> {
    match &session.handles[call.statement] {
        StatementHandle::Prepared(number) => session.connection.execute(*number, &call.values).await,
        StatementHandle::Text(template) => session.connection.execute_text(template, &call.values).await,
    }
}
