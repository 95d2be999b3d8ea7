//! Equal gaps: the load of a metronome.

use super::Arrivals;
use crate::Nanos;

/// Due times `(index + n * count) / rate`, for n = 0, 1, 2 …
#[derive(Clone, Debug)]
pub struct Constant {
    gap_ns: f64,
    next: u64,
    step: u64,
}

impl Constant {
    /// Every `count`-th arrival of `rate_per_s`, from number `index` on.
    pub fn new(rate_per_s: f64, index: u64, count: u64) -> Self {
        Self { gap_ns: 1e9 / rate_per_s, next: index, step: count }
    }
}

impl Arrivals for Constant {
    fn next_due(&mut self) -> Nanos {
        // Multiplied, not summed: a sum of rounded gaps would drift by the hour.
        let due = (self.next as f64 * self.gap_ns) as Nanos;
        self.next += self.step;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_interleave_into_even_gaps() {
        let mut first = Constant::new(1000.0, 0, 2);
        let mut second = Constant::new(1000.0, 1, 2);
        let due: Vec<_> = (0..2).flat_map(|_| [first.next_due(), second.next_due()]).collect();
        assert_eq!(due, [0, 1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn no_drift_after_a_day() {
        let mut arrivals = Constant { gap_ns: 1e9 / 3.0, next: 3 * 86_400, step: 1 };
        assert_eq!(arrivals.next_due(), 86_400_000_000_000);
    }
}
