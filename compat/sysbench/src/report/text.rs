//! A run as sysbench tells it.

use dbdyno_schema::record::EndReason;

use super::super::log::{Level, Log};
use super::super::settings::Settings;
use super::Extra;
use super::cumulative::{self, Frame};
use super::failure::{self, Doing};
use super::reader::{News, Outcome, Stretch};
use super::tally::Tally;

/// Turns news into sysbench's text.
#[derive(Clone, Debug)]
pub struct Text {
    settings: Settings,
}

impl Text {
    /// For a run with these settings.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// What to print for some news. Statements are told of where a database is used.
    pub fn news(&self, news: &News, database: bool, extra: &dyn Extra, log: &mut Log) -> String {
        match news {
            News::Started => self.started(log),
            News::Interval(stretch) => self.interval(stretch, database, extra, log),
            News::Checkpoint(stretch) => {
                self.checkpoint_head(stretch, log) + &self.full(stretch, (0, 0), database, extra, log)
            }
            News::Ended(outcome) if outcome.is_told() => {
                let unfinished = match outcome.reason {
                    EndReason::ForcedShutdown => (outcome.unfinished, outcome.unfinished_us),
                    _ => (0, 0),
                };
                self.before_last(outcome, log) + &self.full(&outcome.last, unfinished, database, extra, log)
            }
            News::Ended(outcome) => failed(outcome, &self.settings, log),
        }
    }

    /// The line above a checkpoint's report.
    pub fn checkpoint_head(&self, stretch: &Stretch, log: &mut Log) -> String {
        log.timestamped(Level::Notice, &format!("[ {:.0}s ] Checkpoint report:", stretch.at_s()))
    }

    /// What stands above the last report: why the run is over, and the histogram.
    pub fn before_last(&self, outcome: &Outcome, log: &mut Log) -> String {
        let why = match outcome.reason {
            EndReason::TimeLimit => self.limit("Time limit exceeded, exiting...", log),
            EndReason::EventLimit => self.limit("Event limit exceeded, exiting...", log),
            EndReason::ForcedShutdown => {
                log.line(Level::Fatal, "The --max-time limit has expired, forcing shutdown...")
            }
            EndReason::Done => log.line(Level::Info, "Done.\n"),
            _ => String::new(),
        };
        why + &self.histogram(&outcome.last.tally, log)
    }

    fn started(&self, log: &mut Log) -> String {
        let mut text = String::new();
        for number in 0..self.settings.threads {
            text += &log.line(Level::Debug, &format!("Worker thread (#{number}) started"));
            text += &log.line(Level::Debug, &format!("Worker thread (#{number}) initialized"));
        }
        text += &log.line(Level::Notice, "Threads started!\n");
        if self.settings.warmup_s > 0 {
            let warming = format!("Warming up for {} seconds...\n", self.settings.warmup_s);
            text += &log.line(Level::Notice, &warming);
        }
        text
    }

    /// The line of an interval, and a second one where events wait for their turn.
    fn interval(&self, stretch: &Stretch, database: bool, extra: &dyn Extra, log: &mut Log) -> String {
        let part = &stretch.tally;
        let at = format!("[ {:.0}s ]", stretch.at_s());
        if let Some(own) = extra.interval(stretch) {
            return log.timestamped(Level::Notice, &format!("{at} {own}"));
        }
        let latency = self.latency(part);
        let (threads, rate) = (part.active, |count| part.rate(count));
        let line = if database {
            format!(
                "{at} thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) {latency} err/s: {:.2} reconn/s: \
                 {:.2}",
                rate(part.events),
                rate(part.queries()),
                rate(part.reads),
                rate(part.writes),
                rate(part.other),
                rate(part.errors),
                rate(part.reconnects),
            )
        } else {
            format!("{at} thds: {threads} eps: {:.2} {latency}", rate(part.events))
        };
        let mut text = log.timestamped(Level::Notice, &line);
        if self.settings.rate > 0 {
            let comma = if database { "," } else { "" };
            let waiting =
                format!("{at} queue length: {}{comma} concurrency: {}", part.backlog, part.in_flight);
            text += &log.timestamped(Level::Notice, &waiting);
        }
        text
    }

    /// One percentile as sysbench writes it, or several in the way it writes several rates.
    fn latency(&self, tally: &Tally) -> String {
        let percentiles = &self.settings.percentiles;
        if percentiles.is_empty() {
            return "lat (ms,0%): 0.00".into();
        }
        let names: Vec<_> = percentiles.iter().map(|percent| format!("{percent}%")).collect();
        let values: Vec<_> =
            percentiles.iter().map(|&percent| format!("{:.2}", tally.percentile_ms(percent))).collect();
        format!("lat (ms,{}): {}", names.join("/"), values.join("/"))
    }

    /// A full report. `unfinished` are the events that a forced shutdown left, and how long they had been due.
    fn full(
        &self,
        stretch: &Stretch,
        unfinished: (u64, u64),
        database: bool,
        extra: &dyn Extra,
        log: &mut Log,
    ) -> String {
        let tally = &stretch.tally;
        let (own, stands_for_general) = (extra.total(stretch), extra.stands_for_general());
        let frame =
            Frame { settings: &self.settings, database, stretch, unfinished, own, stands_for_general };
        let report = cumulative::report(&frame, tally);
        // A blank line that begins it follows the one that ended the report before, and is collapsed.
        let (mut text, report) = match report.strip_prefix('\n') {
            Some(rest) => (log.line(Level::Notice, ""), rest),
            None => (String::new(), report.as_str()),
        };
        text += &log.line(Level::Notice, report.trim_end_matches('\n'));
        text += &log.line(Level::Notice, "");
        if self.settings.debug && !tally.users.is_empty() {
            let rows = cumulative::threads(&tally.users);
            text += &rows.iter().map(|row| log.line(Level::Debug, row)).collect::<String>();
            text += &log.line(Level::Notice, "");
        }
        text
    }

    fn histogram(&self, tally: &Tally, log: &mut Log) -> String {
        if !self.settings.histogram {
            return String::new();
        }
        let title = log.line(Level::Notice, "Latency histogram (values are in milliseconds)");
        title + &cumulative::histogram(tally) + &log.line(Level::Notice, " ")
    }

    fn limit(&self, text: &str, log: &mut Log) -> String {
        let lines: String = (0..self.settings.threads).map(|_| log.line(Level::Info, text)).collect();
        lines + &log.line(Level::Info, "Done.\n")
    }
}

/// What is said of a run without figures.
fn failed(outcome: &Outcome, settings: &Settings, log: &mut Log) -> String {
    match outcome.reason {
        EndReason::QueueFull => log.line(
            Level::Fatal,
            "The event queue is full. This means the worker threads are unable to keep up with the specified event \
             generation rate",
        ),
        EndReason::ScriptError if !outcome.started => {
            log.line(Level::Fatal, failure::at_start(settings.compat))
        }
        // The script's own words are in the log already.
        EndReason::ScriptError => String::new(),
        _ => {
            let lines = outcome.failure.iter().flat_map(|failure| failure::lines(failure, Doing::Run, settings));
            lines.map(|line| log.line(Level::Fatal, &line)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::record::UserTotals;

    use super::*;
    use crate::Compat;
    use crate::registry::Registry;
    use crate::report::Nothing;

    fn settings(options: &[(&str, &str)], compat: Compat) -> Settings {
        let mut registry = Registry::new(compat);
        options.iter().for_each(|(name, value)| registry.set(name, Some(value)).unwrap());
        Settings::read(&registry, compat).unwrap()
    }

    fn said(options: &[(&str, &str)], news: &News, database: bool) -> String {
        let settings = settings(options, Compat::V10);
        let mut log = Log::new(settings.verbosity);
        Text::new(settings).news(news, database, &Nothing, &mut log)
    }

    fn stretch() -> Stretch {
        let tally = Tally {
            start_us: 9_000_000,
            end_us: 10_000_000,
            events: 400,
            reads: 5600,
            writes: 1600,
            other: 800,
            active: 4,
            backlog: 7,
            in_flight: 3,
            buckets: vec![(crate::latency::scale().bucket(11.45) as u16, 400)],
            ..Tally::default()
        };
        Stretch { at_us: 10_000_000, tally }
    }

    #[test]
    fn lines_of_intervals() {
        let news = News::Interval(Box::new(stretch()));
        assert_eq!(
            said(&[], &news, true),
            "[ 10s ] thds: 4 tps: 400.00 qps: 8000.00 (r/w/o: 5600.00/1600.00/800.00) lat (ms,95%): 11.45 err/s: 0.00 \
             reconn/s: 0.00\n"
        );
        assert_eq!(
            said(&[("percentile", "0"), ("rate", "5")], &news, false),
            "[ 10s ] thds: 4 eps: 400.00 lat (ms,0%): 0.00\n[ 10s ] queue length: 7 concurrency: 3\n"
        );
        let text = said(&[("percentile", "50,99.9"), ("rate", "5")], &news, true);
        assert!(text.contains(" lat (ms,50%/99.9%): 11.45/11.45 err/s"), "{text}");
        assert!(text.ends_with("\n[ 10s ] queue length: 7, concurrency: 3\n"), "{text}");
    }

    #[test]
    fn checkpoints_are_full_reports() {
        let text = said(&[], &News::Checkpoint(Box::new(stretch())), true);
        assert!(text.starts_with("[ 10s ] Checkpoint report:\nSQL statistics:\n"), "{text}");
        assert!(text.contains("    total time:                          10.0000s\n"), "{text}");
        assert!(
            text.contains("    transactions:                        400    (400.00 per sec.)\n"),
            "{text}"
        );
        assert!(text.ends_with("/0.00\n\n"), "{text}");
    }

    /// As sysbench 1.0.20 prints it for two threads that sleep through the end.
    #[test]
    fn a_forced_shutdown_counts_what_was_under_way_once_among_the_threads() {
        let users = vec![UserTotals::default(); 2];
        let last = Stretch { at_us: 2_000_200, tally: Tally { users, ..Tally::default() } };
        let outcome = Outcome {
            reason: EndReason::ForcedShutdown,
            failure: None,
            started: true,
            last,
            unfinished: 2,
            unfinished_us: 4_000_000,
        };
        let options = [("threads", "2"), ("time", "1"), ("forced-shutdown", "1")];
        let text = said(&options, &News::Ended(Box::new(outcome)), false);
        let expected = "FATAL: The --max-time limit has expired, forcing shutdown...

Number of unfinished transactions on forced shutdown: 2

General statistics:
    total time:                          2.0002s
    total number of events:              0
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("avg/stddev):           1.0000/0.00\n"), "{text}");
        assert!(text.ends_with("avg/stddev):   0.0000/2.00\n\n"), "{text}");
    }

    #[test]
    fn a_quiet_log_leaves_the_histogram_alone() {
        let outcome = Outcome {
            reason: EndReason::EventLimit,
            failure: None,
            started: true,
            last: stretch(),
            unfinished: 0,
            unfinished_us: 0,
        };
        let news = News::Ended(Box::new(outcome));
        let text = said(&[("verbosity", "2"), ("histogram", "on")], &news, true);
        assert_eq!(
            text,
            "       value  ------------- distribution ------------- count\n      11.446 \
             |**************************************** 400\n"
        );
        let text = said(&[("verbosity", "4"), ("threads", "3"), ("histogram", "on")], &news, true);
        let expected = "Event limit exceeded, exiting...\n(last message repeated 2 times)\nDone.\n\nLatency histogram (values";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("* 400\n \nSQL statistics:\n"), "{text}");
    }

    #[test]
    fn what_is_told_at_the_start() {
        assert_eq!(said(&[], &News::Started, true), "Threads started!\n\n");
        let settings = settings(&[("warmup-time", "2")], Compat::V11);
        let mut log = Log::new(settings.verbosity);
        let text = Text::new(settings).news(&News::Started, true, &Nothing, &mut log);
        assert_eq!(text, "Threads started!\n\nWarming up for 2 seconds...\n\n");
    }
}
