//! The connections of one state, and where what happens on them is counted.
//!
//! One per state. While a statement is under way its connection is out of its place, so that nothing else can use it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, OnceLock};

use crate::sql::ConnectionId;
use crate::{Compat, Context, Front};
use dbdyno_load::Nanos;
use dbdyno_schema::plan::Plan;
use dbdyno_wire::scripted::{Scripted, ScriptedConnector};
use dbdyno_wire::{Connection, WireError};
use tokio::sync::Semaphore;

use super::LuaFailure;
use dbdyno_runner::external::OPENING_MAX;
use dbdyno_runner::external::{Desk, Seat};

/// Names of the statement kinds of a script, by their numbers.
pub(super) const KINDS: [&str; 3] = ["read", "write", "other"];

/// What all states of all threads share.
#[derive(Debug, Default)]
pub(super) struct Common {
    /// Connections opened so far: they take the server's addresses in turn.
    pub(super) opened: AtomicU64,
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

    #[inline]
    pub(super) fn place(&self) -> Option<Place> {
        self.place.borrow().clone()
    }

    /// Opens connection `number` of the run.
    pub(super) async fn open(
        &self,
        context: &Context,
        number: u64,
        hold: bool,
    ) -> Result<C::Connection, WireError> {
        let mut opened = if hold {
            self.shared.connector.connect_blocking(number).await?
        } else {
            let _turn = self.shared.turns.acquire().await;
            self.shared.connector.connect(number).await?
        };
        if context.program.compat == Compat::V11 {
            opened.track_result_sets();
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

    /// Takes a connection out of its place.
    #[inline]
    pub(super) fn take(&self, connection: ConnectionId, hold: bool) -> Option<Line<C::Connection>> {
        let mut line = self.lines.borrow_mut().get_mut(connection.0 as usize)?.take()?;
        if hold {
            line.connection.set_blocking(true);
        }
        Some(line)
    }

    /// Puts a connection into its place.
    #[inline]
    pub(super) fn put(&self, connection: ConnectionId, mut line: Line<C::Connection>, hold: bool) {
        if hold {
            line.connection.set_blocking(false);
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
