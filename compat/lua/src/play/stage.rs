//! The main state of a script and those of its reports, on a runtime of the calling thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::{Jit, Level, Returned, Stat, Task};
use dbdyno_schema::Record;
use dbdyno_schema::plan::Plan;
use dbdyno_schema::record::{EndReason, Failure, StatementKind};
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use super::blocking::Watch;
use super::broker::{Common, KINDS, Shared};
use super::interface::{AnyStage, CommandKind, Setting, Which};
use super::player::{Making, Player};
use super::vms::Vms;
use super::worker::LuaWorker;
use super::{LuaFailure, parallel};
use dbdyno_runner::Inbox;
use dbdyno_runner::external::Post;
use dbdyno_runner::external::play;
use dbdyno_runner::{Ended, Order, Sink};

/// States per worker up to which traces are compiled. More would evict each other's machine code.
const JIT_STATES_MAX: u32 = 64;

pub(super) struct Stage<C: ScriptedConnector> {
    // The states go before what their connections live on.
    main: RefCell<Player<C>>,
    /// Of interval reports and of checkpoints.
    reports: RefCell<[Option<Player<C>>; 2]>,
    /// A report hook that failed is not called again.
    broken: Cell<bool>,
    shared: Rc<Shared<C>>,
    watch: Rc<Watch>,
    runtime: LocalRuntime,
    setting: Setting,
    connector: C,
    making: Making,
    common: Arc<Common>,
}

impl<C: ScriptedConnector> Stage<C> {
    /// Runs the chunk in the main state.
    pub(super) fn load(connector: C, setting: Setting) -> Result<Self, LuaFailure> {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.map_err(|error| LuaFailure::Chunk(error.to_string()))?;
        let workers = setting.order.plan.client.workers.max(1);
        let jit = match setting.program.jit {
            Jit::Auto => setting.order.plan.load.connections.div_ceil(workers) <= JIT_STATES_MAX,
            Jit::On => true,
            Jit::Off => false,
        };
        let (program, front) = (Arc::new(setting.program.clone()), Arc::clone(&setting.front));
        let mut making = Making { program, front, jit, shared: false };
        let common = Arc::new(Common::default());
        let plan = Arc::clone(&setting.order.plan);
        let shared = Shared::new(connector.clone(), plan, Arc::clone(&setting.front), Arc::clone(&common));
        let watch = Rc::new(Watch::nobody());
        let own = Vms::new(&making, 1)?.of(0)?;
        let main = runtime.block_on(Player::new(&making, &shared, &watch, 0, &own))?;
        making.shared = !main.state.context().gives_types_methods();
        Ok(Self {
            main: RefCell::new(main),
            reports: RefCell::default(),
            broken: Cell::new(false),
            shared,
            watch,
            runtime,
            setting,
            connector,
            making,
            common,
        })
    }

    /// The order as it runs: where every user has a thread of its own, there are as many workers.
    fn order(&self) -> Order {
        let mut order = self.setting.order.clone();
        if self.has_own_threads() {
            let plan = Arc::make_mut(&mut order.plan);
            plan.client.workers = plan.load.connections;
        }
        order
    }

    fn call_task(&self, name: &str, mut task: Task) -> Result<Returned, LuaFailure> {
        let mut main = self.main.borrow_mut();
        let called = self.runtime.block_on(main.call(&mut task, &[]));
        called.map_err(|error| LuaFailure::function(name, error))
    }

    fn workers<'a>(&'a self, plan: &Plan) -> impl Fn(Post) -> LuaWorker<C> + use<'a, C> {
        let count = plan.client.workers;
        move |post| LuaWorker {
            post,
            connector: self.connector.clone(),
            // One state alone on its thread has the machine code for itself.
            making: Making {
                jit: self.making.jit || (self.setting.program.jit == Jit::Auto && count > 64),
                ..self.making.clone()
            },
            common: Arc::clone(&self.common),
        }
    }

    /// Tells of a failure outside the users.
    fn ended_by(&self, failure: &LuaFailure) -> Ended {
        self.setting.front.log(Level::Fatal, &failure.to_string());
        let failure = Failure { text: failure.to_string(), ..Failure::default() };
        Ended { reason: EndReason::ScriptError, failure: Some(failure) }
    }

    /// Makes the state of a report, whose number is that after the users'.
    fn report_state(&self) -> Result<Player<C>, LuaFailure> {
        let number = u64::from(self.setting.order.plan.load.connections);
        let mut making = self.making.clone();
        making.jit = false;
        let vm = Vms::new(&making, 1)?.of(0)?;
        let player = self.runtime.block_on(Player::new(&making, &self.shared, &self.watch, number, &vm))?;
        player.state.fill_options().map_err(|error| LuaFailure::function("report_intermediate", error))?;
        Ok(player)
    }

    /// Makes the states of those reports that are asked for, hooks or none: as in sysbench the chunk runs once in each.
    fn make_report_states(&self) -> Result<(), LuaFailure> {
        let report = &self.setting.order.plan.report;
        for (place, wanted) in [report.interval_us > 0, !report.marks_us.is_empty()].into_iter().enumerate() {
            if wanted {
                let made = self.report_state()?;
                self.reports.borrow_mut()[place] = Some(made);
            }
        }
        Ok(())
    }

    fn call_hook(&self, player: &mut Player<C>, name: &str, stat: &Stat) -> Result<(), LuaFailure> {
        let failed = |error| LuaFailure::function(name, error);
        let Some(mut task) = player.state.report(name, stat).map_err(failed)? else { return Ok(()) };
        self.runtime.block_on(player.call(&mut task, &[])).map(drop).map_err(failed)
    }
}

/// What a script's statements are called in the records.
fn statements() -> Vec<StatementKind> {
    KINDS
        .iter()
        .map(|kind| StatementKind {
            kind: (*kind).to_owned(),
            sql: String::new(),
            per_event: 0,
            per_connection: 0,
            prepared: false,
        })
        .collect()
}

impl<C: ScriptedConnector> AnyStage for Stage<C> {
    fn read_options(&self) -> Result<(), LuaFailure> {
        let main = self.main.borrow();
        main.state.read_options().map_err(LuaFailure::options)?;
        main.state.fill_options().map_err(|error| LuaFailure::function("init", error))
    }

    fn has_function(&self, name: &str) -> bool {
        self.main.borrow().state.has_function(name)
    }

    fn call(&self, name: &str) -> Result<(), LuaFailure> {
        let task = self.main.borrow().state.global(name);
        match task.map_err(|error| LuaFailure::function(name, error))? {
            None => Err(LuaFailure::Missing(name.to_owned())),
            Some(task) => self.call_task(name, task).map(drop),
        }
    }

    fn command(&self, name: &str) -> Option<CommandKind> {
        let command = self.main.borrow().state.command(name).ok().flatten();
        command.map(|(_, parallel)| if parallel { CommandKind::Parallel } else { CommandKind::Serial })
    }

    fn run_command(&self, name: &str) -> Result<(), LuaFailure> {
        const CALL: &str = "sysbench.cmdline.call_command";
        let command = self.main.borrow().state.command(name);
        let Some((task, parallel)) = command.map_err(|error| LuaFailure::function(CALL, error))? else {
            return Err(LuaFailure::Missing(name.to_owned()));
        };
        let threads = self.setting.order.plan.load.connections;
        if parallel && threads > 1 {
            drop(task);
            let own_threads = self.has_own_threads();
            return parallel::run(&self.connector, &self.making, &self.setting.order.plan, own_threads, name);
        }
        match self.call_task(CALL, task)? {
            Returned::False => Err(LuaFailure::False),
            Returned::Nothing | Returned::True => Ok(()),
        }
    }

    fn has_hook(&self, name: &str) -> bool {
        self.main.borrow().state.has_hook(name)
    }

    fn report(&self, which: Which, stat: &Stat) -> Result<(), LuaFailure> {
        if self.broken.get() {
            return Ok(());
        }
        let called = match which {
            Which::Final => self.call_hook(&mut self.main.borrow_mut(), "report_cumulative", stat),
            Which::Intermediate | Which::Checkpoint => {
                let (place, name) = match which {
                    Which::Intermediate => (0, "report_intermediate"),
                    _ => (1, "report_cumulative"),
                };
                let taken = self.reports.borrow_mut()[place].take();
                let mut player = taken.map_or_else(|| self.report_state(), Ok)?;
                let called = self.call_hook(&mut player, name, stat);
                self.reports.borrow_mut()[place] = Some(player);
                called
            }
        };
        self.broken.set(called.is_err());
        called
    }

    fn close_reports(&self) {
        self.reports.take();
    }

    fn has_own_threads(&self) -> bool {
        let declares_waiting = || self.main.borrow().state.context().declares_waiting();
        self.setting.own_threads.unwrap_or_else(declares_waiting)
    }

    fn uses_database(&self) -> bool {
        self.common.database_is_used.load(Ordering::Relaxed)
    }

    fn run(&self, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
        if self.has_function("init")
            && let Err(failure) = self.call("init")
        {
            return self.ended_by(&failure);
        }
        // Even of a script with a loop of its own sysbench wants one.
        if !self.has_function("event") {
            let text = format!("cannot find the event() function in {}", self.setting.program.name);
            self.setting.front.log(Level::Fatal, &text);
            let failure = Some(Failure { text, ..Failure::default() });
            return Ended { reason: EndReason::ScriptError, failure };
        }
        let order = self.order();
        let worker = self.workers(&order.plan);
        let spawn = |number, links| {
            let worker = worker(Post::new(&order, number, links));
            std::thread::spawn(move || worker.run())
        };
        let before =
            |_: &mut dyn FnMut(Record)| self.make_report_states().map_err(|failure| self.ended_by(&failure));
        let ended = play(&order, statements(), before, spawn, &inbox, sink);
        // A run that is ended by force ends at once.
        if ended.reason != EndReason::ForcedShutdown
            && self.has_function("done")
            && let Err(failure) = self.call("done")
        {
            self.setting.front.log(Level::Fatal, &failure.to_string());
        }
        match self.common.fault_at_end.get() {
            Some(fault) if ended.failure.is_none() => Ended {
                reason: EndReason::ScriptError,
                failure: Some(Failure { text: fault.to_string(), ..Failure::default() }),
            },
            _ => ended,
        }
    }
}
