//! Reports a run in the requested format, from its records.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::mpsc::Sender;

use dbdyno_lua::Stat;
use dbdyno_lua::run::{LuaFailure, Report, SCRIPT_BLOCKS, Script};
use dbdyno_runner::external::SERVER_GONE;
use dbdyno_runner::{RunEnd, Sink};
use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Warning};
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::report::{Progress, Reader, TestReporter, Text, Totals, csv, generator, json};
use dbdyno_sysbench::settings::{Format, Settings};

use super::console::{self, Console};
use crate::system::FAILED;
use crate::watchdog;
use dbdyno_cli::signals;

/// The exit code of a forced shutdown.
const FORCED: u8 = 2;

/// Codes of the warnings that are printed even if standard error is not a terminal.
const ALWAYS_PRINTED: [&str; 2] = [SCRIPT_BLOCKS, SERVER_GONE];

/// Receives the records of a run and prints the reports.
pub(super) struct Reporting<'a> {
    console: &'a Console,
    settings: &'a Settings,
    reader: Reader,
    test: TestReporter<'a>,
    /// Whether reports count statements. If `script` is set, the script decides this instead.
    pub(super) uses_database: bool,
    /// The script, whose hooks may replace reports.
    pub(super) script: Option<Rc<dyn Script>>,
    /// Stops the run on Ctrl-C.
    stop: Option<Box<dyn FnOnce(EndReason) + Send>>,
    /// Dropped when the users are ready, which ends the check of [`Self::limit_start_time`].
    start_guard: Option<Sender<()>>,
    warnings: Vec<Warning>,
}

impl<'a> Reporting<'a> {
    pub(super) fn new(
        console: &'a Console,
        settings: &'a Settings,
        test: TestReporter<'a>,
        dry_run: bool,
    ) -> Self {
        Self {
            console,
            settings,
            reader: Reader::new(settings, dry_run),
            test,
            uses_database: true,
            script: None,
            stop: None,
            start_guard: None,
            warnings: Vec::new(),
        }
    }

    /// Lets Ctrl-C call `stop` after the users have started. Before that, Ctrl-C ends the process without a report.
    pub(super) fn on_interrupt(self, stop: impl FnOnce(EndReason) + Send + 'static) -> Self {
        Self { stop: Some(Box::new(stop)), ..self }
    }

    /// Ends the process if the users are not ready in time. The check has its own thread, because a script may block the
    /// other threads.
    pub(super) fn limit_start_time(&mut self) {
        self.start_guard = Some(limit_start_time(self.console, self.settings));
    }

    fn start_measurement(&mut self) {
        self.start_guard = None;
        if let Some(stop) = self.stop.take() {
            signals::stop_on_interrupt(stop);
        }
    }

    fn report(&self, progress: &Progress) {
        match self.settings.format {
            Format::Text => {}
            Format::Json => {
                console::print_report(&json::line(self.settings, self.test, &self.warnings, progress))
            }
            Format::Csv => console::print_report(&csv::lines(self.settings, self.test, progress)),
        }
        self.report_text(progress);
    }

    /// Prints a warning that sysbench does not have if standard error is a terminal, so that programs that read the output
    /// do not receive it. The warnings in [`ALWAYS_PRINTED`] are always printed.
    fn warn(&mut self, warning: &Warning) {
        let is_repeated = self.warnings.iter().any(|earlier| earlier.code == warning.code);
        if !is_repeated && (ALWAYS_PRINTED.contains(&&*warning.code) || io::stderr().is_terminal()) {
            self.console.warn(warning);
        }
        self.warnings.push(warning.clone());
    }

    /// Prints sysbench's report, or calls the script's hook for that report.
    fn report_text(&self, progress: &Progress) {
        let uses_database = self.script.as_ref().map_or(self.uses_database, |script| script.uses_database());
        let text = Text { settings: self.settings, database: uses_database, test: self.test };
        let print = || self.console.write(|log| text.progress(progress, log));
        let Some(script) = &self.script else { return print() };
        let result = match progress {
            Progress::Interval(totals) if script.has_report(Report::Interval) => {
                script.report(Report::Interval, &self.script_stat(totals, false))
            }
            Progress::Checkpoint(totals) if script.has_report(Report::Final) => {
                self.console.write(|log| text.checkpoint_head(totals, log));
                script.report(Report::Checkpoint, &self.script_stat(totals, true))
            }
            Progress::Ended(outcome) if outcome.has_figures() && script.has_report(Report::Final) => {
                self.console.write(|log| text.final_report_head(outcome, log));
                script.report(Report::Final, &self.script_stat(&outcome.last, true))
            }
            _ => {
                if matches!(progress, Progress::Ended(_)) {
                    script.close_reports();
                }
                print();
                Ok(())
            }
        };
        if let Err(failure) = result {
            self.console.log(Level::Fatal, &failure.to_string());
        }
    }

    /// The argument of the script's report hook; times in seconds.
    fn script_stat(&self, totals: &Totals, cumulative: bool) -> Stat {
        let percent = self.settings.percentiles.first();
        let [min_s, mean_s, max_s, sum_s] = totals.latency_ms().map(|ms| ms / 1e3);
        Stat {
            threads_running: totals.active,
            time_interval: totals.seconds(),
            time_total: totals.at_s(),
            latency_pct: percent.map_or(0.0, |&percent| totals.percentile_ms(percent) / 1e3),
            events: totals.events,
            reads: totals.reads,
            writes: totals.writes,
            other: totals.other,
            errors: totals.errors,
            reconnects: totals.reconnects,
            queue: (!cumulative).then_some((totals.backlog, totals.in_flight)),
            latency: cumulative.then_some([min_s, max_s, mean_s, sum_s]),
        }
    }
}

/// Ends the process if the returned guard is not dropped in time.
pub(super) fn limit_start_time(console: &Console, settings: &Settings) -> Sender<()> {
    let (console, seconds) = (console.clone(), settings.init_timeout_s);
    watchdog::limit_time(seconds, move || {
        let text = format!("Worker threads failed to initialize within {seconds} seconds!");
        console.log(Level::Fatal, &text);
        std::process::exit(FORCED.into());
    })
}

/// Prints the settings before the users start.
pub(super) fn print_settings(console: &Console, settings: &Settings) {
    settings.announcement().iter().for_each(|line| console.log(Level::Notice, line));
    console.log(Level::Notice, "Initializing worker threads...\n");
}

impl Sink for Reporting<'_> {
    fn record(&mut self, record: &Record) -> bool {
        match record {
            Record::Hello(_) => {
                print_settings(self.console, self.settings);
                self.limit_start_time();
            }
            Record::Phase(_) => self.start_measurement(),
            Record::Warning(warning) => self.warn(warning),
            Record::End(end) => {
                generator::warnings(end).iter().for_each(|warning| self.warn(warning));
                self.start_guard = None;
                signals::stop_handling();
            }
            _ => {}
        }
        self.reader.read(record).iter().for_each(|progress| self.report(progress));
        true
    }
}

/// The exit code of a run. A run that was measured to its end fails if the server was gone at that time.
pub(super) fn run_exit_code(end: &RunEnd) -> ExitCode {
    match end.reason {
        EndReason::TimeLimit | EndReason::EventLimit if end.failure.is_some() => FAILED.into(),
        reason => exit_code(reason),
    }
}

/// The exit code for the reason of an end. After Ctrl-C, the process ends itself by SIGINT, so that the calling shell sees the signal.
pub(super) fn exit_code(reason: EndReason) -> ExitCode {
    match reason {
        EndReason::TimeLimit | EndReason::EventLimit | EndReason::Done => ExitCode::SUCCESS,
        EndReason::ForcedShutdown => FORCED.into(),
        EndReason::Interrupted => {
            signals::exit_by_signal();
            dbdyno_cli::exit::code(reason).into()
        }
        _ => FAILED.into(),
    }
}

/// Prints why a script's command failed, and returns the exit code.
pub(super) fn report_failure(console: &Console, failure: &LuaFailure) -> ExitCode {
    match failure {
        LuaFailure::ReturnedFalse => {}
        LuaFailure::Usage(text) => eprintln!("{text}"),
        other => console.log(Level::Fatal, &other.to_string()),
    }
    FAILED.into()
}
