//! Derives from the records of a run when a report is due, and its totals.

use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, Failure, Interval, PhaseName};

use super::totals::Totals;
use crate::settings::Settings;

/// A moment of a run at which something is printed.
#[derive(Clone, Debug, PartialEq)]
pub enum Progress {
    /// Every user is ready, and the clock runs.
    Started,
    /// A reporting interval has ended.
    Interval(Box<Totals>),
    /// A full report is due; counting starts again at 0.
    Checkpoint(Box<Totals>),
    Ended(Box<Outcome>),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub reason: EndReason,
    pub failure: Option<Failure>,
    /// Whether the clock had started before the run ended.
    pub started: bool,
    /// The counts since the last checkpoint.
    pub last: Totals,
    /// Events that a forced shutdown interrupted.
    pub unfinished: u64,
    /// Sum of the latencies of the unfinished events so far, in microseconds.
    pub unfinished_us: u64,
}

impl Outcome {
    /// Whether the report contains figures. The report of a failed run does not.
    pub fn has_figures(&self) -> bool {
        match self.reason {
            EndReason::TimeLimit | EndReason::EventLimit | EndReason::ForcedShutdown => true,
            // `Done` means that the test itself ended the run.
            EndReason::Interrupted | EndReason::Done => self.started,
            _ => false,
        }
    }
}

/// Adds up the intervals of a run until a report is due.
#[derive(Clone, Debug)]
pub struct Reader {
    interval_us: u64,
    checkpoints_us: Vec<u64>,
    started: bool,
    /// The counts since the last reported interval.
    interval: Totals,
    /// The counts since the last checkpoint.
    total: Totals,
    dry_run: bool,
}

impl Reader {
    /// In a dry run every statement counts as `other`, because sysbench cannot distinguish reads from writes without
    /// results.
    pub fn new(settings: &Settings, dry_run: bool) -> Self {
        let us = |&seconds: &u32| u64::from(seconds) * 1_000_000;
        Self {
            interval_us: us(&settings.report_interval_s),
            checkpoints_us: settings.checkpoints_s.iter().map(us).collect(),
            started: false,
            interval: Totals::default(),
            total: Totals::default(),
            dry_run,
        }
    }

    pub fn read(&mut self, record: &Record) -> Vec<Progress> {
        match record {
            Record::Phase(phase) => {
                self.interval = Totals::starting(phase.at_us, phase.at_us);
                self.total = self.interval.clone();
                if std::mem::replace(&mut self.started, true) { Vec::new() } else { vec![Progress::Started] }
            }
            Record::Interval(interval) if interval.phase == PhaseName::Measure => self.interval(interval),
            Record::End(end) => vec![Progress::Ended(Box::new(self.end(end)))],
            _ => Vec::new(),
        }
    }

    /// As in sysbench, a checkpoint is reported before the interval that ends at the same time.
    fn interval(&mut self, interval: &Interval) -> Vec<Progress> {
        for totals in [&mut self.interval, &mut self.total] {
            totals.add(interval);
            if self.dry_run {
                totals.other += std::mem::take(&mut totals.reads) + std::mem::take(&mut totals.writes);
            }
        }
        let next = Totals::starting(self.total.origin_us, interval.end_us);
        let at_us = interval.end_us.saturating_sub(next.origin_us);
        let mut progress = Vec::new();
        if self.checkpoints_us.contains(&at_us) {
            progress.push(Progress::Checkpoint(Box::new(std::mem::replace(&mut self.total, next.clone()))));
        }
        if self.interval_us != 0 && at_us.is_multiple_of(self.interval_us) {
            progress.push(Progress::Interval(Box::new(std::mem::replace(&mut self.interval, next))));
        }
        progress
    }

    fn end(&mut self, end: &End) -> Outcome {
        let measured = end.phases.get(&PhaseName::Measure).map(|totals| &totals.accounting);
        Outcome {
            reason: end.reason,
            failure: end.failure.clone(),
            started: self.started,
            last: std::mem::take(&mut self.total),
            unfinished: measured.map_or(0, |accounting| accounting.unfinished),
            unfinished_us: measured.map_or(0, |accounting| accounting.unfinished_us),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dbdyno_schema::record::{Counts, Phase, UserTotals};

    use super::*;
    use crate::Compat;
    use crate::testing::settings;

    fn reader() -> Reader {
        Reader::new(&settings(&[("report-interval", "2"), ("report-checkpoints", "3")], Compat::V1_0), false)
    }

    fn phase(name: PhaseName, at_us: u64) -> Record {
        Record::Phase(Phase { name, at_us, at_unix_us: 0 })
    }

    fn interval(phase: PhaseName, start_us: u64, end_us: u64, events: u64) -> Record {
        let errors = BTreeMap::from([("1213".to_owned(), 1), ("2013".to_owned(), 2)]);
        let counts = Counts { events, errors, ..Counts::default() };
        let empty = r#"{"seq":0,"phase":"measure","start_us":0,"end_us":0,"events":0,"reads":0,"writes":0,"other":0,
            "rows":0,"bytes":0,"errors":{},"retries":0,"reconnects":0,"late":0,"dropped":0,"row_count_mismatches":0,"latency_us":[],
            "service_us":[],"latency_sum_us":0,"latency_min_us":null,"latency_max_us":null,"percentiles_us":null,"backlog":0,
            "in_flight":0,"generator":{"cpu":0,"lag_us_max":0,"lag_us_p99":0,"steal":0,"run_queue_wait_us":0,
            "client_delay_us_p99":null}}"#;
        let empty: Interval = serde_json::from_str(empty).unwrap();
        let users = if end_us == 4_000_000 { vec![UserTotals::default()] } else { Vec::new() };
        Record::Interval(Box::new(Interval { phase, start_us, end_us, counts, users, ..empty }))
    }

    /// 1 s of warm-up, a line every 2 s, a checkpoint after 3 s that splits the second interval.
    #[test]
    fn split_intervals_are_merged_and_checkpoints_reset_totals() {
        let mut reader = reader();
        let second = 1_000_000;
        assert_eq!(reader.read(&phase(PhaseName::Warmup, 0)), [Progress::Started]);
        assert!(reader.read(&interval(PhaseName::Warmup, 0, second, 50)).is_empty());
        assert!(reader.read(&phase(PhaseName::Measure, second)).is_empty());
        let measured = |reader: &mut Reader, start_s, end_s, events| {
            reader.read(&interval(PhaseName::Measure, start_s * second, end_s * second, events))
        };
        let Progress::Interval(first) = &measured(&mut reader, 1, 3, 7)[0] else { panic!("no interval") };
        assert_eq!((first.at_s(), first.events, first.seconds()), (2.0, 7, 2.0));
        let Progress::Checkpoint(check) = &measured(&mut reader, 3, 4, 5)[0] else { panic!("no checkpoint") };
        assert_eq!((check.at_s(), check.events), (3.0, 12));
        assert_eq!(check.users.len(), 1, "users since the checkpoint before");
        assert_eq!(check.errors, 2, "lost connections are none");
        let Progress::Interval(second) = &measured(&mut reader, 4, 5, 2)[0] else { panic!("no interval") };
        assert_eq!((second.at_s(), second.events, second.seconds()), (4.0, 7, 2.0));
    }
}
