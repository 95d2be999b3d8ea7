//! What is counted of an event only where the plan asks for it: sysbench's buckets, and what each user did.

use dbdyno_door::log_buckets::{LogScale, SYSBENCH_BUCKETS};
use dbdyno_door::plan::Report;
use dbdyno_door::record::UserTotals;
use dbdyno_pace::Nanos;

/// The extras of one worker.
#[derive(Clone, Debug)]
pub(crate) struct Extras {
    buckets: Option<SysbenchBuckets>,
    /// By seat.
    users: Option<Vec<User>>,
}

#[derive(Clone, Debug)]
struct SysbenchBuckets {
    scale: LogScale,
    counts: Box<[u64; SYSBENCH_BUCKETS]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct User {
    events: u64,
    busy: u128,
    min: Nanos,
    max: Nanos,
}

impl Extras {
    /// What the plan asks for; `None` where that is nothing.
    pub(crate) fn new(report: &Report) -> Option<Box<Self>> {
        let buckets = report.sysbench_buckets.then(|| SysbenchBuckets {
            scale: LogScale::sysbench(),
            counts: Box::new([0; SYSBENCH_BUCKETS]),
        });
        let users = report.users.then(Vec::new);
        (buckets.is_some() || users.is_some()).then(|| Box::new(Self { buckets, users }))
    }

    /// An event of the user on `seat` ended well.
    pub(crate) fn event(&mut self, seat: usize, latency: Nanos) {
        if let Some(SysbenchBuckets { scale, counts }) = &mut self.buckets {
            // Not rounded to microseconds before, as sysbench does not.
            counts[scale.bucket(latency as f64 / 1e6)] += 1;
        }
        if let Some(users) = &mut self.users {
            if seat >= users.len() {
                users.resize(seat + 1, User::default());
            }
            users[seat].event(latency);
        }
    }

    /// Hands over the buckets counted since the last call, without the empty ones.
    pub(crate) fn take_buckets(&mut self) -> Vec<(u16, u64)> {
        let Some(SysbenchBuckets { counts, .. }) = &mut self.buckets else { return Vec::new() };
        let counted = counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        let taken = counted.map(|(bucket, &count)| (bucket as u16, count)).collect();
        counts.fill(0);
        taken
    }

    /// What the users on the seats from 0 to `seats` did; empty where nobody asked.
    pub(crate) fn users(&self, seats: usize) -> Vec<UserTotals> {
        let Some(users) = &self.users else { return Vec::new() };
        (0..seats).map(|seat| users.get(seat).map(User::totals).unwrap_or_default()).collect()
    }
}

impl User {
    fn event(&mut self, latency: Nanos) {
        self.min = if self.events == 0 { latency } else { self.min.min(latency) };
        self.max = self.max.max(latency);
        self.events += 1;
        self.busy += u128::from(latency);
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

    fn extras(sysbench_buckets: bool, users: bool) -> Option<Box<Extras>> {
        Extras::new(&Report { sysbench_buckets, users, ..Report::default() })
    }

    #[test]
    fn nothing_is_kept_that_nobody_asked_for() {
        assert!(extras(false, false).is_none());
        let mut users = extras(false, true).unwrap();
        users.event(0, 5_000);
        assert_eq!(users.take_buckets(), []);
        let mut buckets = extras(true, false).unwrap();
        buckets.event(0, 5_000);
        assert_eq!(buckets.users(1), []);
    }

    #[test]
    fn every_user_has_its_own_totals() {
        let mut extras = extras(false, true).unwrap();
        for (seat, latency) in [(2, 3_000), (0, 7_000), (2, 1_500)] {
            extras.event(seat, latency);
        }
        let totals = extras.users(4);
        assert_eq!((totals[2].events, totals[2].busy_us), (2, 4.5));
        assert_eq!((totals[2].min_us, totals[2].max_us), (Some(1.5), Some(3.0)));
        assert_eq!((totals[0].events, totals[0].min_us), (1, Some(7.0)));
        assert_eq!((&totals[1], &totals[3]), (&UserTotals::default(), &UserTotals::default()));
    }

    #[test]
    fn buckets_are_handed_over_once() {
        let mut extras = extras(true, false).unwrap();
        for latency in [0, 1_000, 1_000_000, 200_000_000_000] {
            extras.event(0, latency);
        }
        let middle = LogScale::sysbench().bucket(1.0) as u16;
        assert_eq!(extras.take_buckets(), [(0, 2), (middle, 1), (1023, 1)]);
        assert_eq!(extras.take_buckets(), []);
    }
}
