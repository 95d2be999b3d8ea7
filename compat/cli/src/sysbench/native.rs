//! The bundled database workloads, executed by the engine without Lua. They send the same statements as sysbench's
//! scripts.

use std::process::ExitCode;

use dbdyno_runner::{Inbox, RunEnd, RunSpec, Sink};
use dbdyno_schema::plan::WorkloadName;
use dbdyno_schema::record::Record;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::driver::Driver;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::plan::TestKind;
use dbdyno_sysbench::report::failure::{self, Command};
use dbdyno_sysbench::report::{loading, no_test};
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{Compat, help, oltp};

use super::console::{Console, declare};
use super::database::{self, PlanError};
use super::reporting::{Reporting, announce, code};
use crate::system::{FAILED, fail};
use dbdyno_cli::signals;

/// A command of the runner: `run`, `prepare`, `prewarm` or `cleanup`.
type Work = fn(&RunSpec, Inbox, &mut dyn Sink) -> RunEnd;

struct Native {
    line: CommandLine,
    settings: Settings,
    console: Console,
    workload: WorkloadName,
}

/// Whether the engine can run `workload` with these options. The Lua script supports more options, such as tables
/// without rows.
pub(super) fn is_supported(mut line: CommandLine, settings: &Settings, workload: WorkloadName) -> bool {
    // For invalid options the answer is irrelevant: `test` reports them.
    if line.command.is_none() || line.declare(&oltp::declared(workload, line.compat)).is_err() {
        return true;
    }
    !matches!(database::spec(TestKind::Native(workload), &line, settings), Err(PlanError::Plan(_)))
}

/// Runs a command of `workload`.
pub(super) fn test(
    mut line: CommandLine,
    settings: Settings,
    console: Console,
    workload: WorkloadName,
) -> ExitCode {
    let name = line.test.clone().unwrap_or_default();
    let bulk = workload == WorkloadName::BulkInsert;
    let Some(command) = line.command.clone() else {
        // As in sysbench, bulk_insert without a command does nothing and succeeds.
        if bulk {
            return ExitCode::SUCCESS;
        }
        let text = "Command is required. Supported commands: prepare, prewarm, run, cleanup, help";
        console.log(Level::Fatal, text);
        return FAILED.into();
    };
    let declared = oltp::declared(workload, line.compat);
    let is_v11 = line.compat == Compat::V11;
    if bulk && !is_v11 {
        line.declare_unknown();
    }
    if let Err(usage) = declare(&mut line, &declared) {
        return fail(&usage);
    }
    let native = Native { line, settings, console, workload };
    match command.as_str() {
        "help" if bulk => fail(&format!("'{name}' test does not implement the 'help' command.")),
        "help" => {
            native.console.print(&help::test_options(&name, &declared));
            ExitCode::SUCCESS
        }
        "run" => native.run(),
        "prepare" => native.on_tables(Command::Prepare, dbdyno_runner::prepare),
        "prewarm" | "warmup" if !bulk && native.settings.driver == Driver::Pgsql => {
            native.mysql_only(&command)
        }
        "prewarm" if !bulk => native.on_tables(Command::Prewarm, dbdyno_runner::prewarm),
        "warmup" if !bulk && is_v11 => native.on_tables(Command::Prewarm, dbdyno_runner::prewarm),
        "cleanup" => native.on_tables(Command::Cleanup, dbdyno_runner::cleanup),
        _ => fail(&format!("Unknown command: {command}")),
    }
}

impl Native {
    fn run(&self) -> ExitCode {
        let is_mysql = self.settings.driver == Driver::Mysql;
        let dry_run = is_mysql && self.line.registry.bool("mysql-dry-run");
        let (control, inbox) = dbdyno_runner::channel();
        let reporting = Reporting::new(&self.console, &self.settings, &no_test, dry_run);
        let mut reporting = reporting.stopped_by(move |reason| control.stop(reason));
        self.conduct(dbdyno_runner::run, Command::Run, inbox, &mut reporting)
    }

    /// Prints sysbench's error for a command that supports only MySQL.
    fn mysql_only(&self, command: &str) -> ExitCode {
        let text =
            format!("`sysbench.cmdline.call_command' function failed: {command} is currently MySQL only");
        self.console.log(Level::Fatal, &text);
        FAILED.into()
    }

    fn on_tables(&self, command: Command, work: Work) -> ExitCode {
        let parallel = command != Command::Cleanup && self.workload != WorkloadName::BulkInsert;
        if self.settings.threads > 1 && parallel {
            self.console.log(Level::Notice, "Initializing worker threads...\n");
        }
        let rows = match self.workload {
            WorkloadName::BulkInsert => 0,
            _ => oltp::options(&self.line.registry).table_size,
        };
        let mut steps = Steps { console: &self.console, rows, command, settings: &self.settings };
        let (control, inbox) = dbdyno_runner::channel();
        signals::stop_on_interrupt(move |reason| control.stop(reason));
        self.conduct(work, command, inbox, &mut steps)
    }

    fn conduct(&self, work: Work, command: Command, inbox: Inbox, sink: &mut dyn Sink) -> ExitCode {
        match database::spec(TestKind::Native(self.workload), &self.line, &self.settings) {
            Ok(spec) => code(work(&spec, inbox, sink).reason),
            Err(PlanError::Driver(message)) => {
                if command == Command::Run {
                    announce(&self.console, &self.settings);
                }
                let lines = failure::driver_failure_lines(message, command, self.settings.compat);
                lines.iter().for_each(|line| self.console.log(Level::Fatal, line));
                FAILED.into()
            }
            Err(PlanError::Other(text) | PlanError::Plan(text)) => fail(&text),
        }
    }
}

/// Receives the records of `prepare`, `prewarm` and `cleanup`, and prints their steps.
struct Steps<'a> {
    console: &'a Console,
    rows: u64,
    command: Command,
    settings: &'a Settings,
}

impl Sink for Steps<'_> {
    fn record(&mut self, record: &Record) -> bool {
        match record {
            Record::Loading(step) => {
                let line = loading::line(step, self.rows, self.settings.compat);
                self.console.print(&line.unwrap_or_default());
            }
            Record::End(end) => {
                let lines = end.failure.iter();
                let lines = lines.flat_map(|failure| failure::lines(failure, self.command, self.settings));
                lines.for_each(|line| self.console.log(Level::Fatal, &line));
            }
            _ => {}
        }
        true
    }
}
