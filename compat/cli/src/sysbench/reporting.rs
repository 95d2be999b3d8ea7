//! Reports the records of a run in the requested format.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use dbdyno_lua::Stat;
use dbdyno_lua::run::{LuaFailure, Report, SCRIPT_BLOCKS, Script};
use dbdyno_runner::Sink;
use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Warning};
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::report::{Progress, Reader, TestReporter, Text, Totals, csv, generator, json};
use dbdyno_sysbench::settings::{Format, Settings};

use super::console::{self, Console};
use crate::system::FAILED;
use dbdyno_cli::signals;

/// The exit code of a forced shutdown.
const FORCED: u8 = 2;

/// Receives the records of a run and prints the reports.
pub(super) struct Reporting<'a> {
    console: &'a Console,
    settings: &'a Settings,
    reader: Reader,
    test: TestReporter<'a>,
    /// Whether reports count statements. If `script` is set, the script decides this instead.
    pub(super) database: bool,
    /// The script, whose hooks may replace reports.
    pub(super) script: Option<Rc<dyn Script>>,
    /// Stops the run; called on Ctrl-C.
    stop: Option<Box<dyn FnOnce(EndReason) + Send>>,
    /// Dropped when the users are ready, which ends the wait in [`Self::expect_users`].
    starting: Option<Sender<()>>,
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
            database: true,
            script: None,
            stop: None,
            starting: None,
            warnings: Vec::new(),
        }
    }

    /// Lets Ctrl-C stop the run once its users have started; before that, Ctrl-C ends the process without a report.
    pub(super) fn stopped_by(self, stop: impl FnOnce(EndReason) + Send + 'static) -> Self {
        Self { stop: Some(Box::new(stop)), ..self }
    }

    /// Ends the process if the users are not ready in time. The check has its own thread, because a script may block
    /// the others.
    pub(super) fn expect_users(&mut self) {
        let (ready, waiting) = channel();
        self.starting = Some(ready);
        let (console, seconds) = (self.console.clone(), self.settings.init_timeout_s);
        std::thread::spawn(move || {
            if waiting.recv_timeout(Duration::from_secs(seconds)) == Err(RecvTimeoutError::Timeout) {
                let text = format!("Worker threads failed to initialize within {seconds} seconds!");
                console.log(Level::Fatal, &text);
                std::process::exit(FORCED.into());
            }
        });
    }

    fn begin(&mut self) {
        self.starting = None;
        if let Some(stop) = self.stop.take() {
            signals::stop_on_interrupt(stop);
        }
    }

    fn report(&self, progress: &Progress) {
        match self.settings.format {
            Format::Text => {}
            Format::Json => console::report(&json::line(self.settings, self.test, &self.warnings, progress)),
            Format::Csv => console::report(&csv::lines(self.settings, self.test, progress)),
        }
        self.report_text(progress);
    }

    /// Prints a warning that sysbench does not have only to a terminal, so that programs that read the output do not
    /// get it. Warnings about the script itself are always printed.
    fn warn(&mut self, warning: &Warning) {
        let is_known = self.warnings.iter().any(|known| known.code == warning.code);
        if !is_known && (warning.code == SCRIPT_BLOCKS || io::stderr().is_terminal()) {
            self.console.warn(warning);
        }
        self.warnings.push(warning.clone());
    }

    /// Prints sysbench's report, or calls the script's hook for that report.
    fn report_text(&self, progress: &Progress) {
        let database = self.script.as_ref().map_or(self.database, |script| script.uses_database());
        let text = Text { settings: self.settings, database, test: self.test };
        let print = || self.console.write(|log| text.progress(progress, log));
        let Some(script) = &self.script else { return print() };
        let result = match progress {
            Progress::Interval(totals) if script.has_report(Report::Interval) => {
                script.report(Report::Interval, &self.stat(totals, false))
            }
            Progress::Checkpoint(totals) if script.has_report(Report::Final) => {
                self.console.write(|log| text.checkpoint_head(totals, log));
                script.report(Report::Checkpoint, &self.stat(totals, true))
            }
            Progress::Ended(outcome) if outcome.has_figures() && script.has_report(Report::Final) => {
                self.console.write(|log| text.before_last(outcome, log));
                script.report(Report::Final, &self.stat(&outcome.last, true))
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

    /// The argument of a report hook; times in seconds.
    fn stat(&self, totals: &Totals, cumulative: bool) -> Stat {
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

/// Prints the options before the users start.
pub(super) fn announce(console: &Console, settings: &Settings) {
    settings.announcement().iter().for_each(|line| console.log(Level::Notice, line));
    console.log(Level::Notice, "Initializing worker threads...\n");
}

impl Sink for Reporting<'_> {
    fn record(&mut self, record: &Record) -> bool {
        match record {
            Record::Hello(_) => {
                announce(self.console, self.settings);
                self.expect_users();
            }
            Record::Phase(_) => self.begin(),
            Record::Warning(warning) => self.warn(warning),
            Record::End(end) => {
                generator::warnings(end).iter().for_each(|warning| self.warn(warning));
                self.starting = None;
                signals::stop_handling();
            }
            _ => {}
        }
        self.reader.read(record).iter().for_each(|progress| self.report(progress));
        true
    }
}

/// The exit code of a run. After Ctrl-C, the process ends itself by SIGINT, so that the calling shell sees the signal.
pub(super) fn code(reason: EndReason) -> ExitCode {
    match reason {
        EndReason::TimeLimit | EndReason::EventLimit | EndReason::Done => ExitCode::SUCCESS,
        EndReason::ForcedShutdown => FORCED.into(),
        EndReason::Interrupted => {
            signals::die_of_signal();
            dbdyno_cli::exit::code(reason).into()
        }
        _ => FAILED.into(),
    }
}

/// Prints why a script's command failed.
pub(super) fn failed(console: &Console, failure: &LuaFailure) -> ExitCode {
    match failure {
        LuaFailure::ReturnedFalse => {}
        LuaFailure::Usage(line) => eprintln!("{line}"),
        other => console.log(Level::Fatal, &other.to_string()),
    }
    FAILED.into()
}
