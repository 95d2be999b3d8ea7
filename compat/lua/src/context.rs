//! What the functions of one state share.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use dbdyno_random::Rng;
use mlua::Function;

use crate::api::ranges::Ranges;
use crate::front::Front;
use crate::program::Program;
use crate::sql::{Answer, Request, Sql};

/// What a state needs from its driver where a coroutine cannot be left, or need not be.
pub trait World {
    /// Has `request` done before it returns, while everybody else on this thread waits.
    fn at_once(&self, context: &Context, request: Request) -> Answer;

    /// The script uses a database driver: reports count statements from here on.
    fn database_is_used(&self);

    /// An event is to start anew after an error.
    fn restarted(&self);

    /// The script says that an event begins: `sb_event_start`.
    fn event_start(&self);

    /// The script says that its event has ended: `sb_event_stop`.
    fn event_stop(&self);
}

/// What sysbench counts per user, under its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Statements that neither return nor change rows.
    Other = 0,
    /// Statements that return rows.
    Read = 1,
    /// Statements that change rows.
    Write = 2,
    /// Events.
    Transaction = 3,
    /// Ignored errors.
    Error = 4,
    /// Connections opened again.
    Reconnect = 5,
}

impl Counter {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// The counter with sysbench's number `number`.
    pub fn of(number: i64) -> Option<Self> {
        use Counter::{Error, Other, Read, Reconnect, Transaction, Write};
        [Other, Read, Write, Transaction, Error, Reconnect].get(usize::try_from(number).ok()?).copied()
    }
}

/// What the functions of one state share. One per state; the functions hold it.
pub struct Context {
    /// Number of the user, from 0; `sysbench.tid`.
    pub tid: i64,
    /// What runs.
    pub program: Arc<Program>,
    /// Who runs it.
    pub front: Arc<dyn Front>,
    /// This state's random numbers.
    pub rng: RefCell<Rng>,
    /// Connections, statements and results.
    pub sql: Sql,
    /// Ranges that random numbers were last drawn from.
    pub(crate) ranges: Ranges,
    /// Whoever drives this state.
    pub world: Rc<dyn World>,
    counters: [Cell<u64>; Counter::COUNT],
    /// What the script itself counted and nobody has taken yet.
    counted: [Cell<u64>; Counter::COUNT],
    has_counted: Cell<bool>,
    /// Whether the script declared a function that makes a thread wait.
    declares_waiting: Cell<bool>,
    /// Whether the script gave types methods of its own.
    gives_types_methods: Cell<bool>,
    /// The loop of events that the script finds as `thread_run`.
    thread_run: OnceCell<Function>,
}

impl Context {
    /// A context for user `tid`.
    pub fn new(tid: i64, program: Arc<Program>, front: Arc<dyn Front>, world: Rc<dyn World>) -> Self {
        let rng =
            RefCell::new(Rng::new(program.random.seed, &[u64::from_be_bytes(*b"lua user"), tid as u64]));
        Self {
            tid,
            program,
            front,
            rng,
            sql: Sql::default(),
            ranges: Ranges::default(),
            world,
            counters: Default::default(),
            counted: Default::default(),
            has_counted: Cell::new(false),
            declares_waiting: Cell::new(false),
            gives_types_methods: Cell::new(false),
            thread_run: OnceCell::new(),
        }
    }

    /// Counts by order of the script: `sb_counter_inc`.
    pub fn count(&self, counter: Counter) {
        self.note(counter, 1);
        let counted = &self.counted[counter as usize];
        counted.set(counted.get() + 1);
        self.has_counted.set(true);
    }

    /// Takes note of what the driver has counted: `sb_counter_val` tells it.
    #[inline]
    pub fn note(&self, counter: Counter, count: u64) {
        let value = &self.counters[counter as usize];
        value.set(value.get() + count);
    }

    /// What was counted so far, by the driver and by the script: `sb_counter_val`.
    pub fn counter(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].get()
    }

    /// What the script has counted since the last call, by the counters' numbers; `None` where that is nothing.
    #[inline]
    pub fn take_counted(&self) -> Option<[u64; Counter::COUNT]> {
        if !self.has_counted.replace(false) {
            return None;
        }
        Some(std::array::from_fn(|counter| self.counted[counter].take()))
    }

    /// The script declared a function that makes a thread wait (`usleep`, `sleep`, `poll`).
    pub fn set_declares_waiting(&self) {
        self.declares_waiting.set(true);
    }

    /// Whether it did.
    pub fn declares_waiting(&self) -> bool {
        self.declares_waiting.get()
    }

    /// The script gave types methods of its own, which all users of a state would share.
    pub(crate) fn set_gives_types_methods(&self) {
        self.gives_types_methods.set(true);
    }

    /// Whether it did.
    pub fn gives_types_methods(&self) -> bool {
        self.gives_types_methods.get()
    }

    pub(crate) fn keep_thread_run(&self, own: Function) {
        let _ = self.thread_run.set(own);
    }

    pub(crate) fn thread_run(&self) -> Option<&Function> {
        self.thread_run.get()
    }
}
