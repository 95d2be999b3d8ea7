//! sysbench's latency buckets. The engine counts latencies in them in addition to its finer histogram, so that printed
//! percentiles match sysbench's.

use dbdyno_schema::log_buckets::LogScale;

/// 1,024 buckets from 0.001 ms to 100 s.
pub fn scale() -> LogScale {
    LogScale::new(1024, 0.001, 100_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values that sysbench 1.0.20's own table of `--histogram` prints.
    #[test]
    fn bucket_values_match_sysbench() {
        for printed in ["99.327", "101.132", "11.446", "61.083", "0.001", "100000.000"] {
            let bucket = scale().bucket(printed.parse().unwrap());
            assert_eq!(format!("{:.3}", scale().value(bucket)), printed);
        }
    }
}
