//! A run as sysbench tells it.

use dbdyno_door::record::{End, EndReason, Interval, PhaseName, Record};

use super::super::log::{Level, Log};
use super::super::settings::Settings;
use super::cumulative::{self, Frame};
use super::failure::{self, Doing};
use super::{Said, tally::Tally};

/// Turns records into sysbench's text.
#[derive(Clone, Debug)]
pub struct Text {
    settings: Settings,
    log: Log,
    /// Whether a database is used.
    database: bool,
    /// When the counting began.
    start_us: u64,
    /// Since the last line of figures.
    interval: Tally,
    /// Since the last full report.
    tally: Tally,
}

impl Text {
    /// For a run with these settings.
    pub fn new(settings: Settings, log: Log, database: bool) -> Self {
        Self { settings, log, database, start_us: 0, interval: Tally::default(), tally: Tally::default() }
    }

    /// What to print after a record.
    pub fn record(&mut self, record: &Record) -> Said {
        match record {
            Record::Phase(phase) if phase.name == PhaseName::Measure => {
                self.start_us = phase.at_us;
                self.interval = Tally::from(phase.at_us);
                self.tally = Tally::from(phase.at_us);
                let said = if self.settings.warmup_s > 0 { String::new() } else { self.started() };
                Said { out: said, ..Said::default() }
            }
            Record::Phase(_) => {
                let warming = format!("Warming up for {} seconds...\n", self.settings.warmup_s);
                let out = self.started() + &self.log.line(Level::Notice, &warming);
                Said { out, ..Said::default() }
            }
            Record::Interval(interval) if interval.phase == PhaseName::Measure => {
                Said { out: self.interval(interval), ..Said::default() }
            }
            Record::Warning(warning) => {
                Said { err: format!("{}\n  {}\n", warning.text, warning.hint), ..Said::default() }
            }
            Record::End(end) => Said { out: self.end(end), ..Said::default() },
            _ => Said::default(),
        }
    }

    fn started(&mut self) -> String {
        self.log.line(Level::Notice, "Threads started!\n")
    }

    fn interval(&mut self, interval: &Interval) -> String {
        self.interval.add(interval);
        self.tally.add(interval);
        let mut text = String::new();
        let every_us = u64::from(self.settings.report_interval_s) * 1_000_000;
        let at_us = interval.end_us - self.start_us;
        if every_us > 0 && at_us.is_multiple_of(every_us) {
            text += &self.figures(at_us);
            self.interval = Tally::from(interval.end_us);
        }
        if self.settings.checkpoints_s.iter().any(|&at_s| u64::from(at_s) * 1_000_000 == at_us) {
            let head = format!("[ {}s ] Checkpoint report:", at_us / 1_000_000);
            text += &self.log.timestamped(Level::Notice, &head);
            text += &self.full(0);
            self.tally = Tally::from(interval.end_us);
        }
        text
    }

    /// The line of an interval, and a second one where events wait for their turn.
    fn figures(&mut self, at_us: u64) -> String {
        let part = &self.interval;
        let percent = self.settings.percentiles.first().copied();
        let latency = part.percentile_ms(percent.unwrap_or(0.0));
        let shown = percent.unwrap_or(0.0);
        let at_s = at_us / 1_000_000;
        let (threads, rate) = (part.active, |count| part.rate(count));
        let line = if self.database {
            format!(
                "[ {at_s}s ] thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{shown}%): {:.2} \
                 err/s: {:.2} reconn/s: {:.2}",
                rate(part.events),
                rate(part.queries()),
                rate(part.reads),
                rate(part.writes),
                rate(part.other),
                if percent.is_some() { latency } else { 0.0 },
                rate(part.errors),
                rate(part.reconnects),
            )
        } else {
            format!(
                "[ {at_s}s ] thds: {threads} eps: {:.2} lat (ms,{shown}%): {:.2}",
                rate(part.events),
                if percent.is_some() { latency } else { 0.0 },
            )
        };
        let comma = if self.database { "," } else { "" };
        let waiting =
            format!("[ {at_s}s ] queue length: {}{comma} concurrency: {}", part.backlog, part.in_flight);
        let mut text = self.log.timestamped(Level::Notice, &line);
        if self.settings.rate > 0 {
            text += &self.log.timestamped(Level::Notice, &waiting);
        }
        text
    }

    fn full(&mut self, unfinished: u64) -> String {
        let frame = Frame {
            settings: &self.settings,
            database: self.database,
            total_s: (self.tally.end_us - self.start_us) as f64 / 1e6,
            unfinished,
        };
        let mut text = self.log.flush();
        if self.settings.histogram {
            text += &cumulative::histogram(&self.tally);
        }
        text + &cumulative::report(&frame, &self.tally)
    }

    fn end(&mut self, end: &End) -> String {
        if self.tally.users.is_empty() {
            self.tally.users.clone_from(&end.users);
        }
        match end.reason {
            EndReason::TimeLimit => self.limit("Time limit exceeded, exiting...") + &self.full(0),
            EndReason::EventLimit => self.limit("Event limit exceeded, exiting...") + &self.full(0),
            EndReason::Interrupted => self.full(0),
            EndReason::ForcedShutdown => {
                let said =
                    self.log.line(Level::Fatal, "The --max-time limit has expired, forcing shutdown...");
                let measured = end.phases.get(&PhaseName::Measure);
                said + &self.full(measured.map_or(0, |totals| totals.accounting.unfinished))
            }
            EndReason::QueueFull => self.log.line(
                Level::Fatal,
                "The event queue is full. This means the worker threads are unable to keep up with the specified event \
                 generation rate",
            ),
            _ => self.failed(end),
        }
    }

    fn limit(&mut self, text: &str) -> String {
        let lines: String = (0..self.settings.threads).map(|_| self.log.line(Level::Info, text)).collect();
        lines + &self.log.line(Level::Info, "Done.\n")
    }

    fn failed(&mut self, end: &End) -> String {
        let Some(failure) = &end.failure else { return String::new() };
        let lines = failure::lines(failure, Doing::Run);
        lines.iter().map(|line| self.log.line(Level::Fatal, line)).collect()
    }
}
