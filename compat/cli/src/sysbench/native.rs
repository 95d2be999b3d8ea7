//! Runs the bundled database workloads on the engine, without Lua. They send the same statements as sysbench's scripts.

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
use super::reporting::{Reporting, print_settings, run_exit_code};
use crate::system::{FAILED, fail};
use dbdyno_cli::signals;

/// A function of the runner: `run`, `prepare`, `prewarm` or `cleanup`.
type RunnerFunction = fn(&RunSpec, Inbox, &mut dyn Sink) -> RunEnd;

struct NativeTest {
    command_line: CommandLine,
    settings: Settings,
    console: Console,
    workload: WorkloadName,
}

/// Whether the engine supports `workload` with these options. The Lua script supports more options, such as tables
/// without rows.
pub(super) fn is_supported(
    mut command_line: CommandLine,
    settings: &Settings,
    workload: WorkloadName,
) -> bool {
    // For invalid options the answer is irrelevant: `test` reports them.
    if command_line.command.is_none()
        || command_line.declare(&oltp::option_definitions(workload, command_line.compat)).is_err()
    {
        return true;
    }
    !matches!(
        database::run_spec(TestKind::Native(workload), &command_line, settings),
        Err(PlanError::Plan(_))
    )
}

/// Runs a command of `workload`.
pub(super) fn test(
    mut command_line: CommandLine,
    settings: Settings,
    console: Console,
    workload: WorkloadName,
) -> ExitCode {
    let name = command_line.test.clone().unwrap_or_default();
    let is_bulk_insert = workload == WorkloadName::BulkInsert;
    let Some(command) = command_line.command.clone() else {
        // As in sysbench, bulk_insert without a command does nothing and succeeds.
        if is_bulk_insert {
            return ExitCode::SUCCESS;
        }
        let text = "Command is required. Supported commands: prepare, prewarm, run, cleanup, help";
        console.log(Level::Fatal, text);
        return FAILED.into();
    };
    let declared = oltp::option_definitions(workload, command_line.compat);
    let is_v11 = command_line.compat == Compat::V1_1;
    if is_bulk_insert && !is_v11 {
        command_line.declare_unknown();
    }
    if let Err(usage) = declare(&mut command_line, &declared) {
        return fail(&usage);
    }
    let native = NativeTest { command_line, settings, console, workload };
    match command.as_str() {
        "help" if is_bulk_insert => fail(&format!("'{name}' test does not implement the 'help' command.")),
        "help" => {
            native.console.print(&help::test_options(&name, &declared));
            ExitCode::SUCCESS
        }
        "run" => native.run(),
        "prepare" => native.run_table_command(Command::Prepare, dbdyno_runner::prepare),
        "prewarm" | "warmup" if !is_bulk_insert && native.settings.driver == Driver::Pgsql => {
            native.report_mysql_only(&command)
        }
        "prewarm" if !is_bulk_insert => native.run_table_command(Command::Prewarm, dbdyno_runner::prewarm),
        "warmup" if !is_bulk_insert && is_v11 => {
            native.run_table_command(Command::Prewarm, dbdyno_runner::prewarm)
        }
        "cleanup" => native.run_table_command(Command::Cleanup, dbdyno_runner::cleanup),
        _ => fail(&format!("Unknown command: {command}")),
    }
}

impl NativeTest {
    fn run(&self) -> ExitCode {
        let is_mysql = self.settings.driver == Driver::Mysql;
        let dry_run = is_mysql && self.command_line.registry.bool("mysql-dry-run");
        let (control, inbox) = dbdyno_runner::channel();
        let reporting = Reporting::new(&self.console, &self.settings, &no_test, dry_run);
        let mut reporting = reporting.on_interrupt(move |reason| control.stop(reason));
        self.execute(dbdyno_runner::run, Command::Run, inbox, &mut reporting)
    }

    /// Prints sysbench's error for a command that supports only MySQL.
    fn report_mysql_only(&self, command: &str) -> ExitCode {
        let text =
            format!("`sysbench.cmdline.call_command' function failed: {command} is currently MySQL only");
        self.console.log(Level::Fatal, &text);
        FAILED.into()
    }

    fn run_table_command(&self, command: Command, function: RunnerFunction) -> ExitCode {
        let is_parallel = command != Command::Cleanup && self.workload != WorkloadName::BulkInsert;
        if self.settings.threads > 1 && is_parallel {
            self.console.log(Level::Notice, "Initializing worker threads...\n");
        }
        let rows = match self.workload {
            WorkloadName::BulkInsert => 0,
            _ => oltp::options(&self.command_line.registry).table_size,
        };
        let mut printer = StepPrinter { console: &self.console, rows, command, settings: &self.settings };
        let (control, inbox) = dbdyno_runner::channel();
        signals::stop_on_interrupt(move |reason| control.stop(reason));
        self.execute(function, command, inbox, &mut printer)
    }

    fn execute(
        &self,
        function: RunnerFunction,
        command: Command,
        inbox: Inbox,
        sink: &mut dyn Sink,
    ) -> ExitCode {
        match database::run_spec(TestKind::Native(self.workload), &self.command_line, &self.settings) {
            Ok(spec) => run_exit_code(&function(&spec, inbox, sink)),
            Err(PlanError::Driver(message)) => {
                if command == Command::Run {
                    print_settings(&self.console, &self.settings);
                }
                let lines = failure::driver_failure_lines(message, command, self.settings.compat);
                lines.iter().for_each(|line| self.console.log(Level::Fatal, line));
                FAILED.into()
            }
            Err(PlanError::Other(text) | PlanError::Plan(text)) => fail(&text),
        }
    }
}

/// Prints the steps of `prepare`, `prewarm` and `cleanup` from their records.
struct StepPrinter<'a> {
    console: &'a Console,
    rows: u64,
    command: Command,
    settings: &'a Settings,
}

impl Sink for StepPrinter<'_> {
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
