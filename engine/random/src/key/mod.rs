//! Distributions of the row ids in statements, under sysbench's names and definitions.
//!
//! Every distribution generates integers from `low` to `high`, inclusive.

mod distribution;
mod special;
mod zipfian;

use self::special::{Special, bates};
use self::zipfian::Zipfian;
use crate::Rng;
use crate::permutation::RangePermutation;
pub use distribution::Distribution;

/// A distribution over a range of ids.
#[derive(Clone, Debug)]
pub struct Keys {
    low: u64,
    count: u64,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Gaussian {
        iterations: u32,
    },
    Special(Special),
    /// Pareto distribution with the exponent ln h / ln(1 - h): a share h of the ids gets a share 1 - h of the accesses.
    Pareto {
        exponent: f64,
    },
    Zipfian(Zipfian),
    Scattered(Zipfian, RangePermutation),
    Nurand {
        a: u64,
        c: u64,
    },
}

/// Seed of the permutation of scattered ids: the load of two variants has the same hot ids.
const SCATTERED_SEED: u64 = 0;

impl Keys {
    /// A distribution over `low..=high`, and the number to add to each id. Only `nurand` depends on the ids themselves, so
    /// only its range must not be below 0.
    pub fn with_offset(distribution: &Distribution, low: i64, high: i64) -> (Self, i64) {
        match distribution {
            Distribution::Nurand { .. } => (Self::new(distribution, low as u64, high as u64), 0),
            _ => (Self::new(distribution, 0, high.abs_diff(low)), low),
        }
    }

    /// A distribution over `low..=high`; `high` must not be below `low`.
    pub fn new(distribution: &Distribution, low: u64, high: u64) -> Self {
        assert!(low <= high, "a range from {low} to {high}");
        let count = high - low + 1;
        let kind = match *distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Gaussian { iterations } => Kind::Gaussian { iterations },
            Distribution::Special { iterations, percent, hot_percent } => {
                Kind::Special(Special::new(count, iterations, percent, hot_percent))
            }
            Distribution::Pareto { h } => Kind::Pareto { exponent: h.ln() / (1.0 - h).ln() },
            Distribution::Zipfian { exponent, scattered: false } => {
                Kind::Zipfian(Zipfian::new(count, exponent))
            }
            Distribution::Zipfian { exponent, scattered: true } => {
                let permutation = RangePermutation::new(SCATTERED_SEED, count);
                Kind::Scattered(Zipfian::new(count, exponent), permutation)
            }
            Distribution::Nurand { a, c } => Kind::Nurand { a, c },
        };
        Self { low, count, kind }
    }

    /// A random id.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let offset = match &self.kind {
            Kind::Uniform => rng.below(self.count),
            Kind::Gaussian { iterations } => (self.count as f64 * bates(rng, *iterations)) as u64,
            Kind::Special(special) => special.draw(rng),
            Kind::Pareto { exponent } => (self.count as f64 * rng.unit().powf(*exponent)) as u64,
            Kind::Zipfian(zipfian) => zipfian.draw(rng),
            Kind::Scattered(zipfian, permutation) => permutation.at(zipfian.draw(rng)),
            Kind::Nurand { a, c } => {
                let combined = rng.below(a + 1) | (self.low + rng.below(self.count));
                (combined + c) % self.count
            }
        };
        self.low + offset
    }
}

#[cfg(test)]
mod tests {
    use super::goodness_of_fit::{assert_fits, bates_cdf};
    use super::*;

    #[test]
    fn uniform_fits_its_probabilities() {
        let keys = Keys::new(&Distribution::Uniform, 5, 104);
        assert_fits(|rng| keys.draw(rng), 5, 104, |_| 0.01);
    }

    #[test]
    fn gaussian_fits_its_probabilities() {
        let keys = Keys::new(&Distribution::Gaussian { iterations: 12 }, 1, 200);
        let cdf = |id: u64| bates_cdf((id - 1) as f64 / 200.0, 12);
        assert_fits(|rng| keys.draw(rng), 1, 200, |id| cdf(id + 1) - cdf(id));
    }

    #[test]
    fn pareto_fits_its_probabilities() {
        let keys = Keys::new(&Distribution::Pareto { h: 0.2 }, 1, 500);
        let cdf = |id: u64| ((id - 1) as f64 / 500.0).powf((0.8f64).ln() / (0.2f64).ln());
        assert_fits(|rng| keys.draw(rng), 1, 500, |id| cdf(id + 1) - cdf(id));
    }

    #[test]
    fn nurand_fits_its_probabilities() {
        let (a, c, low, high) = (7u64, 5u64, 1u64, 30u64);
        let keys = Keys::new(&Distribution::Nurand { a, c }, low, high);
        let ways = |id: u64| {
            let pairs = (0..=a).flat_map(|x| (low..=high).map(move |y| ((x | y) + c) % 30 + low));
            pairs.filter(|found| *found == id).count()
        };
        assert_fits(|rng| keys.draw(rng), low, high, |id| ways(id) as f64 / (8.0 * 30.0));
        let (keys, offset) = Keys::with_offset(&Distribution::Nurand { a: 255, c: 0 }, 0, 999);
        assert_eq!((offset, keys.low), (0, 0));
    }

    #[test]
    fn an_offset_moves_the_range_of_ids() {
        for distribution in [Distribution::Uniform, Distribution::Pareto { h: 0.2 }] {
            let (keys, offset) = Keys::with_offset(&distribution, -5, -2);
            let mut rng = Rng::new(1, &[]);
            let ids: std::collections::BTreeSet<i64> =
                (0..200).map(|_| keys.draw(&mut rng) as i64 + offset).collect();
            assert_eq!(ids.into_iter().collect::<Vec<_>>(), [-5, -4, -3, -2]);
        }
    }

    #[test]
    fn with_h_0_2_a_fifth_of_the_ids_gets_four_fifths_of_the_accesses() {
        let keys = Keys::new(&Distribution::Pareto { h: 0.2 }, 1, 1000);
        let mut rng = Rng::new(1, &[]);
        let hot = (0..10_000).filter(|_| keys.draw(&mut rng) <= 200).count();
        assert!((7850..8150).contains(&hot), "{hot}");
    }
}

#[cfg(test)]
pub(crate) mod goodness_of_fit {
    //! Compares the draws of a distribution with its exact probabilities.

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
