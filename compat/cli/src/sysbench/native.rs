//! The bundled database workloads, natively: the same statements as the scripts, without Lua.

use std::process::ExitCode;

use dbdyno_runner::{Inbox, Order, RunEnd, Sink};
use dbdyno_schema::plan::WorkloadName;
use dbdyno_schema::record::Record;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::driver::Driver;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::plan::Played;
use dbdyno_sysbench::report::failure::{self, Command, Doing};
use dbdyno_sysbench::report::{Nothing, loading};
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{help, oltp};

use super::console::Console;
use super::database;
use super::reporting::{Reporting, code};
use crate::exit::FAILED;
use dbdyno_cli::signals;

/// What is done with tables and load alike.
type Work = fn(&Order, Inbox, &mut dyn Sink) -> RunEnd;

/// A workload and what was asked of it.
struct Native {
    line: CommandLine,
    settings: Settings,
    console: Console,
    workload: WorkloadName,
}

/// Whether the engine can play what the options of `workload` say. Not that it is sensible: the script may take what
/// the engine does not, such as tables without rows.
pub(super) fn can_play(mut line: CommandLine, settings: &Settings, workload: WorkloadName) -> bool {
    // What is wrong with the options is told in time.
    if line.command.is_none() || line.declare(&oltp::declared(workload, line.compat)).is_err() {
        return true;
    }
    !matches!(database::plan(Played::Native(workload), &line, settings), Err(database::Unusable::Plan(_)))
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
        // It is the one script that asks for no command when it is loaded.
        if bulk {
            return ExitCode::SUCCESS;
        }
        let text = "Command is required. Supported commands: prepare, prewarm, run, cleanup, help";
        console.log(Level::Fatal, text);
        return FAILED.into();
    };
    let declared = oltp::declared(workload, line.compat);
    let newer = line.compat != Default::default();
    if bulk && !newer {
        line.adopt();
    }
    let noted = line.notes.len();
    if let Err(usage) = line.declare(&declared) {
        eprintln!("{}", usage.0);
        return FAILED.into();
    }
    line.notes[noted..].iter().for_each(|note| eprintln!("{note}"));
    let native = Native { line, settings, console, workload };
    match command.as_str() {
        "help" if bulk => {
            eprintln!("'{name}' test does not implement the 'help' command.");
            FAILED.into()
        }
        "help" => {
            native.console.print(&help::of_test(&name, &declared));
            ExitCode::SUCCESS
        }
        "run" => native.run(),
        "prepare" => native.on_tables(Command::Prepare, dbdyno_runner::prepare),
        "prewarm" | "warmup" if !bulk && native.settings.driver == Driver::Pgsql => {
            native.mysql_only(&command)
        }
        "prewarm" if !bulk => native.on_tables(Command::Prewarm, dbdyno_runner::prewarm),
        "warmup" if !bulk && newer => native.on_tables(Command::Prewarm, dbdyno_runner::prewarm),
        "cleanup" => native.on_tables(Command::Cleanup, dbdyno_runner::cleanup),
        _ => {
            eprintln!("Unknown command: {command}");
            FAILED.into()
        }
    }
}

impl Native {
    fn run(&self) -> ExitCode {
        let is_mysql = self.settings.driver == Driver::Mysql;
        let dry_run = is_mysql && self.line.registry.bool("mysql-dry-run");
        let (control, inbox) = dbdyno_runner::channel();
        let reporting = Reporting::new(&self.console, &self.settings, &Nothing, dry_run);
        let mut reporting = reporting.stopped_by(move |reason| control.stop(reason));
        let announced = || Reporting::new(&self.console, &self.settings, &Nothing, dry_run).announce();
        self.conduct(dbdyno_runner::run, Doing::Run, inbox, &announced, &mut reporting)
    }

    /// What a command says that sends statements for MySQL alone.
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
        self.conduct(work, Doing::Command(command), inbox, &|| (), &mut steps)
    }

    /// Has the work done, telling its records as they come. `before` is told first where the work never begins.
    fn conduct(
        &self,
        work: Work,
        doing: Doing,
        inbox: Inbox,
        before: &dyn Fn(),
        sink: &mut dyn Sink,
    ) -> ExitCode {
        let made = database::plan(Played::Native(self.workload), &self.line, &self.settings);
        let order = match made {
            Ok(made) => made,
            Err(database::Unusable::Driver(said)) => {
                before();
                let lines = failure::without_driver(said, doing, self.settings.compat);
                lines.iter().for_each(|line| self.console.log(Level::Fatal, line));
                return FAILED.into();
            }
            Err(database::Unusable::Other(said) | database::Unusable::Plan(said)) => {
                eprintln!("{said}");
                return FAILED.into();
            }
        };
        code(work(&order, inbox, sink).reason)
    }
}

/// What `prepare`, `prewarm` and `cleanup` do, told step by step.
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
                let doing = Doing::Command(self.command);
                let failed = end.failure.iter();
                let lines = failed.flat_map(|failed| failure::lines(failed, doing, self.settings));
                lines.for_each(|line| self.console.log(Level::Fatal, &line));
            }
            _ => {}
        }
        true
    }
}
