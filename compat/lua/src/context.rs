//! The data of one user, which the functions that scripts call use, and the pointer to the user that a Lua state currently runs.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use dbdyno_random::Rng;
use mlua::Function;

use crate::api::ranges::RangeCache;
use crate::config::ScriptConfig;
use crate::host::ScriptHost;
use crate::sql::{Answer, Request, Sql};

/// Handles the calls of a script that do not yield its coroutine.
pub trait RequestHandler {
    /// Executes `request` and blocks the thread until the result is available.
    fn handle(&self, context: &Context, request: Request) -> Answer;

    /// Called when the script requests a database driver: from then on, reports count statements.
    fn use_database(&self);

    /// Counts an event that restarts after an error.
    fn restart_event(&self);

    /// Handles `sb_event_start`.
    fn start_event(&self);

    /// Handles `sb_event_stop`.
    fn stop_event(&self);
}

/// sysbench's counters of each user, with sysbench's numbers.
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

    /// The counter with sysbench's `number`.
    pub fn from_number(number: i64) -> Option<Self> {
        use Counter::{Error, Other, Read, Reconnect, Transaction, Write};
        [Other, Read, Write, Transaction, Error, Reconnect].get(usize::try_from(number).ok()?).copied()
    }
}

/// The data of one user.
pub struct Context {
    /// `sysbench.tid`, from 0.
    pub tid: i64,
    pub config: Arc<ScriptConfig>,
    pub host: Arc<dyn ScriptHost>,
    pub rng: RefCell<Rng>,
    pub sql: Sql,
    pub(crate) ranges: RangeCache,
    pub handler: Rc<dyn RequestHandler>,
    counters: [Cell<u64>; Counter::COUNT],
    /// Counts that the script made by `sb_counter_inc` since the last [`Self::take_script_counts`].
    script_counts: [Cell<u64>; Counter::COUNT],
    has_script_counts: Cell<bool>,
    /// Whether the script declared a C function that makes a thread wait (`usleep`, `sleep`, `poll`).
    pub(crate) declares_waiting: Cell<bool>,
    /// Whether the script calls `ffi.metatype`, which would affect all users of a state.
    pub(crate) sets_metatypes: Cell<bool>,
    pub(crate) event_functions: OnceCell<EventFunctions>,
}

/// The functions that events.lua returns.
pub(crate) struct EventFunctions {
    pub(crate) run_event: Function,
    /// `thread_run`, unless the script replaces it.
    pub(crate) default_thread_run: Function,
}

impl Context {
    pub fn new(
        tid: i64,
        config: Arc<ScriptConfig>,
        host: Arc<dyn ScriptHost>,
        handler: Rc<dyn RequestHandler>,
    ) -> Self {
        let rng = RefCell::new(Rng::new(config.random.seed, &[u64::from_be_bytes(*b"lua user"), tid as u64]));
        Self {
            tid,
            config,
            host,
            rng,
            sql: Sql::default(),
            ranges: RangeCache::default(),
            handler,
            counters: Default::default(),
            script_counts: Default::default(),
            has_script_counts: Cell::new(false),
            declares_waiting: Cell::new(false),
            sets_metatypes: Cell::new(false),
            event_functions: OnceCell::new(),
        }
    }

    /// Increments a counter, as the script requested by `sb_counter_inc`.
    pub fn count(&self, counter: Counter) {
        self.add(counter, 1);
        let script_count = &self.script_counts[counter as usize];
        script_count.set(script_count.get() + 1);
        self.has_script_counts.set(true);
    }

    /// Adds `count` to a counter, for statements that dbdyno executed.
    #[inline]
    pub fn add(&self, counter: Counter, count: u64) {
        let value = &self.counters[counter as usize];
        value.set(value.get() + count);
    }

    /// The value that `sb_counter_val` returns: dbdyno's counts and the script's.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].get()
    }

    /// The script's counts since the last call, by counter number; `None` if there are none.
    #[inline]
    pub fn take_script_counts(&self) -> Option<[u64; Counter::COUNT]> {
        if !self.has_script_counts.replace(false) {
            return None;
        }
        Some(std::array::from_fn(|counter| self.script_counts[counter].take()))
    }
}

/// The context of the user that a state currently runs.
#[repr(transparent)]
pub(crate) struct Current(Cell<*const Context>);

impl Default for Current {
    fn default() -> Self {
        Self(Cell::new(std::ptr::null()))
    }
}

impl Current {
    /// Makes `context` current and returns the previous one. `context` must outlive the state.
    #[inline]
    pub(crate) fn set(&self, context: *const Context) -> *const Context {
        self.0.replace(context)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
}

/// The context that is current on this thread, for functions that Lua calls through `ffi` and that get only their
/// arguments.
pub fn current() -> Option<Rc<Context>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `work` while `context` is current on this thread and in the state.
#[inline]
pub(crate) fn with_current<T>(state: &Current, context: &Rc<Context>, work: impl FnOnce() -> T) -> T {
    // A state may run inside a call of another state, for example for a report hook.
    let thread_before = CURRENT.replace(Some(Rc::clone(context)));
    let state_before = state.set(Rc::as_ptr(context));
    let result = work();
    state.set(state_before);
    CURRENT.set(thread_before);
    result
}
