//! The bundled database workloads, natively: the same statements as the scripts, without Lua.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use dbdyno_door::Plan;
use dbdyno_door::plan::WorkloadName;
use dbdyno_door::record::{EndReason, Record};
use dbdyno_drive::{Ended, Inbox, Secrets, Sink};
use dbdyno_frontends::sysbench::commandline::CommandLine;
use dbdyno_frontends::sysbench::log::{Level, Log};
use dbdyno_frontends::sysbench::report::failure::{self, Command, Doing};
use dbdyno_frontends::sysbench::report::{Said, Text, loading};
use dbdyno_frontends::sysbench::settings::Settings;
use dbdyno_frontends::sysbench::{help, oltp, plan};

use super::output::{Saying, say};
use super::{FAILED, refuse};
use crate::{input, signals};

/// Exit code of a run that was ended by force.
const FORCED: u8 = 2;

/// What is done with tables and load alike.
type Work = fn(&Plan, &Secrets, Inbox, &mut dyn Sink) -> Ended;

/// Runs a command of `workload`.
pub(super) fn test(
    mut line: CommandLine,
    settings: Settings,
    mut log: Log,
    workload: WorkloadName,
) -> ExitCode {
    let name = line.test.clone().unwrap_or_default();
    let Some(command) = line.command.clone() else {
        let text = "/usr/share/sysbench/oltp_common.lua:28: Command is required. Supported commands: prepare, prewarm, \
                    run, cleanup, help";
        say(&log.line(Level::Fatal, text));
        return FAILED.into();
    };
    let declared = oltp::declared(workload);
    if let Err(usage) = line.declare(&declared) {
        eprintln!("{}", usage.0);
        return FAILED.into();
    }
    let bulk = workload == WorkloadName::BulkInsert;
    match command.as_str() {
        "help" if bulk => {
            eprintln!("'{name}' test does not implement the 'help' command.");
            FAILED.into()
        }
        "help" => {
            say(&help::of_test(&name, &declared));
            ExitCode::SUCCESS
        }
        "run" => run(&line, settings, log, workload),
        "prepare" => on_tables(&line, &settings, log, workload, Command::Prepare, dbdyno_drive::prepare),
        "cleanup" => on_tables(&line, &settings, log, workload, Command::Cleanup, dbdyno_drive::cleanup),
        _ => {
            eprintln!("Unknown command: {command}");
            FAILED.into()
        }
    }
}

fn run(line: &CommandLine, settings: Settings, mut log: Log, workload: WorkloadName) -> ExitCode {
    for announced in settings.announcement() {
        say(&log.line(Level::Notice, &announced));
    }
    say(&log.line(Level::Notice, "Initializing worker threads...\n"));
    let mut text = Text::new(settings.clone(), log, true);
    let ended = conduct(line, &settings, workload, dbdyno_drive::run, &mut |record| text.record(record));
    match ended {
        Err(code) => code,
        Ok(reason) => match reason {
            EndReason::TimeLimit | EndReason::EventLimit => ExitCode::SUCCESS,
            EndReason::ForcedShutdown => FORCED.into(),
            EndReason::Interrupted => crate::exit::code(reason).into(),
            _ => FAILED.into(),
        },
    }
}

fn on_tables(
    line: &CommandLine,
    settings: &Settings,
    mut log: Log,
    workload: WorkloadName,
    command: Command,
    work: Work,
) -> ExitCode {
    if settings.threads > 1 && command != Command::Cleanup {
        say(&log.line(Level::Notice, "Initializing worker threads...\n"));
    }
    let rows = oltp::options(&line.registry).table_size;
    let compat = line.compat;
    let mut tell = |record: &Record| match record {
        Record::Loading(step) => {
            Said { out: loading::line(step, rows, compat).unwrap_or_default(), ..Said::default() }
        }
        Record::Warning(warning) => Said { err: format!("{}\n", warning.text), ..Said::default() },
        Record::End(end) => {
            let lines = end.failure.iter().flat_map(|failed| failure::lines(failed, Doing::Command(command)));
            Said { out: lines.map(|line| log.line(Level::Fatal, &line)).collect(), ..Said::default() }
        }
        _ => Said::default(),
    };
    match conduct(line, settings, workload, work, &mut tell) {
        Err(code) => code,
        Ok(EndReason::Done) => ExitCode::SUCCESS,
        Ok(EndReason::Interrupted) => crate::exit::code(EndReason::Interrupted).into(),
        Ok(_) => FAILED.into(),
    }
}

/// Has the work done, telling its records as they come.
fn conduct(
    line: &CommandLine,
    settings: &Settings,
    workload: WorkloadName,
    work: Work,
    tell: &mut dyn FnMut(&Record) -> Said,
) -> Result<EndReason, ExitCode> {
    let plan =
        plan::plan(workload, &line.registry, settings, seed(settings)).map_err(|refused| refuse(&refused))?;
    let faults = plan.faults();
    if !faults.is_empty() {
        faults.iter().for_each(|fault| eprintln!("{fault}"));
        return Err(FAILED.into());
    }
    let mut secrets = input::secrets(&plan).map_err(|faults| {
        eprintln!("{faults}");
        ExitCode::from(FAILED)
    })?;
    secrets.password = line.registry.string("mysql-password").unwrap_or_default().into();
    let (control, inbox) = dbdyno_drive::channel();
    if let Err(error) = signals::stop_on_signal(control) {
        eprintln!("signals cannot be handled: {error}");
    }
    Ok(work(&plan, &secrets, inbox, &mut Saying(tell)).reason)
}

/// `--rand-seed`, or the time of day.
fn seed(settings: &Settings) -> u64 {
    if settings.seed != 0 {
        return settings.seed as u32 as u64;
    }
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}
