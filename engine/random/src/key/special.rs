//! sysbench 1.0's default distribution: three quarters of the ids fall into a narrow band in the middle of the range.

use crate::Rng;

/// With probability `100 - hot_percent` percent, a bell curve over the whole range; otherwise the upper part of a band
/// of `percent` percent of the range around its middle. One random number makes both decisions, so only
/// the upper `hot_percent` percent of the band is reached. This keeps results comparable.
#[derive(Clone, Debug)]
pub(super) struct Special {
    /// Distance from the first id to the last.
    span: f64,
    iterations: u32,
    /// Width of the band.
    band: f64,
    /// Share of ids outside the band.
    cold: f64,
}

impl Special {
    pub(super) fn new(count: u64, iterations: u32, percent: u32, hot_percent: u32) -> Self {
        let span = (count - 1) as f64;
        let band = span * f64::from(percent) / 100.0;
        Self { span, iterations, band, cold: f64::from(100 - hot_percent) / 100.0 }
    }

    /// A random id, counted from 0.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let unit = rng.unit();
        let offset = if unit < self.cold {
            self.span * bates(rng, self.iterations)
        } else {
            unit * (self.band + 1.0) + self.span / 2.0 - self.band / 2.0
        };
        (offset as u64).min(self.span as u64)
    }
}

/// The mean of `count` uniform random numbers: a Bates distribution, which is close to a normal one for `count` from
/// about 6.
#[inline]
pub(super) fn bates(rng: &mut Rng, count: u32) -> f64 {
    (0..count).map(|_| rng.unit()).sum::<f64>() / f64::from(count)
}

#[cfg(test)]
mod tests {
    use crate::Rng;
    use crate::key::goodness_of_fit::{assert_fits, bates_cdf};
    use crate::key::{Distribution, Keys};

    fn keys() -> Keys {
        Keys::new(&Distribution::Special { iterations: 12, percent: 1, hot_percent: 75 }, 1, 1000)
    }

    #[test]
    fn fits_its_probabilities() {
        let keys = keys();
        let (span, band) = (999.0, 9.99);
        let cold = |x: f64| 0.25 * bates_cdf(x / span, 12);
        // The band is uniform in [edge(0.25), edge(1)) and holds three quarters of the draws.
        let edge = |unit: f64| unit * (band + 1.0) + span / 2.0 - band / 2.0;
        let hot = |x: f64| 0.75 * ((x - edge(0.25)) / (edge(1.0) - edge(0.25))).clamp(0.0, 1.0);
        let cdf = |id: u64| cold((id - 1) as f64) + hot((id - 1) as f64);
        assert_fits(|rng| keys.draw(rng), 1, 1000, |id| cdf(id + 1) - cdf(id));
    }

    #[test]
    fn the_band_is_in_the_middle_of_the_ids() {
        // Of 1,000 ids, 498 to 506 get some three quarters of the draws.
        let keys = keys();
        let mut rng = Rng::new(1, &[]);
        let hot = (0..10_000).filter(|_| (498..=506).contains(&keys.draw(&mut rng))).count();
        assert!((7400..7800).contains(&hot), "{hot}");
    }
}
