//! Sessions: connections on which every statement of the run is prepared, opened at the start and anew after a loss.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dbdyno_schema::plan::Target;
use dbdyno_schema::record::{EndReason, Failure};
use dbdyno_wire::scripted::Type;
use dbdyno_wire::{Connection, Connector, WireError};
use dbdyno_workload::{Program, Statement};
use tokio::sync::Semaphore;

use crate::failure;
use crate::refusal::Held;

/// Connections a worker opens at the same time. More would overrun the server's listen queue.
pub const OPENING_MAX: usize = 64;

/// How a statement travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As prepared statement of this number.
    Prepared(usize),
    /// As text, where that is asked for or the server does not prepare it (MySQL refuses BEGIN).
    Text(String),
}

/// A connection that is ready to play events.
pub(crate) struct Session<C> {
    /// Which of all connections of the run.
    pub(crate) number: u64,
    pub(crate) connection: C,
    /// By statement number; see `Program::statements`. Shared by all sessions that have the same.
    pub(crate) ways: Rc<[Way]>,
}

/// Why a session could not be opened.
pub(crate) struct Refusal<C> {
    pub(crate) error: WireError,
    /// Which of all connections of the run.
    pub(crate) number: u64,
    /// The statement that was refused, on a connection that stands.
    pub(crate) statement: Option<String>,
    /// The connection, where the server let it in and then refused a statement.
    pub(crate) connection: Option<C>,
}

impl<C> Refusal<C> {
    /// What it means for the run.
    pub(crate) fn failure(&self, target: &Target) -> (EndReason, Failure) {
        match &self.statement {
            Some(sql) => failure::preparing(&self.error, sql),
            None => failure::connecting(&self.error, target, self.number),
        }
    }
}

/// What opening a session comes to.
pub(crate) type Opened<C> = Result<Session<C>, Refusal<C>>;

/// Opens the sessions of one worker.
pub(crate) struct Opener<C> {
    connector: C,
    held: Arc<Held>,
    /// Sent on every new connection.
    session: Vec<String>,
    statements: Vec<Statement>,
    /// Numbers of the statements in the order in which they are prepared.
    order: Vec<usize>,
    /// Of the session opened last.
    ways: RefCell<Rc<[Way]>>,
    turns: Semaphore,
    /// Users whose connection is lost and could not be opened again so far.
    lost: Cell<usize>,
    /// Why not, at the last attempt of any of them.
    refusal: RefCell<Option<WireError>>,
}

impl<C: Connector> Opener<C> {
    pub(crate) fn new(connector: C, program: &Program, held: Arc<Held>) -> Self {
        let (statements, order) = (program.statements(), program.in_order());
        let (ways, turns) = (RefCell::new(Rc::new([]) as Rc<[Way]>), Semaphore::new(OPENING_MAX));
        Self {
            connector,
            held,
            session: program.session(),
            statements,
            order,
            ways,
            turns,
            lost: Cell::new(0),
            refusal: RefCell::new(None),
        }
    }

    /// As [`Opener::open`], as soon as it is its turn: for many at a time, which would overrun the server's listen
    /// queue.
    pub(crate) async fn open_in_turn(&self, number: u64) -> Opened<C::Connection> {
        let Ok(_turn) = self.turns.acquire().await else {
            let error = WireError::Lost("no more connections are opened".into());
            return Err(Refusal { error, number, statement: None, connection: None });
        };
        // Boxed here, so that the thousands that wait for their turn are small.
        Box::pin(self.open(number)).await
    }

    /// Opens connection `number` and prepares every statement on it.
    pub(crate) async fn open(&self, number: u64) -> Opened<C::Connection> {
        let mut connection = match self.connector.connect(number).await {
            Ok(connection) => connection,
            Err(error) => return Err(Refusal { error, number, statement: None, connection: None }),
        };
        self.held.connections.fetch_add(1, Ordering::AcqRel);
        match self.prepare_all(&mut connection).await {
            Ok(ways) => Ok(Session { number, connection, ways: self.shared(ways) }),
            Err((error, statement)) => {
                Err(Refusal { error, number, statement: Some(statement), connection: Some(connection) })
            }
        }
    }

    /// Lets nobody have a turn any more.
    pub(crate) fn stop(&self) {
        self.turns.close();
    }

    async fn prepare_all(&self, connection: &mut C::Connection) -> Result<Vec<Way>, (WireError, String)> {
        let mut ways = vec![Way::Prepared(0); self.statements.len()];
        for sql in &self.session {
            connection.query(sql.as_bytes()).await.map_err(|error| (error, sql.clone()))?;
        }
        let mut prepared = 0;
        for &number in &self.order {
            let Statement { sql, types, prepared: wanted } = &self.statements[number];
            let way = if *wanted {
                prepare(connection, (sql, types), prepared).await.map_err(|error| (error, sql.clone()))?
            } else {
                Way::Text(sql.clone())
            };
            if let Way::Prepared(_) = way {
                prepared += 1;
                self.held.statements.fetch_add(1, Ordering::AcqRel);
            }
            ways[number] = way;
        }
        Ok(ways)
    }

    /// Prepared statements of each session, as far as is known before one is open.
    pub(crate) fn statements_each(&self) -> u64 {
        let ways = self.ways.borrow();
        let prepared = match ways.len() {
            0 => self.statements.iter().filter(|statement| statement.prepared).count(),
            _ => ways.iter().filter(|way| matches!(way, Way::Prepared(_))).count(),
        };
        prepared as u64
    }

    fn shared(&self, ways: Vec<Way>) -> Rc<[Way]> {
        let mut last = self.ways.borrow_mut();
        if **last != *ways {
            *last = ways.into();
        }
        Rc::clone(&last)
    }

    /// A user could not open its lost connection again: `error`, for the `attempts`th time.
    pub(crate) fn refused(&self, error: &WireError, attempts: u32) {
        self.lost.set(self.lost.get() + usize::from(attempts == 1));
        self.refusal.replace(Some(error.clone()));
    }

    /// A user that had been refused has a connection again.
    pub(crate) fn found(&self) {
        self.lost.set(self.lost.get() - 1);
    }

    /// Why none of `users` has a connection any more; `None` while one of them has.
    pub(crate) fn all_lost(&self, users: usize) -> Option<WireError> {
        self.refusal.borrow().clone().filter(|_| self.lost.get() == users)
    }
}

/// Prepares a statement as number `number`; one that the server does not prepare travels as text.
async fn prepare(
    connection: &mut impl Connection,
    (sql, types): (&str, &[Type]),
    number: usize,
) -> Result<Way, WireError> {
    match connection.prepare(sql, types).await {
        Ok(()) => Ok(Way::Prepared(number)),
        Err(error) if error.is_unsupported_prepared() => Ok(Way::Text(sql.to_owned())),
        Err(error) => Err(error),
    }
}
