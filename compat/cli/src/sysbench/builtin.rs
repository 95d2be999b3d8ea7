//! The built-in tests: cpu, memory, threads, mutex and fileio.

use std::process::ExitCode;

use dbdyno_builtin::run::{IntervalWork, RunSpec, channel};
use dbdyno_builtin::{Line, Parameters, Test, TestError};
use dbdyno_runner::Sink;
use dbdyno_schema::Record;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::report::Totals;
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{help, plan};

use super::console::{Console, declare};
use super::database;
use super::reporting::{Reporting, code};
use crate::system::{FAILED, fail};

/// Runs a command of a built-in test.
pub(super) fn test(
    mut line: CommandLine,
    settings: Settings,
    console: Console,
    test: &'static dyn Test,
) -> ExitCode {
    let name = test.name();
    let Some(command) = line.command.clone() else {
        return fail(&format!("The '{name}' test requires a command argument. See 'sysbench {name} help'"));
    };
    if let Err(usage) = declare(&mut line, &test.declared()) {
        return fail(&usage);
    }
    let parameters =
        Parameters { options: &line.registry, settings: &settings, seed: database::seed(&settings) };
    let mut log = |line: Line| console.log(line.level, &line.text);
    let done = match command.as_str() {
        "help" => {
            console.print(&help::test_options(name, &test.declared()));
            Ok(ExitCode::SUCCESS)
        }
        "run" => run(test, parameters, &console),
        "prepare" => test.prepare(parameters, &mut log).map(|()| ExitCode::SUCCESS),
        "cleanup" => test.cleanup(parameters, &mut log).map(|()| ExitCode::SUCCESS),
        _ => Err(TestError::Usage(format!("Unknown command: {command}"))),
    };
    done.unwrap_or_else(|error| {
        match error {
            TestError::Usage(text) => eprintln!("{text}"),
            TestError::Log(lines) => lines.into_iter().for_each(log),
            TestError::Missing(text) => {
                console.log(Level::Fatal, &format!("{text}\n"));
                console.print(&help::test_options(name, &test.declared()));
            }
            TestError::NoCommand => eprintln!("'{name}' test does not implement the '{command}' command."),
        }
        FAILED.into()
    })
}

/// Runs a test. Creates the test's state after it has printed the mode lines, because sysbench reports errors of that
/// step there.
fn run(test: &dyn Test, parameters: Parameters<'_>, console: &Console) -> Result<ExitCode, TestError> {
    let Parameters { settings, seed, .. } = parameters;
    let configured = test.configure(parameters)?;
    settings.announcement().iter().for_each(|line| console.log(Level::Notice, line));
    configured.mode_lines().iter().for_each(|line| console.log(line.level, &line.text));
    let open_test = configured.open()?;
    console.log(Level::Notice, "Initializing worker threads...\n");
    let spec = RunSpec {
        threads: settings.threads,
        phases: plan::phases(settings),
        report: plan::report(settings),
        extra_counts: plan::extra_counts(),
        rate_per_s: settings.rate.into(),
        queue_limit: plan::QUEUE as usize,
        seed,
    };
    let work = IntervalWork::default();
    let report = |totals: &Totals| configured.report(totals, work.between(totals.start_us, totals.end_us));
    let (control, inbox) = channel();
    let reporting = Reporting::new(console, settings, &report, false);
    let mut reporting = reporting.stopped_by(move |reason| control.stop(reason));
    reporting.database = false;
    reporting.expect_users();
    let mut write = |record: &Record| reporting.record(record);
    Ok(code(dbdyno_builtin::run::run(&open_test, &spec, &work, &inbox, &mut write)?))
}
