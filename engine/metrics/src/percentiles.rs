//! Percentiles of samples in which some values are censored: only a lower bound of them is known.
//!
//! If an event has not ended when the measurement is over, only a lower bound of its latency is known: the time since
//! it was due. Such a latency is called censored. A percentile is the value of rank ceil(p n) among all n events
//! (nearest rank). Whatever the true latencies of the censored events, the percentile is
//!
//! - at least the value of that rank if every censored latency equals its lower bound, and
//! - at most the value of that rank if every censored latency is infinite.
//!
//! If both are in the same bucket, the percentile is known; otherwise the result is "more than" the lower one.

use dbdyno_schema::histogram::{Buckets, bucket_width_us};
use dbdyno_schema::record::{Percentile, Percentiles};

/// The percentiles of the `known` values and the `censored` ones, whose buckets are lower bounds. `range_us` contains
/// the exact minimum and maximum of the known values. `None` if there are no values.
pub fn percentiles(
    known: &Buckets,
    range_us: (Option<f64>, Option<f64>),
    censored: &Buckets,
) -> Option<Percentiles> {
    let mut all = known.clone();
    all.merge(censored);
    let (low_us, high_us) = (range_us.0.unwrap_or(0.0), range_us.1.unwrap_or(f64::INFINITY));
    let at = |percent| percentile(known, &all, percent, (low_us, high_us));
    let longest_us = censored.0.last().map(|&(lower, _)| lower as f64);
    let max = Percentile {
        value_us: [range_us.1, longest_us].into_iter().flatten().reduce(f64::max)?,
        censored: longest_us.is_some(),
    };
    Some(Percentiles { p50: at(50.0), p90: at(90.0), p95: at(95.0), p99: at(99.0), p99_9: at(99.9), max })
}

/// One percentile. `all` contains the known values and the lower bounds, and is not empty.
fn percentile(known: &Buckets, all: &Buckets, percent: f64, (low_us, high_us): (f64, f64)) -> Percentile {
    let rank = rank(percent, all.count());
    let least = bucket_of(all, rank).expect("the rank is at most the count");
    if bucket_of(known, rank) != Some(least) {
        return Percentile { value_us: least as f64, censored: true };
    }
    let middle = least as f64 + middle_us(least);
    Percentile { value_us: middle.max(low_us).min(high_us), censored: false }
}

/// The rank of a percentile among `count` values, counted from 1.
fn rank(percent: f64, count: u64) -> u64 {
    // Rounding prevents 0.95 * 100 = 95.00000000000001 from becoming rank 96.
    let exact = (percent / 100.0 * count as f64 * 1e6).round() / 1e6;
    (exact.ceil() as u64).clamp(1, count.max(1))
}

/// The bucket that contains the value with that rank.
fn bucket_of(buckets: &Buckets, rank: u64) -> Option<u64> {
    let mut seen = 0;
    buckets.0.iter().find_map(|&(lower, count)| {
        seen += count;
        (seen >= rank).then_some(lower)
    })
}

/// Distance from the lower limit of a bucket to its middle. Values are rounded to the nearest microsecond, so the
/// distance is 0 for a bucket of one microsecond.
fn middle_us(lower: u64) -> f64 {
    (bucket_width_us(lower) - 1) as f64 / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(values: &[u64]) -> Buckets {
        let mut buckets = Buckets::default();
        for &value in values {
            buckets.merge(&Buckets(vec![(value, 1)]));
        }
        buckets
    }

    fn of(known: &[u64], censored: &[u64]) -> Option<Percentiles> {
        let range = (known.iter().min().map(|&v| v as f64), known.iter().max().map(|&v| v as f64));
        percentiles(&buckets(known), range, &buckets(censored))
    }

    fn exact(value_us: f64) -> Percentile {
        Percentile { value_us, censored: false }
    }

    fn more_than(value_us: f64) -> Percentile {
        Percentile { value_us, censored: true }
    }

    #[test]
    fn without_censored_values_percentiles_are_nearest_ranks() {
        let found = of(&(1..=100).collect::<Vec<_>>(), &[]).unwrap();
        let expected = [50.0, 90.0, 95.0, 99.0, 100.0, 100.0].map(exact);
        assert_eq!([found.p50, found.p90, found.p95, found.p99, found.p99_9, found.max], expected);
        assert_eq!(of(&[], &[]), None);
    }

    #[test]
    fn a_percentile_that_censored_values_can_change_is_a_lower_bound() {
        // Ten events; two have not ended after 5 and after 100 us.
        let found = of(&[1, 2, 3, 4, 5, 6, 7, 8], &[5, 100]).unwrap();
        // Rank 5 has the value 5, whatever the two latencies are.
        assert_eq!(found.p50, exact(5.0));
        // Rank 9 has at least the value 8, and no upper bound.
        assert_eq!(found.p90, more_than(8.0));
        assert_eq!(found.p99, more_than(100.0));
        assert_eq!(found.max, more_than(100.0));
        // An event that has not ended after 2 us can change every rank above that of 2 us.
        assert_eq!(of(&[1, 2, 3, 4, 5, 6, 7, 8, 9], &[2]).unwrap().p50, more_than(4.0));
    }

    #[test]
    fn censored_values_alone_give_lower_bounds() {
        let found = of(&[], &[10, 20]).unwrap();
        assert_eq!((found.p50, found.max), (more_than(10.0), more_than(20.0)));
    }

    /// Compares with all possible latencies of the censored events: the lower bound, every known value above, and 1000.
    #[test]
    fn percentiles_equal_those_of_a_brute_force_search() {
        let mut draw = 12_345_u64;
        let mut next = |below: u64| {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (draw >> 33) % below
        };
        for _ in 0..300 {
            let known: Vec<u64> = (0..1 + next(8)).map(|_| 1 + next(12)).collect();
            let censored: Vec<u64> = (0..next(4)).map(|_| 1 + next(12)).collect();
            let found = of(&known, &censored).unwrap();
            for (percent, found) in [(50.0, found.p50), (90.0, found.p90), (99.0, found.p99)] {
                let reached = completions(&known, &censored, percent);
                let (least, most) = (reached.iter().min().unwrap(), reached.iter().max().unwrap());
                let expected = if least == most { exact(*least as f64) } else { more_than(*least as f64) };
                assert_eq!(found, expected, "{percent} of {known:?} and {censored:?}");
            }
        }
    }

    fn completions(known: &[u64], censored: &[u64], percent: f64) -> Vec<u64> {
        let mut complete = vec![known.to_vec()];
        for &bound in censored {
            let choices: Vec<u64> = (bound..=13).chain([1000]).collect();
            complete = complete
                .iter()
                .flat_map(|values| choices.iter().map(|&choice| [values.as_slice(), &[choice]].concat()))
                .collect();
        }
        let at = |mut values: Vec<u64>| {
            values.sort_unstable();
            values[rank(percent, values.len() as u64) as usize - 1]
        };
        complete.into_iter().map(at).collect()
    }
}
