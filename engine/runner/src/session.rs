//! Sessions: connections on which every statement of the run is prepared. They are opened at the start, and reopened
//! after a loss.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dbdyno_schema::plan::Target;
use dbdyno_wire::scripted::Type;
use dbdyno_wire::{Connection, Connector, WireError};
use dbdyno_workload::{Program, Statement};
use tokio::sync::Semaphore;

use crate::failure::{self, RunFailure};
use crate::server_limits::OpenCounts;
use crate::worker_state::UserId;

/// Maximum connections that a worker opens at the same time. More would overflow the server's listen queue.
pub const OPENING_MAX: usize = 64;

/// How a statement is sent on a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StatementHandle {
    /// The number of a prepared statement.
    Prepared(usize),
    /// Sent as text, because the plan requires it or the server cannot prepare the statement (MySQL refuses BEGIN).
    Text(String),
}

/// A connection that is ready to run events.
pub(crate) struct Session<C> {
    pub(crate) user: UserId,
    pub(crate) connection: C,
    /// How each statement is sent, by statement number (see `Program::statements`). Sessions with equal handles share
    /// one list.
    pub(crate) handles: Rc<[StatementHandle]>,
}

/// Why a session could not be opened.
pub(crate) struct OpenFailure<C> {
    pub(crate) error: WireError,
    pub(crate) user: UserId,
    /// The refused statement; `None` if the connection itself was not opened.
    pub(crate) statement: Option<String>,
    pub(crate) connection: Option<C>,
}

impl<C> OpenFailure<C> {
    /// The failure of a run that cannot continue without this session.
    pub(crate) fn to_run_failure(&self, target: &Target) -> RunFailure {
        match &self.statement {
            Some(sql) => failure::from_prepare_error(&self.error, sql),
            None => failure::from_connect_error(&self.error, target, self.user.global),
        }
    }
}

pub(crate) type OpenResult<C> = Result<Session<C>, OpenFailure<C>>;

/// Opens the sessions of one worker.
pub(crate) struct SessionOpener<C> {
    connector: C,
    open_counts: Arc<OpenCounts>,
    /// Statements to execute on every new connection.
    session_sql: Vec<String>,
    statements: Vec<Statement>,
    /// Statement numbers in the order of preparation.
    preparation_order: Vec<usize>,
    /// The handles of the session opened last.
    handles: RefCell<Rc<[StatementHandle]>>,
    permits: Semaphore,
}

impl<C: Connector> SessionOpener<C> {
    pub(crate) fn new(
        connector: C,
        program: &Program,
        session_sql: Vec<String>,
        open_counts: Arc<OpenCounts>,
    ) -> Self {
        Self {
            connector,
            open_counts,
            session_sql,
            statements: program.statements(),
            preparation_order: program.preparation_order(),
            handles: RefCell::new(Rc::new([])),
            permits: Semaphore::new(OPENING_MAX),
        }
    }

    /// As [`SessionOpener::open`], but at most [`OPENING_MAX`] connections are opened at the same time.
    pub(crate) async fn open_with_permit(&self, user: UserId) -> OpenResult<C::Connection> {
        let Ok(_permit) = self.permits.acquire().await else {
            let error = WireError::Lost("no more connections are opened, because the run ends".into());
            return Err(OpenFailure { error, user, statement: None, connection: None });
        };
        // Boxed to keep the futures of thousands of waiting users small.
        Box::pin(self.open(user)).await
    }

    /// Opens the connection of a user and prepares every statement on it.
    pub(crate) async fn open(&self, user: UserId) -> OpenResult<C::Connection> {
        let mut connection = match self.connector.connect(user.global).await {
            Ok(connection) => connection,
            Err(error) => return Err(OpenFailure { error, user, statement: None, connection: None }),
        };
        self.open_counts.connections.fetch_add(1, Ordering::AcqRel);
        match self.prepare_all(&mut connection).await {
            Ok(handles) => Ok(Session { user, connection, handles: self.deduplicate_handles(handles) }),
            Err((error, sql)) => {
                Err(OpenFailure { error, user, statement: Some(sql), connection: Some(connection) })
            }
        }
    }

    /// Stops opening connections. Calls that wait for a permit fail.
    pub(crate) fn stop_opening(&self) {
        self.permits.close();
    }

    async fn prepare_all(
        &self,
        connection: &mut C::Connection,
    ) -> Result<Vec<StatementHandle>, (WireError, String)> {
        let mut handles = vec![StatementHandle::Prepared(0); self.statements.len()];
        for sql in &self.session_sql {
            connection.query(sql.as_bytes()).await.map_err(|error| (error, sql.clone()))?;
        }
        let mut prepared = 0;
        for &number in &self.preparation_order {
            let Statement { sql, types, prepared: is_prepared } = &self.statements[number];
            let prepares = match is_prepared {
                true => try_prepare(connection, sql, types).await.map_err(|error| (error, sql.clone()))?,
                false => false,
            };
            handles[number] = if prepares {
                prepared += 1;
                self.open_counts.statements.fetch_add(1, Ordering::AcqRel);
                StatementHandle::Prepared(prepared - 1)
            } else {
                StatementHandle::Text(sql.clone())
            };
        }
        Ok(handles)
    }

    /// Number of prepared statements on each session; before the first session is open, the number that the plan
    /// requires.
    pub(crate) fn prepared_statements(&self) -> u64 {
        let handles = self.handles.borrow();
        let prepared = match handles.len() {
            0 => self.statements.iter().filter(|statement| statement.prepared).count(),
            _ => count_prepared(&handles),
        };
        prepared as u64
    }

    fn deduplicate_handles(&self, handles: Vec<StatementHandle>) -> Rc<[StatementHandle]> {
        let mut last = self.handles.borrow_mut();
        if **last != *handles {
            *last = handles.into();
        }
        Rc::clone(&last)
    }
}

pub(crate) fn count_prepared(handles: &[StatementHandle]) -> usize {
    handles.iter().filter(|handle| matches!(handle, StatementHandle::Prepared(_))).count()
}

/// Prepares a statement. Returns false if the server cannot prepare it, so that it is sent as text.
async fn try_prepare(connection: &mut impl Connection, sql: &str, types: &[Type]) -> Result<bool, WireError> {
    match connection.prepare(sql, types).await {
        Ok(()) => Ok(true),
        Err(error) if error.is_unsupported_prepared() => Ok(false),
        Err(error) => Err(error),
    }
}
