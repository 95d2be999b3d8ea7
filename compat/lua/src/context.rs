//! What the functions of one user share, and which user's context is current.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use dbdyno_random::Rng;
use mlua::Function;

use crate::api::ranges::RangeCache;
use crate::host::ScriptHost;
use crate::program::Program;
use crate::sql::{Answer, Request, Sql};

/// The driver of a user, for calls that do not yield.
pub trait RequestHandler {
    /// Answers `request` before it returns; everything else on this thread waits.
    fn handle(&self, context: &Context, request: Request) -> Answer;

    /// The script uses a database driver: reports count statements from now on.
    fn use_database(&self);

    /// Counts an event that restarts after an error.
    fn restart_event(&self);

    /// `sb_event_start`.
    fn start_event(&self);

    /// `sb_event_stop`.
    fn stop_event(&self);
}

/// What sysbench counts per user, by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Statements that neither return nor change rows.
    Other = 0,
    /// Statements that return rows.
    Read = 1,
    /// Statements that change rows.
    Write = 2,
    Transaction = 3,
    /// Ignored errors.
    Error = 4,
    Reconnect = 5,
}

impl Counter {
    pub const COUNT: usize = 6;

    /// The counter with sysbench's number `number`.
    pub fn of(number: i64) -> Option<Self> {
        use Counter::{Error, Other, Read, Reconnect, Transaction, Write};
        [Other, Read, Write, Transaction, Error, Reconnect].get(usize::try_from(number).ok()?).copied()
    }
}

/// What the functions of one user share.
pub struct Context {
    /// `sysbench.tid`, from 0.
    pub tid: i64,
    pub program: Arc<Program>,
    pub host: Arc<dyn ScriptHost>,
    pub rng: RefCell<Rng>,
    pub sql: Sql,
    pub(crate) ranges: RangeCache,
    pub handler: Rc<dyn RequestHandler>,
    counters: [Cell<u64>; Counter::COUNT],
    /// Counts of the script itself that the driver has not taken yet.
    counted: [Cell<u64>; Counter::COUNT],
    has_counted: Cell<bool>,
    /// Whether the script declared a function that makes a thread wait (`usleep`, `sleep`, `poll`).
    pub(crate) declares_waiting: Cell<bool>,
    /// Whether the script gave types methods by `ffi.metatype`, which all users of a state would share.
    pub(crate) sets_metatypes: Cell<bool>,
    /// The functions of events.lua: one that plays an event, and the default `thread_run`.
    pub(crate) events: OnceCell<(Function, Function)>,
}

impl Context {
    pub fn new(
        tid: i64,
        program: Arc<Program>,
        host: Arc<dyn ScriptHost>,
        handler: Rc<dyn RequestHandler>,
    ) -> Self {
        let rng =
            RefCell::new(Rng::new(program.random.seed, &[u64::from_be_bytes(*b"lua user"), tid as u64]));
        Self {
            tid,
            program,
            host,
            rng,
            sql: Sql::default(),
            ranges: RangeCache::default(),
            handler,
            counters: Default::default(),
            counted: Default::default(),
            has_counted: Cell::new(false),
            declares_waiting: Cell::new(false),
            sets_metatypes: Cell::new(false),
            events: OnceCell::new(),
        }
    }

    /// Counts for the script: `sb_counter_inc`.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
        let counted = &self.counted[counter as usize];
        counted.set(counted.get() + 1);
        self.has_counted.set(true);
    }

    /// Adds what the driver has counted to the value of `sb_counter_val`.
    #[inline]
    pub fn add(&self, counter: Counter, count: u64) {
        let value = &self.counters[counter as usize];
        value.set(value.get() + count);
    }

    /// `sb_counter_val`: the counts of driver and script.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].get()
    }

    /// The script's own counts since the last call, by the counters' numbers; `None` where there are none.
    #[inline]
    pub fn take_counted(&self) -> Option<[u64; Counter::COUNT]> {
        if !self.has_counted.replace(false) {
            return None;
        }
        Some(std::array::from_fn(|counter| self.counted[counter].take()))
    }
}

/// The context of the user that a state runs.
#[repr(transparent)]
pub(crate) struct Current(Cell<*const Context>);

impl Default for Current {
    fn default() -> Self {
        Self(Cell::new(std::ptr::null()))
    }
}

impl Current {
    /// Makes `context` the current one; the state must be gone before it. Returns the one before.
    #[inline]
    pub(crate) fn set(&self, context: *const Context) -> *const Context {
        self.0.replace(context)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
}

/// The context that this thread runs, for functions that Lua calls through `ffi`: they get nothing but their arguments.
pub fn current() -> Option<Rc<Context>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` while `context` is current on this thread and in its state.
#[inline]
pub(crate) fn with_current<T>(state: &Current, context: &Rc<Context>, work: impl FnOnce() -> T) -> T {
    // One state may run inside a call of another: a report hook, say.
    let thread_before = CURRENT.replace(Some(Rc::clone(context)));
    let state_before = state.set(Rc::as_ptr(context));
    let result = work();
    state.set(state_before);
    CURRENT.set(thread_before);
    result
}
