//! The caller's side of a script: its main state, in which the chunk, `init`, commands and reports run.

use std::rc::Rc;

use crate::Stat;
use dbdyno_wire::mysql::MysqlConnector;

use super::LuaFailure;
use super::interface::{AnyStage, CommandKind, Setting, Which};
use super::stage::Stage;
use dbdyno_runner::Inbox;
use dbdyno_runner::external::{AnyConnector, connector};
use dbdyno_runner::{Ended, Sink};

/// A script whose chunk has run.
pub struct Main {
    stage: Rc<dyn AnyStage>,
}

/// Report hooks, to be called while the script runs. Not for other threads.
pub struct Hooks {
    stage: Rc<dyn AnyStage>,
}

impl Main {
    /// Runs the chunk.
    ///
    /// # Errors
    /// It is not Lua, or it fails.
    pub fn load(setting: Setting) -> Result<Self, LuaFailure> {
        let stage: Rc<dyn AnyStage> = match connector(&setting.order) {
            AnyConnector::Mysql(connector) => {
                Rc::new(Stage::load(MysqlConnector { multi_statements: true, ..connector }, setting)?)
            }
            AnyConnector::Postgres(connector) => Rc::new(Stage::load(connector, setting)?),
            AnyConnector::Null(connector) => Rc::new(Stage::load(connector, setting)?),
        };
        Ok(Self { stage })
    }

    /// Reads the options that the script declares, and fills `sysbench.opt`.
    ///
    /// # Errors
    /// [`LuaFailure::Usage`] with the line to tell, or a failing validator of the script.
    pub fn read_options(&self) -> Result<(), LuaFailure> {
        self.stage.read_options()
    }

    /// Whether the script has a global function of that name.
    pub fn has_function(&self, name: &str) -> bool {
        self.stage.has_function(name)
    }

    /// Calls a global function in the main state: `prepare`, `cleanup`, `help`.
    ///
    /// # Errors
    /// There is none, or it fails.
    pub fn call(&self, name: &str) -> Result<(), LuaFailure> {
        self.stage.call(name)
    }

    /// Whether `sysbench.cmdline.commands` has that command, and whether it runs on all users.
    pub fn command(&self, name: &str) -> Option<CommandKind> {
        self.stage.command(name)
    }

    /// Runs a command of `sysbench.cmdline.commands`: in the main state, or in the states of all users at the same time.
    ///
    /// # Errors
    /// It fails, or returns false.
    pub fn run_command(&self, name: &str) -> Result<(), LuaFailure> {
        self.stage.run_command(name)
    }

    /// Report hooks of the script.
    pub fn hooks(&self) -> Hooks {
        Hooks { stage: Rc::clone(&self.stage) }
    }

    /// Whether every user will have a thread of its own.
    pub fn has_own_threads(&self) -> bool {
        self.stage.has_own_threads()
    }

    /// Runs `init`, the run and `done`, and writes every record of it. Failures are in the log when it returns.
    pub fn run(&self, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
        self.stage.run(inbox, sink)
    }
}

impl Hooks {
    /// Whether the script replaces interval reports.
    pub fn has_intermediate(&self) -> bool {
        self.stage.has_hook("report_intermediate")
    }

    /// Whether the script replaces cumulative reports.
    pub fn has_cumulative(&self) -> bool {
        self.stage.has_hook("report_cumulative")
    }

    /// Whether any state has asked for a database driver so far: reports then count statements.
    pub fn uses_database(&self) -> bool {
        self.stage.uses_database()
    }

    /// Calls `report_intermediate`.
    ///
    /// # Errors
    /// It fails.
    pub fn intermediate(&self, stat: &Stat) -> Result<(), LuaFailure> {
        self.stage.report(Which::Intermediate, stat)
    }

    /// Calls `report_cumulative` for a checkpoint.
    ///
    /// # Errors
    /// It fails.
    pub fn checkpoint(&self, stat: &Stat) -> Result<(), LuaFailure> {
        self.stage.report(Which::Checkpoint, stat)
    }

    /// Calls `report_cumulative` at the end, after the states of the other reports are closed.
    ///
    /// # Errors
    /// It fails.
    pub fn cumulative(&self, stat: &Stat) -> Result<(), LuaFailure> {
        self.stage.close_reports();
        self.stage.report(Which::Final, stat)
    }

    /// Closes the states of interval and checkpoint reports, when there will be no more.
    pub fn close_reports(&self) {
        self.stage.close_reports();
    }
}
