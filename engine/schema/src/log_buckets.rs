//! Buckets of equal widths on a logarithmic scale.
//!
//! These buckets are coarser than those of [`crate::histogram`]. The engine counts them only if the program that embeds
//! it prints percentiles of such a scale. A value falls into bucket `floor((n - 1) ln(v / low) / ln(high / low) + 0.5)`
//! of n; values outside the scale fall into the first or the last bucket. Percentile p is the value of the first bucket
//! whose cumulative count reaches `floor(N p / 100 + 0.5)` of the N values; if that rank is 0, the value of bucket 0.

/// A logarithmic scale, divided into buckets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogScale {
    buckets: usize,
    /// Natural logarithm of the lowest value.
    low: f64,
    /// Buckets per unit of the logarithm.
    per_unit: f64,
}

impl LogScale {
    /// A scale of `buckets` buckets, the first for `low` and the last for `high`.
    pub fn new(buckets: usize, low: f64, high: f64) -> Self {
        let low_log = low.ln();
        Self { buckets, low: low_log, per_unit: buckets.saturating_sub(1) as f64 / (high.ln() - low_log) }
    }

    /// Number of buckets.
    pub fn buckets(&self) -> usize {
        self.buckets
    }

    /// The bucket of `value`, from 0.
    #[inline]
    pub fn bucket(&self, value: f64) -> usize {
        // The cast to usize truncates and saturates, so a value without a logarithm falls into the first bucket.
        let bucket = ((value.ln() - self.low) * self.per_unit + 0.5) as usize;
        bucket.min(self.buckets.saturating_sub(1))
    }

    /// The value that represents a bucket.
    pub fn value(&self, bucket: usize) -> f64 {
        (bucket as f64 / self.per_unit + self.low).exp()
    }

    /// The percentile of values counted as `(bucket, count)` in ascending order; 0 without values.
    pub fn percentile(&self, counts: &[(u16, u64)], percent: f64) -> f64 {
        let all: u64 = counts.iter().map(|&(_, count)| count).sum();
        if all == 0 {
            return 0.0;
        }
        let rank = (all as f64 * percent / 100.0 + 0.5).floor() as u64;
        if rank == 0 {
            return self.value(0);
        }
        let mut cumulative = 0;
        let reached = counts.iter().find(|&&(_, count)| {
            cumulative += count;
            cumulative >= rank
        });
        reached.map_or(0.0, |&(bucket, _)| self.value(bucket.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::merge_counts;

    fn scale() -> LogScale {
        LogScale::new(1024, 0.001, 100_000.0)
    }

    /// The lowest value of a bucket in ms, computed without logarithms: 10^(-3 + 8 (i - 1/2) / 1023) for bucket i.
    fn lowest_ms(bucket: usize) -> f64 {
        10f64.powf(-3.0 + 8.0 * (bucket as f64 - 0.5) / 1023.0)
    }

    #[test]
    fn bucket_edges_are_powers_of_ten() {
        let scale = scale();
        for bucket in 1..1024 {
            let edge = lowest_ms(bucket);
            assert_eq!(scale.bucket(edge * (1.0 + 1e-9)), bucket, "just above {edge} ms");
            assert_eq!(scale.bucket(edge * (1.0 - 1e-9)), bucket - 1, "just below {edge} ms");
            let middle = 10f64.powf(-3.0 + 8.0 * bucket as f64 / 1023.0);
            assert!((scale.value(bucket) / middle - 1.0).abs() < 1e-12, "{bucket}");
        }
    }

    #[test]
    fn values_outside_the_scale_fall_into_the_end_buckets() {
        let scale = scale();
        for (value_ms, bucket) in [(0.0, 0), (-1.0, 0), (0.000_5, 0), (0.001, 0), (1e5, 1023), (1e9, 1023)] {
            assert_eq!(scale.bucket(value_ms), bucket, "{value_ms}");
        }
    }

    #[test]
    fn a_percentile_equals_that_of_a_sorted_list() {
        let scale = scale();
        let mut draw = 1_u64;
        for size in [1_usize, 2, 7, 10, 99, 100, 1000] {
            let mut buckets: Vec<u16> = (0..size)
                .map(|_| {
                    draw =
                        draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    ((draw >> 33) % 1024) as u16
                })
                .collect();
            buckets.sort_unstable();
            let mut counts = Vec::new();
            buckets.iter().for_each(|&bucket| merge_counts(&mut counts, &[(bucket, 1)]));
            for percent in [1_usize, 50, 95, 99, 100] {
                // The rank, rounded to the nearest in whole numbers; 0 is before the first value.
                let rank = (2 * size * percent + 100) / 200;
                let bucket = if rank == 0 { 0 } else { buckets[rank - 1] };
                let expected = scale.value(bucket.into());
                assert_eq!(scale.percentile(&counts, percent as f64), expected, "{percent} % of {size}");
            }
        }
        assert_eq!(scale.percentile(&[], 95.0), 0.0);
    }
}
