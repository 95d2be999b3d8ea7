//! The built-in tests: cpu, memory, threads, mutex and fileio.

use std::process::ExitCode;

use dbdyno_builtin::run::{IntervalIoCounts, RunSpec, channel};
use dbdyno_builtin::{LogMessage, Parameters, Test, TestError};
use dbdyno_runner::Sink;
use dbdyno_schema::Record;
use dbdyno_sysbench::commandline::CommandLine;
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::report::Totals;
use dbdyno_sysbench::settings::Settings;
use dbdyno_sysbench::{help, plan};

use super::console::{Console, declare};
use super::database;
use super::reporting::{Reporting, exit_code};
use crate::system::{FAILED, fail};

/// Runs a command of a built-in test.
pub(super) fn test(
    mut command_line: CommandLine,
    settings: Settings,
    console: Console,
    test: &'static dyn Test,
) -> ExitCode {
    let name = test.name();
    let Some(command) = command_line.command.clone() else {
        return fail(&format!("The '{name}' test requires a command argument. See 'sysbench {name} help'"));
    };
    if let Err(usage) = declare(&mut command_line, &test.option_definitions()) {
        return fail(&usage);
    }
    let seed = database::seed(Some(&command), &settings);
    let parameters = Parameters { values: &command_line.registry, settings: &settings, seed };
    let mut log = |message: LogMessage| console.log(message.level, &message.text);
    let result = match command.as_str() {
        "help" => {
            console.print(&help::test_options(name, &test.option_definitions()));
            Ok(ExitCode::SUCCESS)
        }
        "run" => run(test, parameters, &console),
        "prepare" => test.prepare(parameters, &mut log).map(|()| ExitCode::SUCCESS),
        "cleanup" => test.cleanup(parameters, &mut log).map(|()| ExitCode::SUCCESS),
        _ => Err(TestError::Usage(format!("Unknown command: {command}"))),
    };
    result.unwrap_or_else(|error| {
        match error {
            TestError::Usage(text) => eprintln!("{text}"),
            TestError::Log(messages) => messages.into_iter().for_each(log),
            TestError::MissingOption(text) => {
                console.log(Level::Fatal, &format!("{text}\n"));
                console.print(&help::test_options(name, &test.option_definitions()));
            }
            TestError::UnsupportedCommand => {
                eprintln!("'{name}' test does not implement the '{command}' command.")
            }
        }
        FAILED.into()
    })
}

/// Runs a test. Creates the shared state after the header, because sysbench reports the errors of that step there.
fn run(test: &dyn Test, parameters: Parameters<'_>, console: &Console) -> Result<ExitCode, TestError> {
    let Parameters { settings, seed, .. } = parameters;
    let configured = test.configure(parameters)?;
    settings.announcement().iter().for_each(|line| console.log(Level::Notice, line));
    configured.header_lines().iter().for_each(|message| console.log(message.level, &message.text));
    let state = configured.create_shared_state()?;
    console.log(Level::Notice, "Initializing worker threads...\n");
    let spec = RunSpec {
        threads: settings.threads,
        phases: plan::phases(settings),
        report: plan::report(settings),
        extra_counts: plan::extra_counts(),
        rate_per_s: settings.rate.into(),
        queue_limit: plan::QUEUE_LENGTH as usize,
        seed,
    };
    let io = IntervalIoCounts::default();
    let report = |totals: &Totals| configured.report(totals, io.between(totals.start_us, totals.end_us));
    let (control, inbox) = channel();
    let reporting = Reporting::new(console, settings, &report, false);
    let mut reporting = reporting.on_interrupt(move |reason| control.stop(reason));
    reporting.uses_database = false;
    reporting.limit_start_time();
    let mut write = |record: &Record| reporting.record(record);
    Ok(exit_code(dbdyno_builtin::run::run(&state, &spec, &io, &inbox, &mut write)?))
}
