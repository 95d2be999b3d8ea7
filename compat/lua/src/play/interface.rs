//! What a script is loaded with, and what can then be asked of it, whatever its connections are.

use std::sync::Arc;

use dbdyno_runner::{Ended, Inbox, Order, Sink};

use super::LuaFailure;
use crate::{Front, Program, Stat};

/// What a script runs with.
pub struct Setting {
    /// Target, load, phases and reports. The workload means nothing.
    pub order: Order,
    /// The script.
    pub program: Program,
    /// Who runs it.
    pub front: Arc<dyn Front>,
    /// Whether every user has a thread of its own; `None` where the script's own declarations decide.
    pub own_threads: Option<bool>,
}

/// Where a command of the script runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandKind {
    /// In the main state.
    Serial,
    /// In a state of each user.
    Parallel,
}

/// Which report a hook writes. Each kind has a state of its own, as in sysbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    Intermediate,
    Checkpoint,
    Final,
}

/// A loaded script, without the type of its connections.
pub(super) trait AnyStage {
    fn read_options(&self) -> Result<(), LuaFailure>;
    fn has_function(&self, name: &str) -> bool;
    fn call(&self, name: &str) -> Result<(), LuaFailure>;
    fn command(&self, name: &str) -> Option<CommandKind>;
    fn run_command(&self, name: &str) -> Result<(), LuaFailure>;
    fn has_hook(&self, name: &str) -> bool;
    fn report(&self, which: Which, stat: &Stat) -> Result<(), LuaFailure>;
    fn close_reports(&self);
    fn has_own_threads(&self) -> bool;
    fn uses_database(&self) -> bool;
    fn run(&self, inbox: Inbox, sink: &mut dyn Sink) -> Ended;
}
