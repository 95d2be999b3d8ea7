//! Arrivals with exponentially distributed gaps, as from many independent users.

use dbdyno_random::Rng;

use super::series::Arrivals;
use crate::Nanos;
use crate::load_curve::LoadCurve;

/// A Poisson process with a variable rate.
#[derive(Clone, Debug)]
pub struct PoissonArrivals {
    rate: LoadCurve,
    /// Number of engines; this engine has the fraction 1 / `engines` of the run's events.
    engines: f64,
    /// Area under the rate up to this engine's last event.
    area: f64,
    rng: Rng,
}

impl PoissonArrivals {
    /// The arrivals of one of `engines` engines that together have `rate` events per second.
    pub fn new(rate: LoadCurve, engines: u64, rng: Rng) -> Self {
        Self { rate, engines: engines as f64, area: 0.0, rng }
    }
}

impl Arrivals for PoissonArrivals {
    fn next_due(&mut self) -> Nanos {
        self.area += exponential(&mut self.rng) * self.engines;
        self.rate.time_of_area(self.area)
    }
}

/// An exponentially distributed number with mean 1, by inversion. 1 - U is never 0, so the logarithm is finite.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.unit()).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kolmogorov-Smirnov distance of `gaps` from the exponential with mean 1.
    fn distance(mut gaps: Vec<f64>) -> f64 {
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        gaps.iter()
            .enumerate()
            .map(|(i, gap)| ((1.0 - (-gap).exp()) - i as f64 / n).abs())
            .fold(0.0, f64::max)
    }

    /// 1.95 / sqrt(n) is the 99.9 % point of the distance.
    #[test]
    fn gaps_are_exponential() {
        let mut poisson = PoissonArrivals::new(LoadCurve::constant(20_000.0), 1, Rng::new(5, &[]));
        let mut last = 0;
        let gaps = (0..20_000).map(|_| {
            let due = poisson.next_due();
            let gap = due - last;
            last = due;
            gap as f64 / 50_000.0
        });
        let distance = distance(gaps.collect());
        assert!(distance < 1.95 / 20_000_f64.sqrt(), "{distance}");
    }

    /// Measured in area under the ramp instead of time, the events of both engines together are a Poisson process of rate 1.
    #[test]
    fn two_engines_add_up_to_the_ramp() {
        let rate = LoadCurve::ramp(1_000.0, 3_000.0, 1_000_000_000, 4_000_000_000);
        let mut due: Vec<_> = (0..2)
            .flat_map(|index| {
                let mut poisson = PoissonArrivals::new(rate.clone(), 2, Rng::new(9, &[index]));
                (0..5_000).map(move |_| poisson.next_due())
            })
            .collect();
        due.sort_unstable();
        // 1000 events in the first second; then 1000 x + 250 x^2 by x seconds of the ramp, 8000 at its end.
        let area = |due: Nanos| match due as f64 / 1e9 - 1.0 {
            x if x < 0.0 => 1_000.0 * (1.0 + x),
            x if x < 4.0 => 1_000.0 + 1_000.0 * x + 250.0 * x * x,
            x => 9_000.0 + 3_000.0 * (x - 4.0),
        };
        // Both engines are still busy with the first 9,000.
        let gaps: Vec<_> = due[..9_000].windows(2).map(|pair| area(pair[1]) - area(pair[0])).collect();
        let distance = distance(gaps);
        assert!(distance < 1.95 / 9_000_f64.sqrt(), "{distance}");
    }
}
