//! Runs a command on the plan from standard input.

use std::process::ExitCode;

use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink};
use dbdyno_schema::plan::{Plan, Start};

use crate::{exit, input, signals};

/// Reads the plan, calls `execute`, and returns the exit code. If `execute` cannot use the plan, it returns a message and
/// writes no record. `program` is the program's name in messages.
pub fn with_plan(
    program: &'static str,
    sink: &mut dyn Sink,
    execute: impl FnOnce(&RunSpec, Inbox, &mut dyn Sink) -> Result<RunEnd, String>,
) -> ExitCode {
    let refuse = |problem: String| {
        eprintln!("{program}: {problem}");
        exit::USAGE.into()
    };
    let (plan, secrets) = match input::read_plan().and_then(|plan| Ok((input::read_secrets(&plan)?, plan))) {
        Ok((secrets, plan)) => (plan, secrets),
        Err(problem) => return refuse(problem),
    };
    let (control, inbox) = dbdyno_runner::channel();
    if let Err(error) = signals::stop_on_signal(control.clone()) {
        eprintln!("{program}: cannot handle signals, so a signal ends the process without a report: {error}");
    }
    if let Start::OnCommand { .. } = plan.start {
        input::spawn_command_reader(program, control);
    }
    let end = match execute(&RunSpec::new(plan, secrets), inbox, sink) {
        Ok(end) => end,
        Err(problem) => return refuse(problem),
    };
    if let Some(failure) = &end.failure {
        eprintln!("{program}: {}", failure.text);
        if let Some(fix) = &failure.fix {
            eprintln!("  {fix}");
        }
    }
    exit::code(end.reason).into()
}

/// Prints the description of the plan, without reading secrets. `check` rejects plans for another program.
pub fn describe(program: &str, check: impl FnOnce(&Plan) -> Result<(), String>) -> ExitCode {
    match input::read_plan().and_then(|plan| check(&plan).map(|()| plan)) {
        Ok(plan) => {
            let description = dbdyno_workload::describe(&plan);
            println!("{}", serde_json::to_string(&description).expect("a description is JSON"));
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("{program}: {problem}");
            exit::USAGE.into()
        }
    }
}
