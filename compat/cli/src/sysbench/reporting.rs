//! The records of a run, told in the form that was asked for.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use dbdyno_lua::Stat;
use dbdyno_lua::play::{LuaFailure, Report, SCRIPT_BLOCKS, Script};
use dbdyno_runner::Sink;
use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Warning};
use dbdyno_sysbench::log::Level;
use dbdyno_sysbench::report::reader::Stretch;
use dbdyno_sysbench::report::{Extra, News, Reader, Text, csv, generator, json};
use dbdyno_sysbench::settings::{Format, Settings};

use super::console::{self, Console};
use crate::exit::FAILED;
use dbdyno_cli::signals;

/// Exit code of a run that was ended by force.
const FORCED: u8 = 2;

/// Tells a run.
pub(super) struct Reporting<'a> {
    pub(super) console: &'a Console,
    pub(super) settings: &'a Settings,
    pub(super) reader: Reader,
    pub(super) text: Text,
    pub(super) extra: &'a dyn Extra,
    /// Lines of the test, before its users begin.
    pub(super) mode_lines: Vec<String>,
    /// Whether a database is used; a script decides by itself.
    pub(super) database: bool,
    /// The script, which may replace reports.
    pub(super) script: Option<Rc<dyn Script>>,
    /// How the run is stopped from outside, once it has begun.
    stop: Option<Stop>,
    /// Held until the users are ready.
    starting: Option<Sender<()>>,
    warnings: Vec<Warning>,
}

/// Ends a run early.
type Stop = Box<dyn FnOnce(EndReason) + Send>;

impl<'a> Reporting<'a> {
    /// For a run on a database, without anything of a test's own.
    pub(super) fn new(
        console: &'a Console,
        settings: &'a Settings,
        extra: &'a dyn Extra,
        dry_run: bool,
    ) -> Self {
        Self {
            console,
            settings,
            reader: Reader::new(settings, dry_run),
            text: Text::new(settings.clone()),
            extra,
            mode_lines: Vec::new(),
            database: true,
            script: None,
            stop: None,
            starting: None,
            warnings: Vec::new(),
        }
    }

    /// Lets Ctrl-C end the run once its users have begun. Until then there is nothing to tell, and it ends the process.
    pub(super) fn stopped_by(self, stop: impl FnOnce(EndReason) + Send + 'static) -> Self {
        Self { stop: Some(Box::new(stop)), ..self }
    }

    /// Ends the process where the users are not ready in time. It waits for nobody: a script may hold its thread.
    pub(super) fn expect_users(&mut self) {
        let (ready, waiting) = channel();
        self.starting = Some(ready);
        let (console, seconds) = (self.console.clone(), self.settings.init_timeout_s);
        std::thread::spawn(move || {
            let told = waiting.recv_timeout(Duration::from_secs(seconds));
            if told == Err(RecvTimeoutError::Timeout) {
                let text = format!("Worker threads failed to initialize within {seconds} seconds!");
                console.log(Level::Fatal, &text);
                std::process::exit(FORCED.into());
            }
        });
    }

    /// The users have begun.
    fn begin(&mut self) {
        self.starting = None;
        if let Some(stop) = self.stop.take() {
            signals::stop_on_interrupt(stop);
        }
    }

    /// What stands before the users begin.
    pub(super) fn announce(&self) {
        let lines = self.settings.announcement();
        lines.iter().chain(&self.mode_lines).for_each(|line| self.console.log(Level::Notice, line));
        self.console.log(Level::Notice, "Initializing worker threads...\n");
    }

    fn tell(&self, news: &News) {
        let database = self.script.as_ref().map_or(self.database, |script| script.uses_database());
        match self.settings.format {
            Format::Text => {}
            Format::Json => console::report(&json::line(self.settings, self.extra, &self.warnings, news)),
            Format::Csv => console::report(&csv::lines(self.settings, self.extra, news)),
        }
        self.tell_text(news, database);
    }

    /// What the original never says is for people, not for the scripts that read it, but for what is a fault of the test.
    fn warn(&mut self, warning: &Warning) {
        let is_known = self.warnings.iter().any(|known| known.code == warning.code);
        if !is_known && (warning.code == SCRIPT_BLOCKS || io::stderr().is_terminal()) {
            self.console.warn(warning);
        }
        self.warnings.push(warning.clone());
    }

    /// A script's own reports stand in place of those they replace.
    fn tell_text(&self, news: &News, database: bool) {
        let Some(script) = &self.script else {
            return self.console.say(|log| self.text.news(news, database, self.extra, log));
        };
        let told = match news {
            News::Interval(stretch) if script.has_report(Report::Interval) => {
                script.report(Report::Interval, &self.stat(stretch, false))
            }
            News::Checkpoint(stretch) if script.has_report(Report::Final) => {
                self.console.say(|log| self.text.checkpoint_head(stretch, log));
                script.report(Report::Checkpoint, &self.stat(stretch, true))
            }
            News::Ended(outcome) if outcome.is_told() && script.has_report(Report::Final) => {
                self.console.say(|log| self.text.before_last(outcome, log));
                script.report(Report::Final, &self.stat(&outcome.last, true))
            }
            _ => {
                if matches!(news, News::Ended(_)) {
                    script.close_reports();
                }
                self.console.say(|log| self.text.news(news, database, self.extra, log));
                Ok(())
            }
        };
        if let Err(failure) = told {
            self.console.log(Level::Fatal, &failure.to_string());
        }
    }

    /// The figures for a script's hook; times in seconds.
    fn stat(&self, stretch: &Stretch, cumulative: bool) -> Stat {
        let tally = &stretch.tally;
        let percent = self.settings.percentiles.first();
        let sum_s = tally.latency_sum_us / 1e6;
        let mean_s = if tally.events == 0 { 0.0 } else { sum_s / tally.events as f64 };
        let [min_s, max_s] =
            [tally.latency_min_us, tally.latency_max_us].map(|latency_us| latency_us.unwrap_or(0.0) / 1e6);
        Stat {
            threads_running: tally.active,
            time_interval: tally.seconds(),
            time_total: stretch.at_s(),
            latency_pct: percent.map_or(0.0, |&percent| tally.percentile_ms(percent) / 1e3),
            events: tally.events,
            reads: tally.reads,
            writes: tally.writes,
            other: tally.other,
            errors: tally.errors,
            reconnects: tally.reconnects,
            queue: (!cumulative).then_some((tally.backlog, tally.in_flight)),
            latency: cumulative.then_some([min_s, max_s, mean_s, sum_s]),
        }
    }
}

impl Sink for Reporting<'_> {
    fn record(&mut self, record: &Record) -> bool {
        match record {
            Record::Hello(_) => {
                self.announce();
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
        self.reader.read(record).iter().for_each(|news| self.tell(news));
        true
    }
}

/// The exit code of a run. A signal ends the process the way it would have without anybody's handling it, so that the
/// shell that waits for it sees what it knows.
pub(super) fn code(reason: EndReason) -> ExitCode {
    match reason {
        EndReason::TimeLimit | EndReason::EventLimit | EndReason::Done => ExitCode::SUCCESS,
        EndReason::ForcedShutdown => FORCED.into(),
        EndReason::Interrupted => {
            dbdyno_cli::signals::die_of_signal();
            dbdyno_cli::exit::code(reason).into()
        }
        _ => FAILED.into(),
    }
}

/// Tells why a script's command came to nothing.
pub(super) fn failed(console: &Console, failure: &LuaFailure) -> ExitCode {
    match failure {
        LuaFailure::False => {}
        LuaFailure::Usage(line) => eprintln!("{line}"),
        other => console.log(Level::Fatal, &other.to_string()),
    }
    FAILED.into()
}
