//! sysbench's text output.

use dbdyno_schema::record::EndReason;

use super::TestReporter;
use super::cumulative;
use super::failure::{self, Command};
use super::reader::{Outcome, Progress};
use super::totals::Totals;
use crate::log::{Level, Log};
use crate::settings::Settings;

/// Writes sysbench's text output.
pub struct Text<'a> {
    pub settings: &'a Settings,
    /// Whether the run uses a database, so that statements are reported.
    pub database: bool,
    pub test: TestReporter<'a>,
}

impl Text<'_> {
    /// The text to print for `progress`.
    pub fn progress(&self, progress: &Progress, log: &mut Log) -> String {
        match progress {
            Progress::Started => self.start_lines(log),
            Progress::Interval(totals) => self.interval(totals, log),
            Progress::Checkpoint(totals) => {
                self.checkpoint_head(totals, log) + &self.full_report(totals, (0, 0), log)
            }
            Progress::Ended(outcome) if outcome.has_figures() => {
                let unfinished = match outcome.reason {
                    EndReason::ForcedShutdown => (outcome.unfinished, outcome.unfinished_us),
                    _ => (0, 0),
                };
                self.final_report_head(outcome, log) + &self.full_report(&outcome.last, unfinished, log)
            }
            Progress::Ended(outcome) => failure_lines(outcome, self.settings, log),
        }
    }

    /// The line above a checkpoint's report.
    pub fn checkpoint_head(&self, totals: &Totals, log: &mut Log) -> String {
        log.format_timestamped(Level::Notice, &format!("[ {:.0}s ] Checkpoint report:", totals.at_s()))
    }

    /// The text above the last report: why the run ended, and the histogram.
    pub fn final_report_head(&self, outcome: &Outcome, log: &mut Log) -> String {
        let reason = match outcome.reason {
            EndReason::TimeLimit => self.limit_reached("Time limit exceeded, exiting...", log),
            EndReason::EventLimit => self.limit_reached("Event limit exceeded, exiting...", log),
            EndReason::ForcedShutdown => {
                log.format(Level::Fatal, "The --max-time limit has expired, forcing shutdown...")
            }
            EndReason::Done => log.format(Level::Info, "Done.\n"),
            _ => String::new(),
        };
        // A run that was measured to its end, without a server at that time.
        let failure = outcome.failure.iter();
        let lines = failure.flat_map(|failure| failure::lines(failure, Command::Run, self.settings));
        let failure: String = lines.map(|line| log.format(Level::Fatal, &line)).collect();
        reason + &failure + &self.histogram(&outcome.last, log)
    }

    fn start_lines(&self, log: &mut Log) -> String {
        let mut text = String::new();
        for number in 0..self.settings.threads {
            text += &log.format(Level::Debug, &format!("Worker thread (#{number}) started"));
            text += &log.format(Level::Debug, &format!("Worker thread (#{number}) initialized"));
        }
        text += &log.format(Level::Notice, "Threads started!\n");
        if self.settings.warmup_s > 0 {
            let warmup = format!("Warming up for {} seconds...\n", self.settings.warmup_s);
            text += &log.format(Level::Notice, &warmup);
        }
        text
    }

    /// The line of an interval; with `--rate`, a second line about the queue.
    fn interval(&self, totals: &Totals, log: &mut Log) -> String {
        let at = format!("[ {:.0}s ]", totals.at_s());
        if let Some(own) = (self.test)(totals).interval {
            return log.format_timestamped(Level::Notice, &format!("{at} {own}"));
        }
        let latency = self.latency(totals);
        let (threads, rate) = (totals.active, |count| totals.rate(count));
        let line = if self.database {
            format!(
                "{at} thds: {threads} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) {latency} err/s: {:.2} reconn/s: \
                 {:.2}",
                rate(totals.events),
                rate(totals.queries()),
                rate(totals.reads),
                rate(totals.writes),
                rate(totals.other),
                rate(totals.errors),
                rate(totals.reconnects),
            )
        } else {
            format!("{at} thds: {threads} eps: {:.2} {latency}", rate(totals.events))
        };
        let mut text = log.format_timestamped(Level::Notice, &line);
        if self.settings.rate > 0 {
            let comma = if self.database { "," } else { "" };
            let queue =
                format!("{at} queue length: {}{comma} concurrency: {}", totals.backlog, totals.in_flight);
            text += &log.format_timestamped(Level::Notice, &queue);
        }
        text
    }

    /// The latency: one percentile in sysbench's format, or several separated by slashes.
    fn latency(&self, totals: &Totals) -> String {
        let percentiles = &self.settings.percentiles;
        if percentiles.is_empty() {
            return "lat (ms,0%): 0.00".into();
        }
        let names: Vec<_> = percentiles.iter().map(|percent| format!("{percent}%")).collect();
        let values: Vec<_> =
            percentiles.iter().map(|&percent| format!("{:.2}", totals.percentile_ms(percent))).collect();
        format!("lat (ms,{}): {}", names.join("/"), values.join("/"))
    }

    fn full_report(&self, totals: &Totals, unfinished: (u64, u64), log: &mut Log) -> String {
        let report =
            cumulative::report(self.settings, self.database, totals, unfinished, (self.test)(totals));
        // A leading blank line is passed separately, so that the log collapses it with the blank line that ended the
        // previous report.
        let (mut text, report) = match report.strip_prefix('\n') {
            Some(rest) => (log.format(Level::Notice, ""), rest),
            None => (String::new(), report.as_str()),
        };
        text += &log.format(Level::Notice, report.trim_end_matches('\n'));
        text += &log.format(Level::Notice, "");
        if self.settings.debug && !totals.users.is_empty() {
            let rows = cumulative::thread_statistics(&totals.users);
            text += &rows.iter().map(|row| log.format(Level::Debug, row)).collect::<String>();
            text += &log.format(Level::Notice, "");
        }
        text
    }

    fn histogram(&self, totals: &Totals, log: &mut Log) -> String {
        if !self.settings.histogram {
            return String::new();
        }
        let title = log.format(Level::Notice, "Latency histogram (values are in milliseconds)");
        title + &cumulative::histogram(totals) + &log.format(Level::Notice, " ")
    }

    fn limit_reached(&self, text: &str, log: &mut Log) -> String {
        let lines: String = (0..self.settings.threads).map(|_| log.format(Level::Info, text)).collect();
        lines + &log.format(Level::Info, "Done.\n")
    }
}

/// The messages of a run that has no figures.
fn failure_lines(outcome: &Outcome, settings: &Settings, log: &mut Log) -> String {
    match outcome.reason {
        EndReason::QueueFull => log.format(
            Level::Fatal,
            "The event queue is full. This means the worker threads are unable to keep up with the specified event \
             generation rate",
        ),
        EndReason::ScriptError if !outcome.started => {
            log.format(Level::Fatal, failure::initialization_failed(settings.compat))
        }
        // The script has logged its message.
        EndReason::ScriptError => String::new(),
        _ => {
            let lines =
                outcome.failure.iter().flat_map(|failure| failure::lines(failure, Command::Run, settings));
            lines.map(|line| log.format(Level::Fatal, &line)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::record::UserTotals;

    use super::*;
    use crate::Compat;
    use crate::report::no_test;
    use crate::testing::settings;

    fn format_progress(
        options: &[(&str, &str)],
        compat: Compat,
        progress: &Progress,
        database: bool,
    ) -> String {
        let settings = settings(options, compat);
        let mut log = Log::new(settings.verbosity);
        Text { settings: &settings, database, test: &no_test }.progress(progress, &mut log)
    }

    fn format_v10(options: &[(&str, &str)], progress: &Progress, database: bool) -> String {
        format_progress(options, Compat::V1_0, progress, database)
    }

    fn totals() -> Totals {
        Totals {
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
            ..Totals::default()
        }
    }

    #[test]
    fn interval_lines() {
        let progress = Progress::Interval(Box::new(totals()));
        assert_eq!(
            format_v10(&[], &progress, true),
            "[ 10s ] thds: 4 tps: 400.00 qps: 8000.00 (r/w/o: 5600.00/1600.00/800.00) lat (ms,95%): 11.45 err/s: 0.00 \
             reconn/s: 0.00\n"
        );
        assert_eq!(
            format_v10(&[("percentile", "0"), ("rate", "5")], &progress, false),
            "[ 10s ] thds: 4 eps: 400.00 lat (ms,0%): 0.00\n[ 10s ] queue length: 7 concurrency: 3\n"
        );
        let text = format_v10(&[("percentile", "50,99.9"), ("rate", "5")], &progress, true);
        assert!(text.contains(" lat (ms,50%/99.9%): 11.45/11.45 err/s"), "{text}");
        assert!(text.ends_with("\n[ 10s ] queue length: 7, concurrency: 3\n"), "{text}");
    }

    #[test]
    fn checkpoints_are_full_reports() {
        let text = format_v10(&[], &Progress::Checkpoint(Box::new(totals())), true);
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
    fn forced_shutdown_report_counts_unfinished_events_once() {
        let users = vec![UserTotals::default(); 2];
        let last = Totals { end_us: 2_000_200, users, ..Totals::default() };
        let outcome = Outcome {
            reason: EndReason::ForcedShutdown,
            failure: None,
            started: true,
            last,
            unfinished: 2,
            unfinished_us: 4_000_000,
        };
        let options = [("threads", "2"), ("time", "1"), ("forced-shutdown", "1")];
        let text = format_v10(&options, &Progress::Ended(Box::new(outcome)), false);
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
    fn low_verbosity_still_prints_the_histogram() {
        let outcome = Outcome {
            reason: EndReason::EventLimit,
            failure: None,
            started: true,
            last: totals(),
            unfinished: 0,
            unfinished_us: 0,
        };
        let progress = Progress::Ended(Box::new(outcome));
        let text = format_v10(&[("verbosity", "2"), ("histogram", "on")], &progress, true);
        assert_eq!(
            text,
            "       value  ------------- distribution ------------- count\n      11.446 \
             |**************************************** 400\n"
        );
        let text = format_v10(&[("verbosity", "4"), ("threads", "3"), ("histogram", "on")], &progress, true);
        let expected = "Event limit exceeded, exiting...\n(last message repeated 2 times)\nDone.\n\nLatency histogram (values";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("* 400\n \nSQL statistics:\n"), "{text}");
    }

    #[test]
    fn lines_at_the_start_of_a_run() {
        assert_eq!(format_v10(&[], &Progress::Started, true), "Threads started!\n\n");
        let text = format_progress(&[("warmup-time", "2")], Compat::V1_1, &Progress::Started, true);
        assert_eq!(text, "Threads started!\n\nWarming up for 2 seconds...\n\n");
    }
}
