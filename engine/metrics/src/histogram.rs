//! Latency histograms: recorded as HDR histograms, exported as the non-empty buckets in the records.
//!
//! The bucket limits are those of `dbdyno_schema::histogram`; a test compares the two.

use dbdyno_load::Nanos;
pub use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::histogram::{HIGHEST_US, SIGNIFICANT_DIGITS, bucket_lower_us};
use hdrhistogram::Histogram as Hdr;

/// A histogram to which values are added, with exact sum, minimum and maximum.
#[derive(Clone, Debug)]
pub struct Histogram {
    hdr: Hdr<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

/// A histogram in the format of the records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LatencySummary {
    /// The non-empty buckets, in microseconds.
    pub buckets: Buckets,
    /// Exact sum, in microseconds.
    pub sum_us: f64,
    /// Smallest value, in microseconds.
    pub min_us: Option<f64>,
    /// Largest value, in microseconds.
    pub max_us: Option<f64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::with_digits(SIGNIFICANT_DIGITS)
    }
}

impl Histogram {
    /// A histogram that needs 4 KB instead of 180, and whose values are exact only to one significant digit. Sum, minimum and
    /// maximum are exact.
    pub fn coarse() -> Self {
        Self::with_digits(1)
    }

    fn with_digits(digits: u8) -> Self {
        let hdr = Hdr::new_with_bounds(1, HIGHEST_US, digits).expect("constant bounds are valid");
        Self { hdr, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 }
    }

    /// Counts one value, rounded to the nearest microsecond. Truncation would bias the means of buckets downwards.
    #[inline]
    pub fn record_ns(&mut self, value_ns: u64) {
        self.hdr.saturating_record((value_ns + 500) / 1000);
        self.sum_ns += u128::from(value_ns);
        self.min_ns = self.min_ns.min(value_ns);
        self.max_ns = self.max_ns.max(value_ns);
    }

    /// The non-empty buckets.
    pub fn buckets(&self) -> Buckets {
        let pairs =
            self.hdr.iter_recorded().map(|v| (bucket_lower_us(v.value_iterated_to()), v.count_at_value()));
        Buckets(pairs.collect())
    }

    /// Returns the counts and resets the histogram.
    pub fn take(&mut self) -> LatencySummary {
        if self.hdr.is_empty() {
            return LatencySummary::default();
        }
        let taken = LatencySummary {
            buckets: self.buckets(),
            sum_us: self.sum_ns as f64 / 1000.0,
            min_us: Some(self.min_ns as f64 / 1000.0),
            max_us: Some(self.max_ns as f64 / 1000.0),
        };
        self.hdr.reset();
        (self.sum_ns, self.min_ns, self.max_ns) = (0, u64::MAX, 0);
        taken
    }
}

/// The buckets of durations.
pub(crate) fn buckets_of(lengths: impl Iterator<Item = Nanos>) -> Buckets {
    let mut histogram = Histogram::default();
    lengths.for_each(|length| histogram.record_ns(length));
    histogram.take().buckets
}

impl LatencySummary {
    /// Adds another histogram to this one.
    pub fn merge(&mut self, other: &LatencySummary) {
        self.buckets.merge(&other.buckets);
        self.sum_us += other.sum_us;
        self.min_us = [self.min_us, other.min_us].into_iter().flatten().reduce(f64::min);
        self.max_us = [self.max_us, other.max_us].into_iter().flatten().reduce(f64::max);
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::histogram::bucket_width_us;

    use super::*;

    #[test]
    fn buckets_are_those_of_the_schema() {
        let hdr = Hdr::<u64>::new_with_bounds(1, HIGHEST_US, SIGNIFICANT_DIGITS).unwrap();
        for exponent in 0..31 {
            for value in [1u64 << exponent, (1 << exponent) + 1, (3 << exponent) / 2, (2 << exponent) - 1] {
                assert_eq!(hdr.lowest_equivalent(value), bucket_lower_us(value), "{value}");
                assert_eq!(hdr.equivalent_range(value), bucket_width_us(value), "{value}");
            }
        }
    }

    #[test]
    fn take_returns_every_value_once() {
        let mut histogram = Histogram::default();
        for value_ns in [1_000, 1_400, 1_600, 5_000_000] {
            histogram.record_ns(value_ns);
        }
        let taken = histogram.take();
        assert_eq!(taken.buckets.0, [(1, 2), (2, 1), (bucket_lower_us(5_000), 1)]);
        assert_eq!((taken.sum_us, taken.min_us, taken.max_us), (5_004.0, Some(1.0), Some(5_000.0)));
        assert_eq!(histogram.take(), LatencySummary::default());
    }

    #[test]
    fn a_coarse_histogram_is_small_and_its_sums_are_exact() {
        let mut histogram = Histogram::coarse();
        assert!(histogram.hdr.distinct_values() * 8 < 4096, "{} buckets", histogram.hdr.distinct_values());
        for value_ns in [1_000_000, 5_050_000, 5_100_000] {
            histogram.record_ns(value_ns);
        }
        let taken = histogram.take();
        assert_eq!(taken.buckets.0.iter().map(|&(_, count)| count).sum::<u64>(), 3);
        assert_eq!((taken.sum_us, taken.min_us, taken.max_us), (11_150.0, Some(1_000.0), Some(5_100.0)));
    }
}
