//! Has done what a state's scripts want: the connections of one state, and every statement on them.
//!
//! One per state. While a statement is under way its connection is out of its place, so that nothing else can use it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::sql::{Answer, ConnectionId, Quoting, Request, StatementId, Way};
use crate::{Compat, Context, Front, World};
use dbdyno_door::plan::Plan;
use dbdyno_pace::Nanos;
use dbdyno_wire::scripted::{self, Part, Rows, Scripted, ScriptedConnector};
use dbdyno_wire::{Connection, Outcome, WireError};
use tokio::sync::Semaphore;

use super::LuaFailure;
use super::counting::statement_of;
use super::mishaps::Said;
use dbdyno_drive::external::OPENING_MAX;
use dbdyno_drive::external::{Desk, Seat};

/// Names of the statement kinds of a script, by their numbers.
pub(super) const KINDS: [&str; 3] = ["read", "write", "other"];

/// What all states of all threads share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Connections opened so far: they take the server's addresses in turn.
    opened: AtomicU64,
    /// Why a user's end failed, which ends nobody's run: the first of them.
    pub(super) fault_at_end: OnceLock<LuaFailure>,
    /// Some state has asked for a database driver.
    pub(super) database_is_used: AtomicBool,
}

/// What all states of one thread share.
pub(super) struct Shared<C> {
    pub(super) connector: C,
    pub(super) plan: Arc<Plan>,
    pub(super) front: Arc<dyn Front>,
    pub(super) common: Arc<Common>,
    turns: Semaphore,
}

impl<C> Shared<C> {
    pub(super) fn new(connector: C, plan: Arc<Plan>, front: Arc<dyn Front>, common: Arc<Common>) -> Rc<Self> {
        Rc::new(Self { connector, plan, front, common, turns: Semaphore::new(OPENING_MAX) })
    }
}

/// Where what happens is counted.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) desk: Rc<Desk>,
    pub(super) seat: Seat,
}

/// The event that a user plays.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Under {
    /// When it was due.
    pub(super) due: Nanos,
    /// When it began.
    pub(super) start: Nanos,
}

fn quoting(context: &Context) -> Quoting {
    if context.program.database.is_pgsql() { Quoting::Doubled } else { Quoting::Backslashes }
}

/// The connections of one state.
pub(super) struct Broker<C: ScriptedConnector> {
    pub(super) shared: Rc<Shared<C>>,
    /// By their numbers in the state, with how the run numbers them.
    lines: RefCell<Vec<Option<Line<C::Connection>>>>,
    /// None before the clock starts, and outside a run.
    pub(super) place: RefCell<Option<Place>>,
    /// What was counted before the clock started, by kind, and errors.
    pub(super) early: [Cell<u64>; 3],
    pub(super) under: Cell<Option<Under>>,
    /// When the last event ended, for a script with a loop of its own.
    pub(super) free_since: Cell<Option<Nanos>>,
}

pub(super) struct Line<L> {
    pub(super) connection: L,
    /// Number within the run.
    pub(super) number: u64,
}

impl<C: ScriptedConnector> Broker<C> {
    pub(super) fn new(shared: &Rc<Shared<C>>) -> Rc<Self> {
        Rc::new(Self {
            shared: Rc::clone(shared),
            lines: RefCell::new(Vec::new()),
            place: RefCell::new(None),
            early: Default::default(),
            under: Cell::new(None),
            free_since: Cell::new(None),
        })
    }

    /// From here on what happens is counted at `place`; what has happened before, too.
    pub(super) fn take_place(&self, place: Place) {
        let now = place.desk.now();
        for (kind, early) in self.early.iter().enumerate() {
            for _ in 0..early.take() {
                place.desk.statement(statement_of(kind, now, now, 0));
            }
        }
        *self.place.borrow_mut() = Some(place);
    }

    #[inline]
    pub(super) fn place(&self) -> Option<Place> {
        self.place.borrow().clone()
    }

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
        let result = line.connection.skimmed().await;
        let parts = line.connection.take_parts();
        self.put(connection, line, hold);
        match result {
            Ok(outcome) => self.succeeded(context, connection, (outcome, None, parts), start),
            Err(error) => {
                let prepared = matches!(execution.way, Way::Prepared(_));
                let said = if prepared { Said::Execute } else { Said::Query };
                // What was sent: with `?` where parameters travel apart, else with their values.
                let text = || match said {
                    Said::Execute => context.sql.statement_text(statement),
                    Said::Query => context.sql.with_literals(statement, quoting(context), <[u8]>::to_vec),
                };
                Box::pin(self.mishap(context, connection, error, said, text, hold)).await
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
        let (rows, result) = line.connection.kept(rows).await;
        let parts = line.connection.take_parts();
        self.put(connection, line, hold);
        match result {
            Ok(outcome) => self.succeeded(context, connection, (outcome, Some(rows), parts), start),
            Err(error) => {
                let text = || context.sql.with_text(<[u8]>::to_vec);
                Box::pin(self.mishap(context, connection, error, Said::Query, text, hold)).await
            }
        }
    }

    /// A statement has an outcome. Of several results the first one counts; the others do when they are asked for.
    #[inline]
    fn succeeded(
        &self,
        context: &Context,
        connection: ConnectionId,
        (outcome, rows, parts): (Outcome, Option<Rows>, Vec<Part>),
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

    /// Opens connection `number` of the run.
    pub(super) async fn open(
        &self,
        context: &Context,
        number: u64,
        hold: bool,
    ) -> Result<C::Connection, WireError> {
        let mut opened = if hold {
            self.shared.connector.connect_at_once(number).await?
        } else {
            let _turn = self.shared.turns.acquire().await;
            self.shared.connector.connect(number).await?
        };
        if context.program.compat == Compat::V11 {
            opened.tell_parts();
        }
        Ok(opened)
    }

    pub(super) async fn close(&self, context: &Context, connection: ConnectionId, hold: bool) {
        if let Some(mut line) = self.take(connection, hold) {
            line.connection.close().await;
        }
        context.sql.opened(connection, false);
    }

    /// Closes what the script has forgotten.
    pub(super) async fn close_abandoned(&self, context: &Context) {
        let abandoned = context.sql.take_abandoned();
        if !abandoned.is_empty() {
            // Boxed, so that the many users that forget nothing are small.
            Box::pin(async {
                for connection in abandoned {
                    self.close(context, connection, false).await;
                }
            })
            .await;
        }
    }

    /// Closes everything.
    pub(super) async fn close_all(&self) {
        let lines = std::mem::take(&mut *self.lines.borrow_mut());
        for mut line in lines.into_iter().flatten() {
            line.connection.close().await;
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
        let result = line.connection.prepared().await;
        self.put(connection, line, hold);
        match result {
            Ok(prepared) => {
                context.sql.prepared(statement, Way::Prepared(prepared.id), prepared.parameters);
                Answer::Nothing
            }
            // BEGIN, say, on MySQL.
            Err(error) if error.code() == Some(super::mishaps::ER_UNSUPPORTED_PS) => as_text(Way::Text),
            Err(error) => self.not_prepared(context, connection, &error),
        }
    }

    async fn forget(&self, context: &Context, statement: StatementId, hold: bool) -> Answer {
        let execution = context.sql.execution(statement);
        if let Way::Prepared(id) = execution.way
            && let Some(mut line) = self.take(execution.connection, hold)
        {
            // A connection that is broken has nothing to forget, and the next statement finds that out.
            let _ = line.connection.forget(id).await;
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
        let due = if hold { super::blocking::wait_for(&desk, due) } else { due.await };
        let start = desk.now();
        self.under.set(due.map(|due| Under { due, start }));
        due.is_some()
    }

    /// Takes a connection out of its place.
    #[inline]
    pub(super) fn take(&self, connection: ConnectionId, hold: bool) -> Option<Line<C::Connection>> {
        let mut line = self.lines.borrow_mut().get_mut(connection.0 as usize)?.take()?;
        if hold {
            line.connection.hold_thread(true);
        }
        Some(line)
    }

    /// Puts a connection into its place.
    #[inline]
    pub(super) fn put(&self, connection: ConnectionId, mut line: Line<C::Connection>, hold: bool) {
        if hold {
            line.connection.hold_thread(false);
        }
        let mut lines = self.lines.borrow_mut();
        let place = connection.0 as usize;
        if lines.len() <= place {
            lines.resize_with(place + 1, || None);
        }
        lines[place] = Some(line);
    }

    /// Now, where there is a clock.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.place.borrow().as_ref().map_or(0, |place| place.desk.now())
    }
}

impl<C: ScriptedConnector> World for Broker<C> {
    fn at_once(&self, context: &Context, request: Request) -> Answer {
        scripted::at_once(self.answer(context, request, true))
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
        desk.event(seat, dbdyno_gauge::Event { due, start, end });
        self.free_since.set(Some(end));
    }
}
