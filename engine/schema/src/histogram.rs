//! The bucket rule of the histograms in the records.
//!
//! A histogram is a sparse list of `[bucket_lower_us, count]` pairs, so any language merges two of them
//! by adding the counts of equal keys. The buckets are those of an HDR histogram with three significant digits
//! and a lowest value of 1 us: values below 2048 us have a bucket each; above that a bucket is
//! 2^(floor(log2(value)) - 10) us wide, which is at most 0.1 % of the value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Significant decimal digits kept.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// Largest value with a bucket, in microseconds (one hour). Larger values are counted in the last bucket.
pub const HIGHEST_US: u64 = 3_600_000_000;

/// Values below this have a bucket of their own, in microseconds.
const UNIT_BUCKETS_US: u64 = 2048;

/// Sparse histogram: `[bucket_lower_us, count]` pairs in ascending order, without empty buckets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Buckets(pub Vec<(u64, u64)>);

impl Buckets {
    /// Number of values counted.
    pub fn count(&self) -> u64 {
        self.0.iter().map(|&(_, count)| count).sum()
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Buckets) {
        merge_counts(&mut self.0, &other.0);
    }
}

/// Adds the counts of equal keys. Both lists, and the result, are in ascending order.
pub fn merge_counts<K: Ord + Copy>(counts: &mut Vec<(K, u64)>, other: &[(K, u64)]) {
    counts.extend_from_slice(other);
    // A stable sort merges two ascending runs in linear time.
    counts.sort_by_key(|&(key, _)| key);
    counts.dedup_by(|next, sum| {
        let same = next.0 == sum.0;
        sum.1 += if same { next.1 } else { 0 };
        same
    });
}

/// Lower edge of the bucket that holds `value_us`.
pub fn bucket_lower_us(value_us: u64) -> u64 {
    let value_us = value_us.min(HIGHEST_US);
    value_us & !(bucket_width_us(value_us) - 1)
}

/// Width of the bucket that holds `value_us`; a power of two.
pub fn bucket_width_us(value_us: u64) -> u64 {
    if value_us < UNIT_BUCKETS_US { 1 } else { 1 << (value_us.ilog2() - 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_adds_counts() {
        let mut left = Buckets(vec![(1, 1), (3, 2)]);
        left.merge(&Buckets(vec![(0, 5), (3, 1), (9, 1)]));
        assert_eq!(left.0, [(0, 5), (1, 1), (3, 3), (9, 1)]);
    }

    #[test]
    fn small_values_have_a_bucket_each() {
        for value in [0, 1, 2, 1023, 1024, 2047] {
            assert_eq!(bucket_lower_us(value), value);
        }
    }

    #[test]
    fn a_bucket_is_never_wider_than_a_thousandth_of_its_value() {
        for exponent in 11..31 {
            for value in [1u64 << exponent, (1 << exponent) + 12345 % (1 << exponent), (2 << exponent) - 1] {
                let (lower, width) = (bucket_lower_us(value), bucket_width_us(value));
                assert!(lower <= value && value < lower + width, "{value}");
                assert!(width as f64 <= lower as f64 / 1000.0, "{value}: {width} of {lower}");
            }
        }
    }
}
