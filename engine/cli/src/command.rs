//! Runs a command on the plan from standard input.

use std::io::Write;
use std::process::ExitCode;

use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink};
use dbdyno_schema::plan::Plan;
use dbdyno_schema::record::EndReason;

use crate::{exit, input, signals};

/// Reads the plan, calls `execute`, and returns the exit code. If the command ends early, cancels what the server still
/// executes for it. If `execute` cannot use the plan, it returns a message and
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
    let spec = RunSpec::new(plan, secrets);
    if spec.plan.watches_input() {
        input::spawn_command_reader(program, control, spec.clone());
    }
    let end = match execute(&spec, inbox, sink) {
        Ok(end) => end,
        Err(problem) => return refuse(problem),
    };
    // Without a connection there was no statement. This comes first: nobody may read standard error any more.
    if !end.reason.is_planned() && end.reason != EndReason::ConnectFailed {
        dbdyno_runner::cancel_statements(&spec, input::CANCEL_MAX);
    }
    if let Some(failure) = &end.failure {
        let fix = failure.fix.iter().map(|fix| format!("  {fix}\n"));
        let text = format!("{program}: {}\n{}", failure.text, fix.collect::<String>());
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
    exit::code(end.reason).into()
}

/// Prints the description of the plan, without reading secrets. `check` rejects plans for another program.
pub fn describe(program: &str, check: impl FnOnce(&Plan) -> Result<(), String>) -> ExitCode {
    let read = || {
        let plan = input::read_plan()?;
        check(&plan)?;
        Ok((
            input::read_recording(&plan)
                .map_err(|problem| format!("the plan is not usable:\n  {problem}"))?,
            plan,
        ))
    };
    match read() {
        Ok((recording, plan)) => {
            let description = dbdyno_workload::describe(&plan, recording);
            println!("{}", serde_json::to_string(&description).expect("a description is JSON"));
            ExitCode::SUCCESS
        }
        Err::<_, String>(problem) => {
            eprintln!("{program}: {problem}");
            exit::USAGE.into()
        }
    }
}
