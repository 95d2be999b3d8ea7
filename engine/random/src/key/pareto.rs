//! The lowest ids hottest: with h = 0.2 a fifth of the ids gets four fifths of the draws.

use crate::Rng;

/// sysbench's pareto: `low + floor(count * U^(ln h / ln(1 - h)))`.
#[derive(Clone, Debug)]
pub struct Pareto {
    low: u64,
    count: u64,
    power: f64,
}

impl Pareto {
    pub(super) fn new(low: u64, high: u64, h: f64) -> Self {
        Self { low, count: high - low + 1, power: h.ln() / (1.0 - h).ln() }
    }

    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        self.low + (self.count as f64 * rng.unit().powf(self.power)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::exact::assert_fits;

    #[test]
    fn fits_its_probabilities() {
        let keys = Pareto::new(1, 500, 0.2);
        let cdf = |id: u64| ((id - 1) as f64 / 500.0).powf((0.8f64).ln() / (0.2f64).ln());
        assert_fits(|rng| keys.draw(rng), 1, 500, |id| cdf(id + 1) - cdf(id));
    }

    #[test]
    fn a_fifth_gets_four_fifths() {
        let keys = Pareto::new(1, 1000, 0.2);
        let mut rng = Rng::new(1, &[]);
        let hot = (0..10_000).filter(|_| keys.draw(&mut rng) <= 200).count();
        assert!((7850..8150).contains(&hot), "{hot}");
    }
}
