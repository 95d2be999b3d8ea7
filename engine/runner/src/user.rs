//! One virtual user: a session, and the loop of its events.
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
use dbdyno_schema::record::{EndReason, ErrorClass, Failure};
use dbdyno_wire::scripted::{Rows, Scripted, ScriptedConnector};
use dbdyno_wire::{Connection, Outcome, WireError, placeholders};
use dbdyno_workload::{Call, Program};

use crate::backoff::Backoff;
use crate::desk::{Desk, Seat};
use crate::failure;
use crate::session::{Opener, Session, Way};
use crate::{Options, Renewal};

/// What all users of a run share.
pub(crate) struct Script {
    pub(crate) program: Program,
    pub(crate) plan: Arc<Plan>,
    pub(crate) options: Options,
}

/// Plays the script on a session of its own until the run is over.
pub(crate) struct User<C: ScriptedConnector> {
    pub(crate) session: Session<C::Connection>,
    pub(crate) opener: Rc<Opener<C>>,
    pub(crate) desk: Rc<Desk>,
    pub(crate) seat: Seat,
    pub(crate) script: Rc<Script>,
    pub(crate) event: dbdyno_workload::Event,
    /// Spreads the pauses between attempts to connect.
    pub(crate) rng: Rng,
}

/// Events after which a user that waits for nobody lets the others of its thread go on: some 50 us.
const EVENTS_ALONE: u32 = 256;

/// Why a user stops.
enum Halt {
    /// The run is over, and this user is without a connection.
    Over,
    /// The run cannot go on.
    Failed(EndReason, Failure),
}

impl<C: ScriptedConnector> User<C> {
    pub(crate) async fn play(mut self) {
        let every = self.script.plan.load.reconnect_every;
        let within = self.script.options.renewal == Renewal::WithinLastEvent;
        let mut played = 0;
        let mut free_since = None;
        if let Err((reason, failure)) = Box::pin(self.follow_rows()).await {
            self.desk.fail((reason, failure));
            return;
        }
        let mut alone = 0u32;
        while !self.event.is_done()
            && let Some(due) = self.desk.next_due(self.seat, free_since).await
        {
            let worn = every != 0 && played == every;
            let wears = within && played + 1 == every;
            match self.play_event(due, worn, wears).await {
                Ok(end) => free_since = Some(end),
                Err(Halt::Over) => return,
                Err(Halt::Failed(reason, failure)) => {
                    self.desk.fail((reason, failure));
                    return;
                }
            }
            played = if wears { 0 } else { 1 + if worn { 0 } else { played } };
            if self.event.collects() {
                // An event that only collects a row waits for nobody, and the others want their turn.
                alone += 1;
                if alone.is_multiple_of(EVENTS_ALONE) {
                    tokio::task::yield_now().await;
                }
            }
        }
        let Some(left) = Box::pin(self.send_rest(free_since)).await else { return };
        if let Err((reason, failure)) = Box::pin(self.say_farewell()).await {
            self.desk.fail((reason, failure));
            return;
        }
        self.desk.leave(left);
        Box::pin(self.session.connection.close()).await;
    }

    /// Sends what the workload wants at the end of a connection.
    async fn say_farewell(&mut self) -> Result<(), (EndReason, Failure)> {
        for sql in self.script.program.teardown() {
            let sent = self.session.connection.query(sql.as_bytes()).await;
            sent.map_err(|error| failure::working(&error, sql))?;
        }
        Ok(())
    }

    /// Lets collected rows follow those that an earlier run has left.
    async fn follow_rows(&mut self) -> Result<(), (EndReason, Failure)> {
        let Some(sql) = self.event.last_row_sql() else { return Ok(()) };
        let rows = self.session.connection.rows(&sql).await;
        let rows = rows.map_err(|error| failure::working(&error, &sql))?;
        let last = rows.into_iter().flatten().flatten().next().and_then(|text| text.parse().ok());
        self.event.follow(last.unwrap_or(0));
        Ok(())
    }

    /// Sends the rows that are collected and not sent. That statement counts where the run is not over. Returns when
    /// this user has no more to do, or `None` where it failed.
    async fn send_rest(&mut self, free_since: Option<Nanos>) -> Option<Nanos> {
        let sent = free_since.unwrap_or_else(|| self.desk.now());
        let Some(call) = self.event.rest() else { return Some(sent) };
        match send(&mut self.session, call).await {
            Ok(outcome) => {
                let end = self.desk.now();
                self.desk.statement(statement(call, outcome, sent, end));
                Some(end)
            }
            Err(error) => {
                self.desk.fail(self.failure(&error));
                None
            }
        }
    }

    /// Plays one event to its end, starting it anew after errors that are to be retried; on a new session where
    /// the old one is `worn`, and leaving a new one behind where the event `wears` it out.
    async fn play_event(&mut self, due: Nanos, worn: bool, wears: bool) -> Result<Nanos, Halt> {
        let start = self.desk.now();
        // What happens rarely waits in a box of its own, so that thousands of users at work stay small.
        let mut sent = if worn { Box::pin(self.renew()).await? } else { start };
        loop {
            match self.attempt(sent).await {
                Ok(mut end) => {
                    if wears {
                        end = Box::pin(self.renew()).await?;
                    }
                    self.desk.event(self.seat, Event { due, start, end });
                    return Ok(end);
                }
                Err(error) => sent = Box::pin(self.recover(error)).await?,
            }
        }
    }

    /// Plays the statements of one transaction, the first sent at `start`. Returns when the last was answered.
    async fn attempt(&mut self, start: Nanos) -> Result<Nanos, WireError> {
        self.event.restart();
        let mut sent = start;
        while let Some(call) = self.event.next(&self.script.program) {
            if call.keeps {
                sent = Box::pin(self.send_and_keep(sent)).await?;
                continue;
            }
            let outcome = send(&mut self.session, call).await?;
            let end = self.desk.now();
            self.desk.statement(statement(call, outcome, sent, end));
            sent = end;
        }
        Ok(sent)
    }

    /// Plays the statement that the event has just given, and hands it the first row of the answer. Returns when it was
    /// answered.
    async fn send_and_keep(&mut self, sent: Nanos) -> Result<Nanos, WireError> {
        let call = self.event.last();
        let Session { ways, connection, .. } = &mut self.session;
        let (Way::Text(template), values) = (&ways[call.statement], &call.values) else {
            unreachable!("a statement whose result is kept is not prepared");
        };
        let mut sql = Vec::new();
        placeholders::fill(&mut sql, template, values, self.script.plan.target.quoting());
        connection.write_query(&sql);
        let (rows, outcome) = connection.fetch_rows(Rows::default()).await;
        let end = self.desk.now();
        self.desk.statement(statement(call, outcome?, sent, end));
        let mut first = Vec::new();
        if let Some(row) = rows.row(0) {
            rows.each_column(row, |(_, column)| first.push(column.map(Vec::from)));
        }
        self.event.keep(&self.script.program, &first);
        Ok(end)
    }

    /// Makes the event that met an error ready to start anew. Returns when it is.
    #[cold]
    async fn recover(&mut self, mut error: WireError) -> Result<Nanos, Halt> {
        let (mut ending, plan) = (self.failure(&error), Arc::clone(&self.script.plan));
        self.count_error(&error);
        let is_lost = failure::is_lost(&error);
        if !is_lost && matches!(error, WireError::Server { .. }) && failure::is_retried(&error, &plan) {
            let Err(refused) = self.begin_anew(plan.retry.rollback).await else {
                return Ok(self.desk.now());
            };
            (error, ending) = (refused.clone(), failure::working(&refused, "ROLLBACK"));
            self.count_error(&error);
        }
        let now = self.desk.now();
        let may_return = plan.reconnect.on_lost == OnLost::Reconnect || failure::is_retried(&error, &plan);
        if failure::is_lost(&error) && may_return {
            self.desk.retry(now);
            return self.reconnect(&error).await;
        }
        self.desk.failed(self.seat, now);
        Err(Halt::Failed(ending.0, ending.1))
    }

    fn count_error(&self, error: &WireError) {
        let code = failure::code(error, &self.script.plan.target);
        self.desk.error(self.desk.now(), &code.to_string(), error.class());
    }

    /// An attempt to open a connection has failed.
    fn count_refusal(&self, now: Nanos, error: &WireError) {
        let code = failure::opening_code(error, &self.script.plan.target);
        self.desk.error(now, &code.to_string(), ErrorClass::Refused);
    }

    /// Makes the session ready for the same event once more.
    async fn begin_anew(&mut self, rollback: bool) -> Result<(), WireError> {
        if rollback {
            // A lock wait timeout rolls back one statement only: without this a new BEGIN would commit the rest.
            self.session.connection.query(b"ROLLBACK").await?;
            if !self.script.options.uncounted_rollback {
                self.desk.other_statement(self.desk.now());
            }
        }
        self.desk.retry(self.desk.now());
        Ok(())
    }

    /// Closes the session, which is sound, and opens another one for the event that is due.
    #[cold]
    async fn renew(&mut self) -> Result<Nanos, Halt> {
        self.session.connection.close().await;
        // In turn: room was made for so many predecessors and no more (`Post::make_room`).
        match self.desk.unless_over(self.opener.open_in_turn(self.session.number)).await {
            None => Err(Halt::Over),
            Some(Ok(session)) => Ok(self.go_on_with(session)),
            Some(Err(refusal)) => self.recover_opening(refusal.error).await,
        }
    }

    async fn recover_opening(&mut self, error: WireError) -> Result<Nanos, Halt> {
        let now = self.desk.now();
        self.count_refusal(now, &error);
        if self.script.plan.reconnect.on_lost == OnLost::Reconnect {
            return self.reconnect(&error).await;
        }
        self.desk.failed(self.seat, now);
        let number = self.session.number;
        Err(Halt::Failed(
            EndReason::ConnectionLost,
            failure::connecting(&error, &self.script.plan.target, number).1,
        ))
    }

    /// Opens a session again and again until one stands, the run is over, or it has taken too long.
    async fn reconnect(&mut self, lost: &WireError) -> Result<Nanos, Halt> {
        let settings = &self.script.plan.reconnect;
        let give_up = self.desk.now() + settings.give_up_us * 1000;
        let mut backoff = Backoff::new(settings);
        let mut attempts = 0;
        loop {
            let opened = self
                .desk
                .unless_over(self.opener.open_in_turn(self.session.number))
                .await
                .ok_or(Halt::Over)?;
            let error = match opened {
                Ok(session) => {
                    if attempts > 0 {
                        self.opener.found();
                    }
                    return Ok(self.go_on_with(session));
                }
                Err(refusal) => refusal.error,
            };
            attempts += 1;
            self.opener.refused(&error, attempts);
            let now = self.desk.now();
            if settings.on_lost == OnLost::Reconnect {
                self.count_refusal(now, &error);
            }
            if now >= give_up {
                self.desk.failed(self.seat, now);
                let (reason, failure) = failure::gone(lost, &error, settings.give_up_us);
                return Err(Halt::Failed(reason, failure));
            }
            let pause = backoff.pause(&mut self.rng).min(Duration::from_nanos(give_up - now));
            self.desk.unless_over(tokio::time::sleep(pause)).await.ok_or(Halt::Over)?;
        }
    }

    fn go_on_with(&mut self, session: Session<C::Connection>) -> Nanos {
        self.session = session;
        let now = self.desk.now();
        self.desk.reconnect(now);
        now
    }

    /// What it means that the statement sent last met `error`.
    fn failure(&self, error: &WireError) -> (EndReason, Failure) {
        let call = self.event.last();
        let statements = self.script.program.statements();
        let sql =
            statements.into_iter().nth(call.statement).map(|statement| statement.sql).unwrap_or_default();
        match self.session.ways.get(call.statement) {
            Some(Way::Text(template)) => {
                let quoting = self.script.plan.target.quoting();
                let sent = placeholders::filled(template, &call.values, quoting);
                // A recorded statement is all parameter.
                failure::sending(error, if sql == "?" { &sent } else { &sql }, &sent)
            }
            _ => failure::executing(error, &sql),
        }
    }
}

fn statement(call: &Call, outcome: Outcome, start: Nanos, end: Nanos) -> Statement {
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
async fn send<C: Connection>(session: &mut Session<C>, call: &Call) -> Result<Outcome, WireError> {
    match &session.ways[call.statement] {
        Way::Prepared(number) => session.connection.execute(*number, &call.values).await,
        Way::Text(template) => session.connection.execute_text(template, &call.values).await,
    }
}
