//! A cache of distributions over ranges of numbers, because some distributions are costly to initialize.

use std::cell::RefCell;

use dbdyno_random::Rng;
use dbdyno_random::key::Keys;
use dbdyno_schema::plan::Distribution;

/// The last range used with each costly distribution, because scripts use the same range of ids repeatedly.
#[derive(Default)]
pub(crate) struct RangeCache([RefCell<Option<Range>>; 3]);

struct Range {
    low: u32,
    count: u64,
    keys: Keys,
}

/// Indexes into [`RangeCache`].
#[derive(Clone, Copy)]
pub(super) enum CachedDistribution {
    Default,
    Pareto,
    Zipfian,
}

impl RangeCache {
    pub(super) fn draw(
        &self,
        entry: CachedDistribution,
        distribution: &Distribution,
        low: u32,
        count: u64,
        rng: &mut Rng,
    ) -> u64 {
        let mut range = self.0[entry as usize].borrow_mut();
        match &*range {
            Some(range) if range.low == low && range.count == count => range.keys.draw(rng),
            _ => range
                .insert(Range { low, count, keys: distribution_over(distribution, low, count) })
                .keys
                .draw(rng),
        }
    }
}

/// The distribution over the `count` numbers that begin with `low`.
pub(super) fn distribution_over(distribution: &Distribution, low: u32, count: u64) -> Keys {
    Keys::new(distribution, low.into(), u64::from(low) + count - 1)
}
