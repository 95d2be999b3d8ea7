//! Additional counters, for programs that embed the engine.

use dbdyno_load::Nanos;
use dbdyno_schema::log_buckets::LogScale;
use dbdyno_schema::record::UserTotals;

/// Which additional counters to keep.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExtraCounts {
    /// A second histogram of latencies in milliseconds, with the buckets of this scale.
    pub log_buckets: Option<LogScale>,
    /// Whether to keep totals of each user.
    pub users: bool,
}

/// The additional counters of one worker.
#[derive(Clone, Debug)]
pub(crate) struct ExtraCounters {
    buckets: Option<LogBuckets>,
    users: Option<Users>,
}

#[derive(Clone, Debug)]
struct LogBuckets {
    scale: LogScale,
    counts: Box<[u64]>,
}

/// Counters of the users, by a user's index in the worker.
#[derive(Clone, Debug)]
struct Users {
    /// Numbers of the users, counted over all engines of the run.
    numbers: Vec<u64>,
    /// Counters since the last mark: a time in `report.marks_us`, or the end of a phase.
    since_mark: Vec<UserCounters>,
    /// Counters from the start to the last mark.
    before_mark: Vec<UserCounters>,
}

#[derive(Clone, Copy, Debug, Default)]
struct UserCounters {
    events: u64,
    busy: u128,
    min: Nanos,
    max: Nanos,
}

impl ExtraCounters {
    /// `None` if no counters are requested.
    pub(crate) fn new(requested: &ExtraCounts, numbers: &[u64]) -> Option<Box<Self>> {
        let buckets = requested
            .log_buckets
            .map(|scale| LogBuckets { scale, counts: vec![0; scale.buckets()].into_boxed_slice() });
        let users = requested.users.then(|| Users {
            numbers: numbers.to_vec(),
            since_mark: vec![UserCounters::default(); numbers.len()],
            before_mark: vec![UserCounters::default(); numbers.len()],
        });
        (buckets.is_some() || users.is_some()).then(|| Box::new(Self { buckets, users }))
    }

    /// An event of `user` completed without error.
    pub(crate) fn event(&mut self, user: usize, latency: Nanos) {
        if let Some(LogBuckets { scale, counts }) = &mut self.buckets {
            // Unlike the HDR histogram, this histogram does not round to microseconds.
            counts[scale.bucket(latency as f64 / 1e6)] += 1;
        }
        if let Some(user) = self.users.as_mut().and_then(|users| users.since_mark.get_mut(user)) {
            user.count_event(latency);
        }
    }

    /// The non-empty buckets counted since the last call.
    pub(crate) fn take_buckets(&mut self) -> Vec<(u16, u64)> {
        let Some(LogBuckets { counts, .. }) = &mut self.buckets else { return Vec::new() };
        let counted = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        let taken = counted.map(|(bucket, &count)| (bucket as u16, count)).collect();
        counts.fill(0);
        taken
    }

    /// Returns numbers and totals of the users since the last mark, and sets a new mark. Empty unless requested.
    pub(crate) fn take_users(&mut self) -> Vec<(u64, UserTotals)> {
        let Some(Users { numbers, since_mark, before_mark }) = &mut self.users else { return Vec::new() };
        let taken =
            numbers.iter().zip(since_mark.iter()).map(|(&number, user)| (number, user.totals())).collect();
        for (before, since) in before_mark.iter_mut().zip(since_mark) {
            before.add(&std::mem::take(since));
        }
        taken
    }

    /// Numbers and totals of the users since the start; empty unless requested.
    pub(crate) fn users(&self) -> Vec<(u64, UserTotals)> {
        let Some(Users { numbers, since_mark, before_mark }) = &self.users else { return Vec::new() };
        let totals = before_mark.iter().zip(since_mark).map(|(before, since)| {
            let mut sum = *before;
            sum.add(since);
            sum.totals()
        });
        numbers.iter().copied().zip(totals).collect()
    }
}

impl UserCounters {
    fn count_event(&mut self, latency: Nanos) {
        self.min = if self.events == 0 { latency } else { self.min.min(latency) };
        self.max = self.max.max(latency);
        self.events += 1;
        self.busy += u128::from(latency);
    }

    fn add(&mut self, other: &UserCounters) {
        if other.events == 0 {
            return;
        }
        self.min = if self.events == 0 { other.min } else { self.min.min(other.min) };
        self.max = self.max.max(other.max);
        self.events += other.events;
        self.busy += other.busy;
    }

    fn totals(&self) -> UserTotals {
        let us = |time: Nanos| (self.events > 0).then(|| time as f64 / 1000.0);
        UserTotals {
            events: self.events,
            busy_us: self.busy as f64 / 1000.0,
            min_us: us(self.min),
            max_us: us(self.max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale() -> LogScale {
        LogScale::new(1024, 0.001, 100_000.0)
    }

    fn extras(log_buckets: bool, users: bool) -> Option<Box<ExtraCounters>> {
        let log_buckets = log_buckets.then(scale);
        ExtraCounters::new(&ExtraCounts { log_buckets, users }, &[10, 20, 30, 40])
    }

    #[test]
    fn only_requested_counters_are_kept() {
        assert!(extras(false, false).is_none());
        let mut users = extras(false, true).unwrap();
        users.event(0, 5_000);
        assert_eq!(users.take_buckets(), []);
        let mut buckets = extras(true, false).unwrap();
        buckets.event(0, 5_000);
        assert_eq!((buckets.users(), buckets.take_users()), (vec![], vec![]));
    }

    #[test]
    fn every_user_has_its_own_totals() {
        let mut extras = extras(false, true).unwrap();
        for (user, latency) in [(2, 3_000), (0, 7_000), (2, 1_500)] {
            extras.event(user, latency);
        }
        let taken = extras.take_users();
        assert_eq!(taken.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [10, 20, 30, 40]);
        assert_eq!((taken[2].1.events, taken[2].1.busy_us), (2, 4.5));
        assert_eq!((taken[2].1.min_us, taken[2].1.max_us), (Some(1.5), Some(3.0)));
        assert_eq!((taken[0].1.events, taken[0].1.min_us), (1, Some(7.0)));
        assert_eq!((&taken[1].1, &taken[3].1), (&UserTotals::default(), &UserTotals::default()));
        // After a mark, the counters since the mark restart, and those since the start do not.
        extras.event(2, 1_000);
        assert_eq!(extras.users()[2].1.events, 3);
        assert_eq!((extras.users()[2].1.min_us, extras.users()[2].1.max_us), (Some(1.0), Some(3.0)));
        let part = extras.take_users();
        assert_eq!((part[2].1.events, part[2].1.max_us, part[0].1.min_us), (1, Some(1.0), None));
    }

    #[test]
    fn buckets_are_returned_once() {
        let mut extras = extras(true, false).unwrap();
        for latency in [0, 1_000, 1_000_000, 200_000_000_000] {
            extras.event(0, latency);
        }
        let middle = scale().bucket(1.0) as u16;
        assert_eq!(extras.take_buckets(), [(0, 2), (middle, 1), (1023, 1)]);
        assert_eq!(extras.take_buckets(), []);
    }
}
