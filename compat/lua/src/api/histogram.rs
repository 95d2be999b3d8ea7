//! `sysbench.histogram`: counts in logarithmic buckets, printed as bars.
//!
//! As in sysbench, scripts see a C structure with functions in `ffi.C`.

use std::fmt::Write as _;

/// Counts of values in buckets that are evenly spaced on a logarithmic scale.
#[derive(Debug)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    /// Logarithm of the first bucket's value.
    first: f64,
    /// Buckets per unit of the logarithm.
    density: f64,
}

impl Histogram {
    /// An empty histogram with `size` buckets from `min` to `max`. `None` if `size` is 0 or above 16 million, or if a
    /// bound has no logarithm.
    pub(crate) fn new(size: u64, min: f64, max: f64) -> Option<Self> {
        let size = usize::try_from(size).ok().filter(|size| (1..=1 << 24).contains(size))?;
        let bounded = min > 0.0 && max >= min && max.is_finite();
        let span = max.ln() - min.ln();
        let density = if span > 0.0 { (size - 1) as f64 / span } else { 0.0 };
        bounded.then(|| Self { counts: vec![0; size], first: min.ln(), density })
    }

    /// Counts `value` in the nearest bucket on the logarithmic scale; values outside the bounds count in the first or
    /// the last bucket.
    #[inline]
    pub(crate) fn update(&mut self, value: f64) {
        // The logarithm of 0 is infinite and that of a negative value is NaN; `as` converts both to bucket 0.
        let bucket = ((value.ln() - self.first) * self.density + 0.5).floor() as usize;
        let last = self.counts.len() - 1;
        self.counts[bucket.min(last)] += 1;
    }

    /// A heading and a line for each bucket that is not empty. The text is empty if all buckets are empty.
    pub(crate) fn text(&self) -> String {
        const WIDTH: f64 = 40.0;
        let max = self.counts.iter().copied().max().unwrap_or(0);
        if max == 0 {
            return String::new();
        }
        let mut text = "       value  ------------- distribution ------------- count\n".to_owned();
        for (bucket, &count) in self.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let value = self.value(bucket);
            let stars = "*".repeat((count as f64 / max as f64 * WIDTH + 0.5) as usize);
            let _ = writeln!(text, "{value:12.3} |{stars:<40} {count}");
        }
        text
    }

    fn value(&self, bucket: usize) -> f64 {
        let exponent = if self.density > 0.0 { bucket as f64 / self.density } else { 0.0 };
        (self.first + exponent).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(size: u64, min: f64, max: f64, values: impl IntoIterator<Item = f64>) -> String {
        let mut histogram = Histogram::new(size, min, max).unwrap();
        values.into_iter().for_each(|value| histogram.update(value));
        histogram.text()
    }

    #[test]
    fn histogram_text_matches_sysbench() {
        // What sysbench 1.0.20 prints for the numbers 1 to 100 in ten buckets.
        let output = histogram(10, 1.0, 100.0, (1..=100).map(f64::from));
        let expected = "       value  ------------- distribution ------------- count
       1.000 |*                                        1
       1.668 |*                                        1
       2.783 |*                                        1
       4.642 |***                                      2
       7.743 |*****                                    4
      12.915 |*********                                7
      21.544 |**************                           11
      35.938 |*************************                19
      59.948 |**************************************** 31
     100.000 |******************************           23
";
        assert_eq!(output, expected);
    }

    #[test]
    fn values_outside_the_bounds_count_in_the_end_buckets() {
        let values = [0.0, -5.0, f64::NAN, 0.5, f64::NEG_INFINITY, 1e9, f64::INFINITY];
        let output = histogram(3, 1.0, 100.0, values);
        let counts: Vec<_> = output.lines().skip(1).map(|line| line.rsplit(' ').next().unwrap()).collect();
        assert_eq!(counts, ["5", "2"]);
    }

    #[test]
    fn values_are_within_half_a_bucket() {
        let ratio = 1e8f64.powf(1.0 / 1023.0);
        for value in [0.0012, 0.5, 1.5, 22.25, 99_000.0] {
            let output = histogram(1024, 0.001, 100_000.0, [value]);
            let shown: f64 = output.lines().nth(1).unwrap()[..12].trim().parse().unwrap();
            assert!((shown - value).abs() < 0.0005 + value * (ratio - 1.0) / 2.0 * 1.01, "{value}: {shown}");
        }
    }

    #[test]
    fn empty_histogram_prints_nothing_and_invalid_bounds_are_refused() {
        assert_eq!(histogram(10, 1.0, 100.0, []), "");
        assert!(
            histogram(3, 5.0, 5.0, [4.0, 5.0]).ends_with(&format!("       5.000 |{} 2\n", "*".repeat(40)))
        );
        for (size, min, max) in
            [(0, 1.0, 2.0), (5, 0.0, 2.0), (5, -1.0, 2.0), (5, 2.0, 1.0), (5, 1.0, f64::NAN)]
        {
            assert!(Histogram::new(size, min, max).is_none(), "{size} {min} {max}");
        }
        assert!(Histogram::new(u64::MAX, 1.0, 2.0).is_none());
    }
}
