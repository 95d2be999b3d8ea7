//! The connections of one user, and the counters that they update.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use dbdyno_load::Nanos;
use dbdyno_runner::external::{OPENING_MAX, SetupMarks, UserId, WorkerState};
use dbdyno_schema::plan::Plan;
use dbdyno_schema::record::ServerFailure;
use dbdyno_sysbench::Compat;
use dbdyno_wire::scripted::{Scripted, ScriptedConnector};
use dbdyno_wire::{Connection, WireError};
use tokio::sync::Semaphore;

use super::LuaFailure;
use super::blocking::BlockingMonitor;
use crate::config::ScriptConfig;
use crate::context::Context;
use crate::host::ScriptHost;
use crate::sql::ConnectionId;

/// Names of the statement kinds, by kind number.
pub(super) const KINDS: [&str; 3] = ["read", "write", "other"];

/// What all users of a run share.
#[derive(Clone)]
pub(super) struct RunContext<C> {
    pub(super) connector: C,
    pub(super) plan: Arc<Plan>,
    /// Marks for the tables that the script's statements create, if the plan asks for them.
    pub(super) marks: Option<SetupMarks>,
    pub(super) config: Arc<ScriptConfig>,
    pub(super) host: Arc<dyn ScriptHost>,
    pub(super) counters: Arc<RunCounters>,
    /// Whether LuaJIT compiles traces.
    pub(super) jit: bool,
    /// Whether the users of a thread share states if there are many.
    pub(super) share_states: bool,
}

/// Counters and first failures, shared by all threads of a run.
#[derive(Debug, Default)]
pub(super) struct RunCounters {
    /// Number of connections opened so far; it selects the server's address for the next one.
    pub(super) connections: AtomicU64,
    /// The first connection that a server refused.
    pub(super) refused: OnceLock<ServerFailure>,
    /// The first failure of a `thread_done`, which does not end the run.
    pub(super) failure_at_end: OnceLock<LuaFailure>,
    /// Whether any user has requested a database driver.
    pub(super) uses_database: AtomicBool,
}

/// What all users of a thread share.
pub(super) struct ThreadContext<C> {
    pub(super) run: RunContext<C>,
    pub(super) monitor: BlockingMonitor,
    connecting: Semaphore,
}

impl<C> ThreadContext<C> {
    pub(super) fn new(run: RunContext<C>, monitor: BlockingMonitor) -> Rc<Self> {
        Rc::new(Self { run, monitor, connecting: Semaphore::new(OPENING_MAX) })
    }
}

/// A user of the run. The session counts its statements in this user's records.
#[derive(Clone)]
pub(super) struct MeasuredUser {
    pub(super) worker: Rc<WorkerState>,
    pub(super) id: UserId,
}

/// The due time and the start of the event that a user is running.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CurrentEvent {
    pub(super) due: Nanos,
    pub(super) start: Nanos,
}

/// The connections of one user.
pub(super) struct UserSession<C: ScriptedConnector> {
    pub(super) thread: Rc<ThreadContext<C>>,
    /// The connections by [`ConnectionId`]. An entry is `None` while a statement runs on it, so that nothing else can
    /// use the connection.
    connections: RefCell<Vec<Option<NumberedConnection<C::Connection>>>>,
    /// `None` before the clock starts, and outside a run.
    pub(super) measured_user: RefCell<Option<MeasuredUser>>,
    /// Number of statements executed before the clock started, by kind.
    pub(super) counts_before_start: [Cell<u64>; 3],
    /// `None` between events.
    pub(super) event: Cell<Option<CurrentEvent>>,
    /// When the last event ended, for a script that defines `thread_run`.
    pub(super) free_since: Cell<Option<Nanos>>,
    /// Whether a lost connection could not be opened again before the time limit. The script then fails, but not the run.
    pub(super) has_lost_server: Cell<bool>,
}

/// Why a connection could not be opened.
pub(super) struct OpenFailure {
    pub(super) error: WireError,
    /// The statement of the plan's session that failed; `None` if the connection itself failed.
    pub(super) session_sql: Option<String>,
}

impl From<WireError> for OpenFailure {
    fn from(error: WireError) -> Self {
        Self { error, session_sql: None }
    }
}

pub(super) struct NumberedConnection<L> {
    pub(super) connection: L,
    /// The number within the run, which selects the server's address.
    pub(super) number: u64,
}

impl<C: ScriptedConnector> UserSession<C> {
    pub(super) fn new(thread: &Rc<ThreadContext<C>>) -> Rc<Self> {
        Rc::new(Self {
            thread: Rc::clone(thread),
            connections: RefCell::default(),
            measured_user: RefCell::default(),
            counts_before_start: Default::default(),
            event: Cell::default(),
            free_since: Cell::default(),
            has_lost_server: Cell::default(),
        })
    }

    #[inline]
    pub(super) fn measured_user(&self) -> Option<MeasuredUser> {
        self.measured_user.borrow().clone()
    }

    /// Opens connection `number` of the run.
    pub(super) async fn open(
        &self,
        context: &Context,
        number: u64,
        blocking: bool,
    ) -> Result<C::Connection, OpenFailure> {
        let mut connection = if blocking {
            self.thread.run.connector.connect_blocking(number).await?
        } else {
            let _permit = self.thread.connecting.acquire().await;
            self.thread.run.connector.connect(number).await?
        };
        if !self.thread.run.plan.session.is_empty() {
            connection.set_blocking(blocking);
            for sql in &self.thread.run.plan.session {
                let failure = |error| OpenFailure { error, session_sql: Some(sql.clone()) };
                connection.query(sql.as_bytes()).await.map_err(failure)?;
            }
            connection.set_blocking(false);
        }
        if context.config.compat == Compat::V1_1 {
            connection.track_result_sets();
        }
        Ok(connection)
    }

    pub(super) async fn close(&self, context: &Context, id: ConnectionId, blocking: bool) {
        if let Some(mut taken) = self.take(id, blocking) {
            taken.connection.close().await;
        }
        context.sql.set_open(id, false);
    }

    /// Closes the connections that Lua's garbage collector has freed.
    pub(super) async fn close_unreferenced(&self, context: &Context) {
        let unreferenced = context.sql.take_unreferenced();
        if !unreferenced.is_empty() {
            // Boxed, so that the futures of users without such connections stay small.
            Box::pin(async {
                for connection in unreferenced {
                    self.close(context, connection, false).await;
                }
            })
            .await;
        }
    }

    pub(super) async fn close_all(&self) {
        let connections = self.connections.take();
        for mut open in connections.into_iter().flatten() {
            open.connection.close().await;
        }
    }

    /// Takes a connection for a statement; `None` if it is closed. With `blocking`, calls on the connection block the
    /// thread.
    #[inline]
    pub(super) fn take(&self, id: ConnectionId, blocking: bool) -> Option<NumberedConnection<C::Connection>> {
        let mut taken = self.connections.borrow_mut().get_mut(id.0 as usize)?.take()?;
        if blocking {
            taken.connection.set_blocking(true);
        }
        Some(taken)
    }

    /// Puts a connection back after a statement.
    #[inline]
    pub(super) fn put(&self, id: ConnectionId, mut taken: NumberedConnection<C::Connection>, blocking: bool) {
        if blocking {
            taken.connection.set_blocking(false);
        }
        let mut connections = self.connections.borrow_mut();
        let index = id.0 as usize;
        if connections.len() <= index {
            connections.resize_with(index + 1, || None);
        }
        connections[index] = Some(taken);
    }

    /// Time since the start of the run; 0 before the clock starts.
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.measured_user.borrow().as_ref().map_or(0, |user| user.worker.now())
    }

    /// Notes that a statement is sent now, for the time limit of answers. Returns the time since the start of the run.
    #[inline]
    pub(super) fn begin_wait(&self) -> Nanos {
        self.measured_user.borrow().as_ref().map_or(0, |user| {
            let now = user.worker.now();
            user.worker.answer_waits.begin(user.id.local, now, usize::MAX);
            now
        })
    }

    /// Notes that no statement waits for an answer.
    #[inline]
    pub(super) fn end_wait(&self) {
        if let Some(user) = &*self.measured_user.borrow() {
            user.worker.answer_waits.end(user.id.local);
        }
    }
}
