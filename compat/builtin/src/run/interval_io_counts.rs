//! Reads, writes and their bytes for each interval. Records have only the sum of read and written bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::test::IoCounts;

/// The I/O counts of the intervals, by the end of the interval in microseconds. The coordinator adds an interval before
/// it writes the record of the interval.
#[derive(Clone, Debug, Default)]
pub struct IntervalIoCounts(Arc<Mutex<BTreeMap<u64, IoCounts>>>);

impl IntervalIoCounts {
    pub(super) fn add(&self, end_us: u64, io: IoCounts) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(end_us).or_default() += io;
    }

    /// The sum of the intervals that ended after `start_us` and until `end_us`.
    pub fn between(&self, start_us: u64, end_us: u64) -> IoCounts {
        let mut sum = IoCounts::default();
        if start_us < end_us {
            let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ended.range(start_us + 1..=end_us).for_each(|(_, io)| sum += *io);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_belongs_to_the_period_in_which_it_ended() {
        let counts = IntervalIoCounts::default();
        for (end_us, reads) in [(10, 1), (20, 2), (30, 4)] {
            counts.add(end_us, IoCounts { reads, ..IoCounts::default() });
        }
        let reads = |start_us, end_us| counts.between(start_us, end_us).reads;
        assert_eq!(
            (reads(0, 30), reads(10, 20), reads(20, 40), reads(30, 30), reads(30, 0)),
            (7, 2, 4, 0, 0)
        );
    }
}
