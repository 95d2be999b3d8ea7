//! A loaded script, independent of the type of its connections.

use std::sync::Arc;

use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink};

use super::LuaFailure;
use crate::config::ScriptConfig;
use crate::host::{ScriptHost, Stat};

/// A script, the run that it is for, and its host.
pub struct ScriptSetup {
    /// Target, load, phases and reports. The script replaces the workload of `spec.plan`.
    pub spec: RunSpec,
    /// The script and its settings.
    pub config: ScriptConfig,
    /// The application that runs the script.
    pub host: Arc<dyn ScriptHost>,
    /// Whether every user has its own thread. `None`: only if the script declares a C function that makes a thread wait, such
    /// as `usleep`.
    pub one_thread_per_user: Option<bool>,
}

/// How a command of the script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// Once, in the main state.
    Serial,
    /// Concurrently for all users, each with its own globals.
    Parallel,
}

/// A report that a hook of the script can replace. As in sysbench, each kind of report has its own Lua state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// `report_intermediate`, at each interval.
    Interval,
    /// `report_cumulative`, at each checkpoint.
    Checkpoint,
    /// `report_cumulative`, at the end of the run, after the states of the other reports have been closed.
    Final,
}

impl Report {
    pub(super) fn hook_name(self) -> &'static str {
        match self {
            Report::Interval => "report_intermediate",
            Report::Checkpoint | Report::Final => "report_cumulative",
        }
    }
}

/// A script whose chunk has run in its main state. Commands, `init`, `done` and reports run on the caller's thread.
pub trait Script {
    /// Reads the options that the script declares, and fills `sysbench.opt`.
    ///
    /// # Errors
    /// [`LuaFailure::Usage`] with the message to print, or the failure of a validator of the script.
    fn read_options(&self) -> Result<(), LuaFailure>;

    /// Whether the script has a global function `name`.
    fn has_function(&self, name: &str) -> bool;

    /// Calls the global function `name`, such as `prepare`.
    ///
    /// # Errors
    /// The function does not exist or fails.
    fn call(&self, name: &str) -> Result<(), LuaFailure>;

    /// The command `name` of `sysbench.cmdline.commands`, if there is one.
    fn command(&self, name: &str) -> Option<CommandKind>;

    /// Runs a command of `sysbench.cmdline.commands`.
    ///
    /// # Errors
    /// The command does not exist, fails, or returns false.
    fn run_command(&self, name: &str) -> Result<(), LuaFailure>;

    /// Whether the script has a hook for `report`.
    fn has_report(&self, report: Report) -> bool;

    /// Calls the hook for `report`.
    ///
    /// # Errors
    /// The hook fails.
    fn report(&self, report: Report, stat: &Stat) -> Result<(), LuaFailure>;

    /// Closes the Lua states of interval and checkpoint reports, after the last of these reports.
    fn close_reports(&self);

    /// Whether any user has requested a database driver. Only then do reports contain counts of statements.
    fn uses_database(&self) -> bool;

    /// Calls `init`, runs the load, calls `done` and writes all records to `sink`. `inbox` receives the caller's commands to
    /// start and stop the run. Logs failures.
    fn run(&self, inbox: Inbox, sink: &mut dyn Sink) -> RunEnd;
}
