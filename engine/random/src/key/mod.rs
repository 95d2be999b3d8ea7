//! Which row a statement asks for: one file per distribution, under sysbench's names and definitions.
//!
//! Every distribution draws integers from `low` to `high`, both included.

mod bates;
mod distribution;
mod gaussian;
mod pareto;
mod special;
mod uniform;
mod zipfian;

use crate::Rng;
pub use distribution::Distribution;
pub use gaussian::Gaussian;
pub use pareto::Pareto;
pub use special::Special;
pub use uniform::Uniform;
pub use zipfian::Zipfian;

/// A distribution over a range of ids.
#[derive(Clone, Debug)]
pub enum Keys {
    /// Every id equally often.
    Uniform(Uniform),
    /// A bell over the whole range.
    Gaussian(Gaussian),
    /// A hot band in the middle.
    Special(Special),
    /// The lowest ids hottest, by a power law of the position.
    Pareto(Pareto),
    /// The lowest ids hottest, by Zipf's law.
    Zipfian(Zipfian),
}

impl Keys {
    /// The distribution over `low..=high`; `high` must not be below `low`.
    pub fn new(distribution: &Distribution, low: u64, high: u64) -> Self {
        assert!(low <= high, "a range from {low} to {high}");
        match *distribution {
            Distribution::Uniform => Keys::Uniform(Uniform::new(low, high)),
            Distribution::Gaussian { iterations } => Keys::Gaussian(Gaussian::new(low, high, iterations)),
            Distribution::Special { iterations, percent, hot_percent } => {
                Keys::Special(Special::new(low, high, iterations, percent, hot_percent))
            }
            Distribution::Pareto { h } => Keys::Pareto(Pareto::new(low, high, h)),
            Distribution::Zipfian { exponent } => Keys::Zipfian(Zipfian::new(low, high, exponent)),
        }
    }

    /// One id.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Keys::Uniform(keys) => keys.draw(rng),
            Keys::Gaussian(keys) => keys.draw(rng),
            Keys::Special(keys) => keys.draw(rng),
            Keys::Pareto(keys) => keys.draw(rng),
            Keys::Zipfian(keys) => keys.draw(rng),
        }
    }
}

#[cfg(test)]
pub(crate) mod exact {
    //! Holds a distribution to its exact probabilities.

    use super::*;

    const DRAWS: u32 = 200_000;

    /// Chi-square of 200,000 draws against `probability(low..=high)`. Ids expected fewer than 10 times share a
    /// cell. The bound is the 99.99 % point of chi-square by Wilson and Hilferty (1931).
    pub(crate) fn assert_fits(
        mut draw: impl FnMut(&mut Rng) -> u64,
        low: u64,
        high: u64,
        probability: impl Fn(u64) -> f64,
    ) {
        let mut rng = Rng::new(42, &[]);
        let mut seen = vec![0u32; (high - low + 1) as usize];
        for _ in 0..DRAWS {
            let id = draw(&mut rng);
            assert!((low..=high).contains(&id), "{id} is outside {low} to {high}");
            seen[(id - low) as usize] += 1;
        }
        let total: f64 = (low..=high).map(&probability).sum();
        assert!((total - 1.0).abs() < 1e-9, "the probabilities add up to {total}");
        let (mut chi_square, mut cells) = (0.0, 0u32);
        let (mut expected, mut counted) = (0.0, 0.0);
        for id in low..=high {
            expected += probability(id) * f64::from(DRAWS);
            counted += f64::from(seen[(id - low) as usize]);
            if expected >= 10.0 {
                chi_square += (counted - expected).powi(2) / expected;
                cells += 1;
                (expected, counted) = (0.0, 0.0);
            }
        }
        let freedom = f64::from(cells - 1);
        let ninth = 2.0 / (9.0 * freedom);
        let bound = freedom * (1.0 - ninth + 3.719 * ninth.sqrt()).powi(3);
        assert!(chi_square < bound, "chi-square {chi_square:.1} over {cells} cells, bound {bound:.1}");
    }

    /// Distribution function of the Bates distribution of `n` uniform numbers (Irwin and Hall, 1927).
    pub(crate) fn bates_cdf(x: f64, n: u32) -> f64 {
        let (sum, mut binomial, mut cdf) = (x.clamp(0.0, 1.0) * f64::from(n), 1.0, 0.0);
        let factorial: f64 = (1..=n).map(f64::from).product();
        for k in 0..=n {
            if f64::from(k) > sum {
                break;
            }
            let sign = if k % 2 == 0 { 1.0 } else { -1.0 };
            cdf += sign * binomial * (sum - f64::from(k)).powi(n as i32) / factorial;
            binomial *= f64::from(n - k) / f64::from(k + 1);
        }
        cdf.clamp(0.0, 1.0)
    }
}
