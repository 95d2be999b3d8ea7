//! `dbdyno-engine`: measures one run, precisely. A table of contents: what each step means stands in its module.

// The only crate that touches arguments, environment, files and the terminal (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod arguments;

use std::process::ExitCode;

use arguments::{Arguments, Command, SchemaName};
use clap::Parser;
use dbdyno_cli::{exit, input, output, signals};
use dbdyno_door::plan::Start;
use dbdyno_drive::{Ended, Inbox, Order, Sink};

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Prepare => with_plan(dbdyno_drive::prepare),
        Command::Prewarm => with_plan(dbdyno_drive::prewarm),
        Command::Run => with_plan(dbdyno_drive::run),
        Command::Cleanup => with_plan(dbdyno_drive::cleanup),
        Command::Schema { name } => {
            println!("{}", schema(name));
            ExitCode::SUCCESS
        }
    }
}

/// Reads the plan, does the work, and turns the end into an exit code.
fn with_plan(work: fn(&Order, Inbox, &mut dyn Sink) -> Ended) -> ExitCode {
    let (plan, secrets) = match input::read_plan().and_then(|plan| Ok((input::secrets(&plan)?, plan))) {
        Ok((secrets, plan)) => (plan, secrets),
        Err(faults) => {
            eprintln!("dbdyno-engine: {faults}");
            return exit::USAGE.into();
        }
    };
    let (control, inbox) = dbdyno_drive::channel();
    if let Err(error) = signals::stop_on_signal(control.clone()) {
        eprintln!("dbdyno-engine: signals cannot be handled: {error}");
    }
    if let Start::OnCommand { .. } = plan.start {
        input::follow_commands(control);
    }
    let ended = work(&Order::new(plan, secrets), inbox, &mut output::JsonLines::default());
    if let Some(failure) = &ended.failure {
        eprintln!("dbdyno-engine: {}", failure.text);
        if let Some(hint) = &failure.hint {
            eprintln!("  {hint}");
        }
    }
    exit::code(ended.reason).into()
}

fn schema(name: SchemaName) -> String {
    let schema = match name {
        SchemaName::Plan => dbdyno_door::plan_schema(),
        SchemaName::Events => dbdyno_door::events_schema(),
    };
    serde_json::to_string_pretty(&schema).expect("a schema is JSON")
}
