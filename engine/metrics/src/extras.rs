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

/// Totals of the users, by a user's index in the worker.
#[derive(Clone, Debug)]
struct Users {
    /// Fleet-wide numbers of the users.
    numbers: Vec<u64>,
    /// Totals since the last mark: a time in `report.marks_us`, or the end of a phase.
    part: Vec<User>,
    /// Totals from the start to the last mark.
    before: Vec<User>,
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
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
            part: vec![User::default(); numbers.len()],
            before: vec![User::default(); numbers.len()],
        });
        (buckets.is_some() || users.is_some()).then(|| Box::new(Self { buckets, users }))
    }

    /// An event of `user` completed without error.
    pub(crate) fn event(&mut self, user: usize, latency: Nanos) {
        if let Some(LogBuckets { scale, counts }) = &mut self.buckets {
            // Unlike the HDR histogram, this histogram does not round to microseconds.
            counts[scale.bucket(latency as f64 / 1e6)] += 1;
        }
        if let Some(user) = self.users.as_mut().and_then(|users| users.part.get_mut(user)) {
            user.event(latency);
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

    /// Numbers and totals of the users since the last mark; the next period begins now. Empty unless requested.
    pub(crate) fn take_users(&mut self) -> Vec<(u64, UserTotals)> {
        let Some(Users { numbers, part, before }) = &mut self.users else { return Vec::new() };
        let taken = numbers.iter().zip(part.iter()).map(|(&number, user)| (number, user.totals())).collect();
        for (before, part) in before.iter_mut().zip(part) {
            before.add(&std::mem::take(part));
        }
        taken
    }

    /// Numbers and totals of the users since the start; empty unless requested.
    pub(crate) fn users(&self) -> Vec<(u64, UserTotals)> {
        let Some(Users { numbers, part, before }) = &self.users else { return Vec::new() };
        let whole = before.iter().zip(part).map(|(before, part)| {
            let mut whole = *before;
            whole.add(part);
            whole.totals()
        });
        numbers.iter().copied().zip(whole).collect()
    }
}

impl User {
    fn event(&mut self, latency: Nanos) {
        self.min = if self.events == 0 { latency } else { self.min.min(latency) };
        self.max = self.max.max(latency);
        self.events += 1;
        self.busy += u128::from(latency);
    }

    fn add(&mut self, other: &User) {
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
    fn nothing_is_kept_that_nobody_asked_for() {
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
        // After a mark the count begins anew, and the whole goes on.
        extras.event(2, 1_000);
        assert_eq!(extras.users()[2].1.events, 3);
        assert_eq!((extras.users()[2].1.min_us, extras.users()[2].1.max_us), (Some(1.0), Some(3.0)));
        let part = extras.take_users();
        assert_eq!((part[2].1.events, part[2].1.max_us, part[0].1.min_us), (1, Some(1.0), None));
    }

    #[test]
    fn buckets_are_handed_over_once() {
        let mut extras = extras(true, false).unwrap();
        for latency in [0, 1_000, 1_000_000, 200_000_000_000] {
            extras.event(0, latency);
        }
        let middle = scale().bucket(1.0) as u16;
        assert_eq!(extras.take_buckets(), [(0, 2), (middle, 1), (1023, 1)]);
        assert_eq!(extras.take_buckets(), []);
    }
}
