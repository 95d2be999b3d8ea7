//! Every id equally often.

use crate::Rng;

/// The uniform distribution.
#[derive(Clone, Debug)]
pub struct Uniform {
    low: u64,
    count: u64,
}

impl Uniform {
    pub(super) fn new(low: u64, high: u64) -> Self {
        Self { low, count: high - low + 1 }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        self.low + rng.below(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::exact::assert_fits;

    #[test]
    fn fits_its_probabilities() {
        let keys = Uniform::new(5, 104);
        assert_fits(|rng| keys.draw(rng), 5, 104, |_| 0.01);
    }
}
