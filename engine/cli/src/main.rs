//! `dbdyno-engine`: measures one run.

// Besides `compat/cli`, this is the only crate that uses arguments, environment, files and the terminal
// (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

mod arguments;
mod merge;

use std::process::ExitCode;

use arguments::{Arguments, Command, SchemaName};
use clap::Parser;
use dbdyno_cli::{command, output};
use dbdyno_runner::external::disable_core_files;
use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink};
use dbdyno_schema::plan::{Plan, WorkloadName, limits};

fn main() -> ExitCode {
    disable_core_files();
    match Arguments::parse().command {
        Command::Prepare => with_plan(dbdyno_runner::prepare),
        Command::Prewarm => with_plan(dbdyno_runner::prewarm),
        Command::Run => with_plan(dbdyno_runner::run),
        Command::Cleanup => with_plan(dbdyno_runner::cleanup),
        Command::Describe => command::describe("dbdyno-engine", refuse_scripts),
        Command::Merge { engines } => merge::merge(engines),
        Command::Schema { name } => {
            println!("{}", schema(name));
            ExitCode::SUCCESS
        }
    }
}

/// Calls `execute` with the plan from standard input. Refuses Lua scripts, which dbdyno-compat executes.
fn with_plan(execute: fn(&RunSpec, Inbox, &mut dyn Sink) -> RunEnd) -> ExitCode {
    command::with_plan("dbdyno-engine", &mut output::JsonLines::default(), |spec, inbox, sink| {
        refuse_scripts(&spec.plan)?;
        Ok(execute(spec, inbox, sink))
    })
}

fn refuse_scripts(plan: &Plan) -> Result<(), String> {
    match plan.workload.name {
        WorkloadName::Lua => Err("the workload is a Lua script; run this plan with dbdyno-compat".into()),
        _ => Ok(()),
    }
}

fn schema(name: SchemaName) -> String {
    let text = match name {
        SchemaName::Plan => serde_json::to_string_pretty(&dbdyno_schema::plan_schema()),
        SchemaName::Events => serde_json::to_string_pretty(&dbdyno_schema::events_schema()),
        SchemaName::Describe => serde_json::to_string_pretty(&dbdyno_schema::describe_schema()),
        SchemaName::Limits => serde_json::to_string_pretty(&limits::by_name()),
    };
    text.expect("a schema is JSON")
}
