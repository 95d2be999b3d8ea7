//! A script's main Lua state, which runs its commands, `init` and `done`, and the states of its reports. Both run on the
//! caller's thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dbdyno_runner::external::{AnyConnector, SetupMarks, WorkerContext, connector, run_workers};
use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink};
use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, StatementKind};
use dbdyno_sysbench::log::Level;
use dbdyno_wire::mysql::MysqlConnector;
use dbdyno_wire::scripted::ScriptedConnector;
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use super::blocking::BlockingMonitor;
use super::interface::{CommandKind, Report, Script, ScriptSetup};
use super::session::{KINDS, RunContext, ThreadContext};
use super::user::ScriptUser;
use super::{LuaFailure, parallel, worker};
use crate::config::Jit;
use crate::host::Stat;
use crate::raw::ReturnValue;
use crate::task::Task;
use crate::vm::Vm;

/// Maximum number of Lua states of a worker with which LuaJIT compiles traces. The machine code of more states would not
/// fit the CPU caches.
const JIT_STATES_MAX: u32 = 64;

/// Compiles a script and runs its chunk (its top-level code).
///
/// # Errors
/// The chunk is not valid Lua, or fails.
pub fn load(setup: ScriptSetup) -> Result<Rc<dyn Script>, LuaFailure> {
    Ok(match connector(&setup.spec) {
        AnyConnector::Mysql(connector) => {
            // sysbench counts an UPDATE that changes no row as other, not as a write.
            let connector = MysqlConnector { multi_statements: true, only_changed_rows: true, ..connector };
            Rc::new(MainState::load(connector, setup)?)
        }
        AnyConnector::Postgres(connector) => Rc::new(MainState::load(connector, setup)?),
        AnyConnector::Null(connector) => Rc::new(MainState::load(connector, setup)?),
    })
}

struct MainState<C: ScriptedConnector> {
    // Dropped before the runtime, because the users' connections use the runtime.
    main: RefCell<ScriptUser<C>>,
    /// The users that run the hooks of interval reports and of checkpoints.
    report_users: RefCell<[Option<ScriptUser<C>>; 2]>,
    /// Whether a report hook has failed. If so, no further hook is called.
    hook_failed: Cell<bool>,
    thread: Rc<ThreadContext<C>>,
    runtime: LocalRuntime,
    setup: ScriptSetup,
    /// The settings of the users of a run or of a parallel command.
    run: RunContext<C>,
}

impl<C: ScriptedConnector> MainState<C> {
    fn load(connector: C, setup: ScriptSetup) -> Result<Self, LuaFailure> {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
        let runtime = runtime.map_err(|error| LuaFailure::Chunk(error.to_string()))?;
        let plan = &setup.spec.plan;
        let jit = match setup.config.jit {
            Jit::Auto => plan.load.connections.div_ceil(plan.client.workers.max(1)) <= JIT_STATES_MAX,
            Jit::On => true,
            Jit::Off => false,
        };
        let mut run = RunContext {
            connector,
            plan: Arc::clone(plan),
            marks: SetupMarks::from_plan(plan),
            config: Arc::new(setup.config.clone()),
            host: Arc::clone(&setup.host),
            counters: Arc::default(),
            jit,
            share_states: false,
        };
        let thread = ThreadContext::new(run.clone(), BlockingMonitor::new(None, 1, false));
        let vm = Vm::single(jit).map_err(LuaFailure::chunk)?;
        let main = runtime.block_on(ScriptUser::new(&thread, 0, &vm))?;
        run.share_states = !main.state.context().sets_metatypes.get();
        Ok(Self {
            main: RefCell::new(main),
            report_users: RefCell::default(),
            hook_failed: Cell::new(false),
            thread,
            runtime,
            setup,
            run,
        })
    }

    fn has_one_thread_per_user(&self) -> bool {
        let declares_waiting = || self.main.borrow().state.context().declares_waiting.get();
        self.setup.one_thread_per_user.unwrap_or_else(declares_waiting)
    }

    /// The settings of the run, with one worker per user if every user has its own thread.
    fn run_spec(&self) -> RunSpec {
        let mut spec = self.setup.spec.clone();
        if self.has_one_thread_per_user() {
            let plan = Arc::make_mut(&mut spec.plan);
            plan.client.workers = plan.load.connections;
        }
        spec
    }

    fn call_task(&self, name: &str, mut task: Task) -> Result<ReturnValue, LuaFailure> {
        let mut main = self.main.borrow_mut();
        let result = self.runtime.block_on(main.call(&mut task, &[]));
        result.map_err(|error| LuaFailure::function(name, error))
    }

    /// Logs `failure` and returns the end of a run that failed outside its users.
    fn end_with_failure(&self, failure: &LuaFailure) -> RunEnd {
        self.run.host.log(Level::Fatal, &failure.to_string());
        RunEnd {
            reason: EndReason::ScriptError,
            failure: Some(failure.to_record(self.run.counters.refused.get())),
        }
    }

    /// Creates the user of a report; its number follows those of the run's users.
    fn create_report_user(&self) -> Result<ScriptUser<C>, LuaFailure> {
        let number = u64::from(self.run.plan.load.connections);
        let vm = Vm::single(false).map_err(LuaFailure::chunk)?;
        let user = self.runtime.block_on(ScriptUser::new(&self.thread, number, &vm))?;
        user.state.fill_options().map_err(|error| LuaFailure::function("report_intermediate", error))?;
        Ok(user)
    }

    /// Creates the users of the plan's reports, even without hooks: as in sysbench, the chunk runs once in each.
    fn create_report_users(&self) -> Result<(), LuaFailure> {
        let report = &self.run.plan.report;
        let reports = [report.interval_us > 0, !report.marks_us.is_empty()];
        for (index, _) in reports.into_iter().enumerate().filter(|&(_, exists)| exists) {
            let user = self.create_report_user()?;
            self.report_users.borrow_mut()[index] = Some(user);
        }
        Ok(())
    }

    fn call_hook(&self, user: &mut ScriptUser<C>, name: &str, stat: &Stat) -> Result<(), LuaFailure> {
        let to_failure = |error| LuaFailure::function(name, error);
        let Some(mut task) = user.state.report(name, stat).map_err(to_failure)? else { return Ok(()) };
        self.runtime.block_on(user.call(&mut task, &[])).map(drop).map_err(to_failure)
    }
}

/// The statement kinds of a script in the records.
fn statement_kinds() -> Vec<StatementKind> {
    let kind = |kind: &&str| StatementKind {
        kind: (*kind).to_owned(),
        sql: String::new(),
        per_event: 0,
        per_connection: 0,
        prepared: false,
    };
    KINDS.iter().map(kind).collect()
}

impl<C: ScriptedConnector> Script for MainState<C> {
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
            None => Err(LuaFailure::MissingFunction(name.to_owned())),
            Some(task) => self.call_task(name, task).map(drop),
        }
    }

    fn command(&self, name: &str) -> Option<CommandKind> {
        let command = self.main.borrow().state.command(name).ok().flatten();
        command.map(|(_, parallel)| if parallel { CommandKind::Parallel } else { CommandKind::Serial })
    }

    fn run_command(&self, name: &str) -> Result<(), LuaFailure> {
        let command = self.main.borrow().state.command(name);
        let command = command.map_err(|error| LuaFailure::function(parallel::CALL_COMMAND, error))?;
        let (task, parallel) = command.ok_or_else(|| LuaFailure::MissingFunction(name.to_owned()))?;
        if parallel && self.run.plan.load.connections > 1 {
            drop(task);
            return parallel::run(&self.run, self.has_one_thread_per_user(), name);
        }
        match self.call_task(parallel::CALL_COMMAND, task)? {
            ReturnValue::False => Err(LuaFailure::ReturnedFalse),
            ReturnValue::Nothing | ReturnValue::True => Ok(()),
        }
    }

    fn has_report(&self, report: Report) -> bool {
        self.main.borrow().state.has_hook(report.hook_name())
    }

    fn report(&self, report: Report, stat: &Stat) -> Result<(), LuaFailure> {
        if report == Report::Final {
            self.close_reports();
        }
        if self.hook_failed.get() {
            return Ok(());
        }
        let result = match report {
            Report::Final => self.call_hook(&mut self.main.borrow_mut(), report.hook_name(), stat),
            Report::Interval | Report::Checkpoint => {
                let index = report as usize;
                let user = self.report_users.borrow_mut()[index].take();
                let mut user = user.map_or_else(|| self.create_report_user(), Ok)?;
                let result = self.call_hook(&mut user, report.hook_name(), stat);
                self.report_users.borrow_mut()[index] = Some(user);
                result
            }
        };
        self.hook_failed.set(result.is_err());
        result
    }

    fn close_reports(&self) {
        self.report_users.take();
    }

    fn uses_database(&self) -> bool {
        self.run.counters.uses_database.load(Ordering::Relaxed)
    }

    fn run(&self, inbox: Inbox, sink: &mut dyn Sink) -> RunEnd {
        if self.has_function("init")
            && let Err(failure) = self.call("init")
        {
            return self.end_with_failure(&failure);
        }
        // sysbench requires event() even from a script with its own `thread_run`.
        if !self.has_function("event") {
            let text = format!("cannot find the event() function in {}", self.run.config.name);
            return self.end_with_failure(&LuaFailure::Chunk(text));
        }
        let spec = self.run_spec();
        // A plan has at most JIT_STATES_MAX workers, unless every user has its own thread; then no thread switches states.
        let has_many_workers = spec.plan.client.workers > JIT_STATES_MAX;
        let jit = self.run.jit || (self.setup.config.jit == Jit::Auto && has_many_workers);
        let run = RunContext { jit, ..self.run.clone() };
        let spawn = |number, coordinator| {
            let (context, run) = (WorkerContext::new(&spec, number, coordinator), run.clone());
            std::thread::spawn(move || worker::run(context, run))
        };
        let before_start = |_: &mut dyn FnMut(Record)| {
            self.create_report_users().map_err(|failure| self.end_with_failure(&failure))
        };
        let end = run_workers(&spec, statement_kinds(), before_start, spawn, &inbox, sink);
        // After a forced shutdown, done() is not called.
        if end.reason != EndReason::ForcedShutdown
            && self.has_function("done")
            && let Err(failure) = self.call("done")
        {
            self.run.host.log(Level::Fatal, &failure.to_string());
        }
        match self.run.counters.failure_at_end.get() {
            Some(failure) if end.failure.is_none() => RunEnd {
                reason: EndReason::ScriptError,
                failure: Some(failure.to_record(self.run.counters.refused.get())),
            },
            _ => end,
        }
    }
}
