//! Reads, writes and their bytes per interval. The records do not distinguish read and written bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::test::Work;

/// The counts of each interval by its end in microseconds. The conductor adds an interval before it writes the
/// interval's record.
#[derive(Clone, Debug, Default)]
pub struct IntervalWork(Arc<Mutex<BTreeMap<u64, Work>>>);

impl IntervalWork {
    pub(super) fn add(&self, end_us: u64, work: Work) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(end_us).or_default() += work;
    }

    /// The sum of the intervals that ended after `start_us` and not after `end_us`.
    pub fn between(&self, start_us: u64, end_us: u64) -> Work {
        let mut sum = Work::default();
        if start_us < end_us {
            let ended = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            ended.range(start_us + 1..=end_us).for_each(|(_, work)| sum += *work);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_belongs_to_the_part_in_which_it_ended() {
        let work = IntervalWork::default();
        for (end_us, reads) in [(10, 1), (20, 2), (30, 4)] {
            work.add(end_us, Work { reads, ..Work::default() });
        }
        let reads = |start_us, end_us| work.between(start_us, end_us).reads;
        assert_eq!(
            (reads(0, 30), reads(10, 20), reads(20, 40), reads(30, 30), reads(30, 0)),
            (7, 2, 4, 0, 0)
        );
    }
}
