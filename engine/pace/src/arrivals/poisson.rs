//! Exponential gaps: many users who do not know of each other.

use dbdyno_draw::Rng;

use super::Arrivals;
use crate::Nanos;

/// A Poisson process of a given rate.
#[derive(Clone, Debug)]
pub struct Poisson {
    mean_gap_ns: f64,
    at_ns: f64,
    rng: Rng,
}

impl Poisson {
    /// `rate_per_s` events a second on average.
    pub fn new(rate_per_s: f64, rng: Rng) -> Self {
        Self { mean_gap_ns: 1e9 / rate_per_s, at_ns: 0.0, rng }
    }
}

impl Arrivals for Poisson {
    fn next_due(&mut self) -> Nanos {
        // Inversion: -ln(1 - U) is exponential with mean 1, and 1 - U is never 0.
        self.at_ns += -(1.0 - self.rng.unit()).ln() * self.mean_gap_ns;
        self.at_ns as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Kolmogorov-Smirnov distance of 20,000 gaps from the exponential; 1.95 / sqrt(n) is its 99.9 % point.
    #[test]
    fn gaps_are_exponential() {
        let mut poisson = Poisson::new(20_000.0, Rng::new(5, &[]));
        let mut gaps = Vec::new();
        let mut last = 0;
        for _ in 0..20_000 {
            let due = poisson.next_due();
            gaps.push((due - last) as f64 / 50_000.0);
            last = due;
        }
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| ((1.0 - (-gap).exp()) - i as f64 / n).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
    }
}
