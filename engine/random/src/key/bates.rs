//! The bell that two distributions are made of.

use crate::Rng;

/// The mean of `count` uniform numbers: a Bates distribution, close to a bell from some six on.
#[inline]
pub(super) fn bates(rng: &mut Rng, count: u32) -> f64 {
    (0..count).map(|_| rng.unit()).sum::<f64>() / f64::from(count)
}
