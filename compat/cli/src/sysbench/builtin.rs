//! The built-in tests: cpu, memory, threads, mutex and fileio.

use std::process::ExitCode;

use dbdyno_builtin::run::{Ledger, Order, Stopped, channel};
use dbdyno_builtin::{Configured, Fault, General, Given, Line, Part, Test};
use dbdyno_runner::Sink;
use dbdyno_schema::Record;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::registry::Registry;
use dbdyno_sysbench::report::{Extra, Stretch};
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{Compat, help, plan};

use super::console::Console;
use super::database;
use super::reporting::{Reporting, code};
use crate::exit::FAILED;

/// Runs a command of a built-in test.
pub(super) fn test(
    mut line: CommandLine,
    settings: Settings,
    console: Console,
    test: &'static dyn Test,
) -> ExitCode {
    let name = test.name();
    let Some(command) = line.command.clone() else {
        eprintln!("The '{name}' test requires a command argument. See 'sysbench {name} help'");
        return FAILED.into();
    };
    let noted = line.notes.len();
    if let Err(usage) = line.declare(&test.declared()) {
        eprintln!("{}", usage.0);
        return FAILED.into();
    }
    line.notes[noted..].iter().for_each(|note| eprintln!("{note}"));
    let builtin = BuiltIn { line, settings, console, test };
    let done =
        match command.as_str() {
            "help" => {
                builtin.console.print(&help::of_test(name, &test.declared()));
                Ok(())
            }
            "run" => return builtin.run().unwrap_or_else(|fault| builtin.refuse(&fault, "run")),
            "prepare" => test
                .prepare(&Values(&builtin.line.registry), builtin.general(), &mut |line| builtin.say(&line)),
            "cleanup" => test
                .cleanup(&Values(&builtin.line.registry), builtin.general(), &mut |line| builtin.say(&line)),
            _ => Err(Fault::Usage(format!("Unknown command: {command}"))),
        };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => builtin.refuse(&fault, &command),
    }
}

/// A test and what was asked of it.
struct BuiltIn {
    line: CommandLine,
    settings: Settings,
    console: Console,
    test: &'static dyn Test,
}

impl BuiltIn {
    fn general(&self) -> General {
        General {
            threads: self.settings.threads,
            events: self.settings.events,
            seed: database::seed(&self.settings),
            validate: self.settings.validate,
            newer: self.settings.compat == Compat::V11,
            keys: self.settings.keys.clone(),
        }
    }

    fn say(&self, line: &Line) {
        let level = match line.level {
            dbdyno_builtin::Level::Fatal => Level::Fatal,
            dbdyno_builtin::Level::Warning => Level::Warning,
            dbdyno_builtin::Level::Notice => Level::Notice,
            dbdyno_builtin::Level::Info => Level::Info,
        };
        self.console.log(level, &line.text);
    }

    fn refuse(&self, fault: &Fault, command: &str) -> ExitCode {
        let name = self.test.name();
        match fault {
            Fault::Usage(text) => eprintln!("{text}"),
            Fault::Said(lines) => lines.iter().for_each(|line| self.say(line)),
            Fault::Missing(text) => {
                self.console.log(Level::Fatal, &format!("{text}\n"));
                self.console.print(&help::of_test(name, &self.test.declared()));
            }
            Fault::NoCommand => eprintln!("'{name}' test does not implement the '{command}' command."),
        }
        FAILED.into()
    }

    /// What is opened stands between what the test says of itself and the threads, as its faults do.
    fn run(&self) -> Result<ExitCode, Fault> {
        let configured = self.test.configure(&Values(&self.line.registry), self.general())?;
        let settings = &self.settings;
        settings.announcement().iter().for_each(|line| self.console.log(Level::Notice, line));
        configured.mode_lines().iter().for_each(|line| self.say(line));
        let bench = configured.open().map_err(Fault::Said)?;
        self.console.log(Level::Notice, "Initializing worker threads...\n");
        let order = Order {
            threads: settings.threads,
            phases: plan::phases(settings),
            report: plan::report(settings),
            extra_counts: plan::extra_counts(),
            rate_per_s: settings.rate.into(),
            queue_limit: plan::QUEUE as usize,
            seed: database::seed(settings),
        };
        let ledger = Ledger::default();
        let figures = Figures { configured: &*configured, ledger: ledger.clone(), settings };
        let (control, inbox) = channel();
        let reporting = Reporting::new(&self.console, settings, &figures, false);
        let mut reporting = reporting.stopped_by(move |reason| control.stop(reason));
        reporting.database = false;
        reporting.expect_users();
        let mut write = |record: &Record| reporting.record(record);
        match dbdyno_builtin::run::run(&bench, &order, &ledger, &inbox, &mut write) {
            Ok(reason) => Ok(code(reason)),
            Err(Stopped::AtStart(lines) | Stopped::Failed(lines)) => Err(Fault::Said(lines)),
        }
    }
}

/// The values of options, as tests ask for them.
struct Values<'a>(&'a Registry);

impl Given for Values<'_> {
    fn bool(&self, name: &str) -> bool {
        self.0.bool(name)
    }

    fn int(&self, name: &str) -> Result<i32, Fault> {
        // A test's options are told of under their names with underscores.
        self.0.int(&name.replace('-', "_")).map_err(|usage| Fault::Usage(usage.0))
    }

    fn size(&self, name: &str) -> u64 {
        self.0.size(name)
    }

    fn double(&self, name: &str) -> f64 {
        self.0.double(name)
    }

    fn string(&self, name: &str) -> Option<&str> {
        self.0.string(name)
    }

    fn list(&self, name: &str) -> &[String] {
        self.0.list(name)
    }
}

/// What a test adds to the reports.
struct Figures<'a> {
    configured: &'a dyn Configured,
    ledger: Ledger,
    settings: &'a Settings,
}

impl Figures<'_> {
    fn part(&self, stretch: &Stretch) -> Part {
        let tally = &stretch.tally;
        let percentile = self.settings.percentiles.first();
        Part {
            seconds: tally.seconds(),
            events: tally.events,
            work: self.ledger.between(tally.start_us, tally.end_us),
            percentile: percentile.map(|&percent| (percent, tally.percentile_ms(percent))),
        }
    }
}

impl Extra for Figures<'_> {
    fn interval(&self, stretch: &Stretch) -> Option<String> {
        self.configured.interval(&self.part(stretch))
    }

    fn total(&self, stretch: &Stretch) -> Vec<String> {
        self.configured.total(&self.part(stretch))
    }

    fn stands_for_general(&self) -> bool {
        self.configured.stands_for_general()
    }

    fn figures(&self, stretch: &Stretch) -> Vec<(String, f64)> {
        let figures = self.configured.figures(&self.part(stretch));
        figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}
