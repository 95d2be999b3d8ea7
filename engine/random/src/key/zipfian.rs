//! Zipf's law: the frequency of id k is proportional to 1 / k^exponent.
//!
//! Method: rejection-inversion (Hörmann and Derflinger, 1996, "Rejection-inversion to generate variates from
//! monotone discrete distributions", ACM TOMACS 6:169). It is exact, needs no table, and takes constant time for any
//! exponent and any number of ids.

use crate::Rng;

/// Zipf's distribution; the lowest id is the hottest.
#[derive(Clone, Debug)]
pub(super) struct Zipfian {
    count: f64,
    exponent: f64,
    /// H(1.5) - 1.
    first: f64,
    /// H(count + 0.5).
    last: f64,
    /// 2 - H⁻¹(H(2.5) - h(2)): a candidate k with k - x up to this value is accepted without the second test.
    accept_max: f64,
}

impl Zipfian {
    pub(super) fn new(count: u64, exponent: f64) -> Self {
        let mut keys = Self { count: count as f64, exponent, first: 0.0, last: 0.0, accept_max: 0.0 };
        keys.first = keys.integral(1.5) - 1.0;
        keys.last = keys.integral(keys.count + 0.5);
        keys.accept_max = 2.0 - keys.inverse(keys.integral(2.5) - keys.weight(2.0));
        keys
    }

    /// A random id, counted from 0.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let u = self.last + rng.unit() * (self.first - self.last);
            let x = self.inverse(u);
            let k = (x + 0.5).floor().clamp(1.0, self.count);
            if k - x <= self.accept_max || u >= self.integral(k + 0.5) - self.weight(k) {
                return k as u64 - 1;
            }
        }
    }

    /// h(x) = x^-exponent.
    fn weight(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// H(x), the integral of h from 1 to x: (x^(1-e) - 1) / (1-e), and ln x for e = 1.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over(log * (1.0 - self.exponent)) * log
    }

    /// The inverse of H.
    fn inverse(&self, u: f64) -> f64 {
        // Rounding can make the argument slightly less than -1, where the logarithm is undefined.
        let t = (u * (1.0 - self.exponent)).max(-1.0);
        (ln1p_over(t) * u).exp()
    }
}

/// (e^x - 1) / x, accurate for x near 0 too.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// ln(1 + x) / x, accurate for x near 0 too.
fn ln1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use crate::Rng;
    use crate::key::goodness_of_fit::assert_fits;
    use crate::key::{Distribution, Keys, SCATTERED_SEED};
    use crate::permutation::RangePermutation;

    #[test]
    fn fits_its_probabilities_for_every_exponent() {
        for exponent in [0.0, 0.5, 0.8, 0.99, 1.0, 1.5, 3.0] {
            let keys = Keys::new(&Distribution::Zipfian { exponent, scattered: false }, 1, 300);
            let total: f64 = (1..=300).map(|k| f64::from(k).powf(-exponent)).sum();
            assert_fits(|rng| keys.draw(rng), 1, 300, |id| (id as f64).powf(-exponent) / total);
        }
    }

    #[test]
    fn one_id_is_always_drawn() {
        for scattered in [false, true] {
            let keys = Keys::new(&Distribution::Zipfian { exponent: 0.8, scattered }, 7, 7);
            assert_eq!(keys.draw(&mut Rng::new(1, &[])), 7);
        }
    }

    #[test]
    fn scattered_ids_have_the_same_probabilities_in_another_order() {
        let keys = Keys::new(&Distribution::Zipfian { exponent: 0.99, scattered: true }, 1, 300);
        // The popularity of an id is that of its place in the order.
        let mut places = [0u32; 300];
        let permutation = RangePermutation::new(SCATTERED_SEED, 300);
        (0..300).for_each(|place| places[permutation.at(place) as usize] = place as u32 + 1);
        let total: f64 = (1..=300).map(|k| f64::from(k).powf(-0.99)).sum();
        let probability = |id: u64| f64::from(places[id as usize - 1]).powf(-0.99) / total;
        assert_fits(|rng| keys.draw(rng), 1, 300, probability);
    }

    #[test]
    fn the_hottest_scattered_ids_are_no_neighbours() {
        // The 1,000 hottest of 1,000,000 ids: chi-square over 20 cells; 51.0 is the 99.99 % point for 19 degrees of freedom.
        let permutation = RangePermutation::new(SCATTERED_SEED, 1_000_000);
        let mut hottest: Vec<u64> = (0..1000).map(|place| permutation.at(place)).collect();
        let mut cells = [0i64; 20];
        hottest.iter().for_each(|id| cells[(id / 50_000) as usize] += 1);
        let chi_square: i64 = cells.iter().map(|seen| (seen - 50).pow(2)).sum::<i64>() / 50;
        assert!(chi_square < 51, "{cells:?}");
        hottest.sort_unstable();
        assert!(hottest.windows(2).filter(|pair| pair[0] + 1 == pair[1]).count() < 10);
    }
}
