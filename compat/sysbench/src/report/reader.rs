//! What a record means to those who report.

use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, Failure, Interval, PhaseName};

use super::super::settings::Settings;
use super::tally::Tally;

/// Something to tell.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// Every user is ready, and the clock runs.
    Started,
    /// An interval of the length that was asked for is over.
    Interval(Box<Stretch>),
    /// It is time for a full report; what is counted from here on begins at 0.
    Checkpoint(Box<Stretch>),
    /// The run is over.
    Ended(Box<Outcome>),
}

/// What was counted since the last report of its kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stretch {
    /// From the beginning of the measurement to the end of this, in microseconds.
    pub at_us: u64,
    /// The figures.
    pub tally: Tally,
}

impl Stretch {
    /// From the beginning of the measurement to the end of this, in seconds.
    pub fn at_s(&self) -> f64 {
        self.at_us as f64 / 1e6
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why.
    pub reason: EndReason,
    /// The error, where there was one.
    pub failure: Option<Failure>,
    /// Whether the clock had started.
    pub started: bool,
    /// What was counted since the last checkpoint.
    pub last: Stretch,
    /// Events that were under way when the run was ended by force.
    pub unfinished: u64,
    /// How long these had been due by then, all together, in microseconds.
    pub unfinished_us: u64,
}

impl Outcome {
    /// Whether its figures are told: a run that failed has none.
    pub fn is_told(&self) -> bool {
        match self.reason {
            EndReason::TimeLimit | EndReason::EventLimit | EndReason::ForcedShutdown => true,
            // A test that knows its own end is done with it.
            EndReason::Interrupted | EndReason::Done => self.started,
            _ => false,
        }
    }
}

/// Turns records into news.
#[derive(Clone, Debug)]
pub struct Reader {
    interval_us: u64,
    checkpoints_us: Vec<u64>,
    /// When the first phase began.
    started: bool,
    /// When the measurement began.
    start_us: u64,
    /// Since the last interval that was told.
    interval: Tally,
    /// Since the last checkpoint.
    total: Tally,
    /// Whether no statement is known for a read or a write.
    dry_run: bool,
}

impl Reader {
    /// For the intervals and checkpoints that are asked for. In a dry run every statement is an `other` one, as nothing
    /// comes back by which to tell.
    pub fn new(settings: &Settings, dry_run: bool) -> Self {
        let us = |&seconds: &u32| u64::from(seconds) * 1_000_000;
        Self {
            interval_us: us(&settings.report_interval_s),
            checkpoints_us: settings.checkpoints_s.iter().map(us).collect(),
            started: false,
            start_us: 0,
            interval: Tally::default(),
            total: Tally::default(),
            dry_run,
        }
    }

    /// What there is to tell after one more record.
    pub fn read(&mut self, record: &Record) -> Vec<News> {
        match record {
            Record::Phase(phase) => {
                self.start_us = phase.at_us;
                self.interval = Tally::from(phase.at_us);
                self.total = Tally::from(phase.at_us);
                if std::mem::replace(&mut self.started, true) { Vec::new() } else { vec![News::Started] }
            }
            Record::Interval(interval) if interval.phase == PhaseName::Measure => self.interval(interval),
            Record::End(end) => vec![News::Ended(Box::new(self.end(end)))],
            _ => Vec::new(),
        }
    }

    /// A checkpoint is told before the interval that ends with it.
    fn interval(&mut self, interval: &Interval) -> Vec<News> {
        for tally in [&mut self.interval, &mut self.total] {
            tally.add(interval);
            if self.dry_run {
                tally.other += std::mem::take(&mut tally.reads) + std::mem::take(&mut tally.writes);
            }
        }
        let at_us = interval.end_us.saturating_sub(self.start_us);
        let mut news = Vec::new();
        if self.checkpoints_us.contains(&at_us) {
            let tally = std::mem::replace(&mut self.total, Tally::from(interval.end_us));
            news.push(News::Checkpoint(Box::new(Stretch { at_us, tally })));
        }
        if self.interval_us != 0 && at_us.is_multiple_of(self.interval_us) {
            let tally = std::mem::replace(&mut self.interval, Tally::from(interval.end_us));
            news.push(News::Interval(Box::new(Stretch { at_us, tally })));
        }
        news
    }

    fn end(&mut self, end: &End) -> Outcome {
        let tally = std::mem::take(&mut self.total);
        let measured = end.phases.get(&PhaseName::Measure);
        let at_us = tally.end_us.saturating_sub(self.start_us);
        let accounting = measured.map(|totals| totals.accounting.clone()).unwrap_or_default();
        Outcome {
            reason: end.reason,
            failure: end.failure.clone(),
            started: self.started,
            last: Stretch { at_us, tally },
            unfinished: accounting.unfinished,
            unfinished_us: accounting.unfinished_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dbdyno_schema::record::{Counts, Phase, UserTotals};

    use super::*;
    use crate::Compat;
    use crate::registry::Registry;

    fn reader() -> Reader {
        let mut registry = Registry::new(Compat::V10);
        registry.set("report-interval", Some("2")).unwrap();
        registry.set("report-checkpoints", Some("3")).unwrap();
        Reader::new(&Settings::read(&registry, Compat::V10).unwrap(), false)
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
    fn intervals_are_put_together_again_and_checkpoints_begin_anew() {
        let mut reader = reader();
        let second = 1_000_000;
        assert_eq!(reader.read(&phase(PhaseName::Warmup, 0)), [News::Started]);
        assert!(reader.read(&interval(PhaseName::Warmup, 0, second, 50)).is_empty());
        assert!(reader.read(&phase(PhaseName::Measure, second)).is_empty());
        let measured = |reader: &mut Reader, start_s, end_s, events| {
            reader.read(&interval(PhaseName::Measure, start_s * second, end_s * second, events))
        };
        let News::Interval(first) = &measured(&mut reader, 1, 3, 7)[0] else { panic!("no interval") };
        assert_eq!((first.at_s(), first.tally.events, first.tally.seconds()), (2.0, 7, 2.0));
        let News::Checkpoint(check) = &measured(&mut reader, 3, 4, 5)[0] else { panic!("no checkpoint") };
        assert_eq!((check.at_s(), check.tally.events), (3.0, 12));
        assert_eq!(check.tally.users.len(), 1, "users since the checkpoint before");
        assert_eq!(check.tally.errors, 2, "lost connections are none");
        let News::Interval(second) = &measured(&mut reader, 4, 5, 2)[0] else { panic!("no interval") };
        assert_eq!((second.at_s(), second.tally.events, second.tally.seconds()), (4.0, 7, 2.0));
    }
}
