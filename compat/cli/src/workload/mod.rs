//! Executes plans whose workload is a Lua script, with the commands, records and exit codes of `dbdyno-engine`.
//!
//! - [`host`]: gives the script access to the plan. [`options`]: the options that the script reads.

mod host;
mod options;

use std::ffi::OsString;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use dbdyno_cli::output::JsonLines;
use dbdyno_cli::{command, exit};
use dbdyno_lua::run::{self, CommandKind, LuaFailure, Script, ScriptSetup};
use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink, external};
use dbdyno_schema::Record;
use dbdyno_schema::plan::{Plan, Prewarm, ScriptWorkload};
use dbdyno_schema::record::{EndReason, Failure};

use crate::output;
use crate::system::PROGRAM;
use crate::watchdog;
use host::PlanHost;

/// How often a running command checks for a stop.
const STOP_POLL: Duration = Duration::from_millis(50);

/// A command of `dbdyno-engine`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Prepare,
    Prewarm,
    Run,
    Cleanup,
}

impl Command {
    fn name(self) -> &'static str {
        match self {
            Command::Prepare => "prepare",
            Command::Prewarm => "prewarm",
            Command::Run => "run",
            Command::Cleanup => "cleanup",
        }
    }
}

pub(crate) fn find_command(arguments: &[OsString]) -> Option<Command> {
    let [_, argument] = arguments else { return None };
    let all = [Command::Prepare, Command::Prewarm, Command::Run, Command::Cleanup];
    all.into_iter().find(|command| argument == command.name())
}

/// Runs a command with the plan on standard input.
pub(crate) fn main(command: Command) -> ExitCode {
    let records = match output::reserve() {
        Ok(records) => records,
        Err(error) => {
            eprintln!("{PROGRAM}: cannot reserve standard output for records: {error}");
            return exit::USAGE.into();
        }
    };
    command::with_plan(PROGRAM, &mut JsonLines::new(records), |spec, inbox, sink| {
        watchdog::limit_memory(watchdog::default_memory_limit(spec.plan.load.connections), |text| {
            eprintln!("{PROGRAM}: {text}");
            std::process::exit(exit::code(EndReason::ScriptError).into());
        });
        match command {
            Command::Run => run(spec, inbox, sink),
            _ => run_other_command(spec, &inbox, sink, command),
        }
    })
}

/// Prints the description of the plan on standard input. The script is not loaded, so its statements and tables are unknown.
pub(crate) fn describe() -> ExitCode {
    command::describe(PROGRAM, |plan| script_workload(plan).map(|_| ()))
}

fn script_workload(plan: &Plan) -> Result<&ScriptWorkload, String> {
    plan.workload.lua_script().ok_or_else(|| {
        "dbdyno-compat runs only plans with a Lua script; run this plan with dbdyno-engine".to_owned()
    })
}

/// Executes the script's file and reads the options that it defines.
///
/// # Errors
/// Why the plan cannot be used.
fn load(spec: &RunSpec, command: Command) -> Result<Rc<dyn Script>, String> {
    let mut spec = spec.clone();
    // Only `prepare` creates tables that a later command drops.
    Arc::make_mut(&mut spec.plan).loading.mark_created &= command == Command::Prepare;
    let plan = &*spec.plan;
    let script = script_workload(plan)?;
    let setup = ScriptSetup {
        spec: spec.clone(),
        config: host::script_config(plan, script),
        host: Arc::new(PlanHost::new(plan, script, command.name())),
        one_thread_per_user: None,
    };
    let to_error = |failure: LuaFailure| format!("the plan is not usable:\n  {failure}");
    let script = run::load(setup).map_err(to_error)?;
    script.read_options().map_err(to_error)?;
    Ok(script)
}

/// Runs the script, after its `prewarm` if the plan requires it.
fn run(spec: &RunSpec, inbox: Inbox, sink: &mut dyn Sink) -> Result<RunEnd, String> {
    let script = load(spec, Command::Run)?;
    if spec.plan.prewarm == Prewarm::Scan
        && let Err(error) = run_on_thread(spec, &inbox, Command::Prewarm)
    {
        return Ok(external::run_command(&spec.plan, Vec::new(), sink, |_| Err(error)));
    }
    let mut records = ForwardingSink { sink, has_records: false };
    let end = script.run(inbox, &mut records);
    if records.has_records {
        return Ok(end);
    }
    // The script failed before the first record: in `init`, or because it has no event().
    let failure = end.failure.unwrap_or_default();
    Ok(external::run_command(&spec.plan, Vec::new(), sink, |_| Err((end.reason, failure))))
}

/// Forwards records, and remembers whether there were any. If there were none, the caller writes the first record.
struct ForwardingSink<'a> {
    sink: &'a mut dyn Sink,
    has_records: bool,
}

impl Sink for ForwardingSink<'_> {
    fn record(&mut self, record: &Record) -> bool {
        self.has_records = true;
        self.sink.record(record)
    }
}

/// Runs a command of the script other than `run`.
fn run_other_command(
    spec: &RunSpec,
    inbox: &Inbox,
    sink: &mut dyn Sink,
    command: Command,
) -> Result<RunEnd, String> {
    let script = load(spec, command)?;
    let mut plan = Plan::clone(&spec.plan);
    if script.command(command.name()) == Some(CommandKind::Parallel) {
        // The users of the command load the data, so there is one user per loading stream.
        plan.load.connections = plan.loading.streams;
    }
    drop(script);
    let spec = RunSpec { plan: Arc::new(plan), ..spec.clone() };
    Ok(external::run_command(&spec.plan, Vec::new(), sink, |_| run_on_thread(&spec, inbox, command)))
}

/// Loads the script and runs its command on another thread, so that the process can end on a stop command while the
/// script waits.
fn run_on_thread(spec: &RunSpec, inbox: &Inbox, command: Command) -> Result<(), (EndReason, Failure)> {
    let (sender, results) = channel();
    let spec = spec.clone();
    std::thread::spawn(move || {
        let result = load(&spec, command).and_then(|script| call_command(&*script, command));
        // The receiver is dropped only when the process exits.
        let _ = sender.send(result);
    });
    let failure = |text: String| Failure { text, ..Failure::default() };
    loop {
        match results.recv_timeout(STOP_POLL) {
            Ok(result) => return result.map_err(|text| (EndReason::ScriptError, failure(text))),
            Err(RecvTimeoutError::Disconnected) => {
                let text = format!("the script's {} ended in a panic", command.name());
                return Err((EndReason::ScriptError, failure(text)));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
        if let Some(reason) = inbox.requested_stop() {
            return Err((reason, failure(format!("stopped during the script's {}", command.name()))));
        }
    }
}

/// Calls the script's function for the command. A script without `prepare` needs no `cleanup` either.
fn call_command(script: &dyn Script, command: Command) -> Result<(), String> {
    let has = |name: &str| script.command(name).is_some() || script.has_function(name);
    let name = command.name();
    let result = match command {
        _ if script.command(name).is_some() => script.run_command(name),
        _ if script.has_function(name) => script.call(name),
        Command::Prepare => Ok(()),
        Command::Cleanup if !has("prepare") => Ok(()),
        _ => return Err(format!("the script has no command {name}")),
    };
    result.map_err(|failure| match failure {
        LuaFailure::ReturnedFalse => format!("the script's {name} returned false"),
        other => other.to_string(),
    })
}
