//! A bell over the whole range: the mean of some uniform numbers.

use super::bates::bates;
use crate::Rng;

/// sysbench's gaussian: `low + floor(count * mean of n uniform numbers)`.
#[derive(Clone, Debug)]
pub struct Gaussian {
    low: u64,
    count: u64,
    iterations: u32,
}

impl Gaussian {
    pub(super) fn new(low: u64, high: u64, iterations: u32) -> Self {
        Self { low, count: high - low + 1, iterations }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        self.low + (self.count as f64 * bates(rng, self.iterations)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::exact::{assert_fits, bates_cdf};

    #[test]
    fn fits_its_probabilities() {
        let keys = Gaussian::new(1, 200, 12);
        let cdf = |id: u64| bates_cdf((id - 1) as f64 / 200.0, 12);
        assert_fits(|rng| keys.draw(rng), 1, 200, |id| cdf(id + 1) - cdf(id));
    }
}
