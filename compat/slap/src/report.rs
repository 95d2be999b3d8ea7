//! Formats the report of the measured times.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dbdyno_schema::histogram::bucket_width_us;
use dbdyno_schema::record::{PhaseName, Record};

use super::settings::Settings;

/// The percentiles of `--latency`, in per mille. Integers avoid rounding errors in ranks.
const PERCENTILES: [u64; 5] = [500, 900, 950, 990, 999];

/// For each statement name, the number of latencies in each bucket, by the bucket's lower bound in microseconds.
pub type Latencies = BTreeMap<String, BTreeMap<u64, u64>>;

/// The result of one round.
#[derive(Clone, Debug, Default)]
pub struct Round {
    connect_us: u64,
    run_us: u64,
    pub latencies: Latencies,
}

impl Round {
    pub fn add_record(&mut self, record: &Record) {
        match record {
            Record::Ready(ready) => self.connect_us = ready.connect_us,
            Record::Statements(statements) => {
                for (name, stats) in &statements.kinds {
                    let buckets = self.latencies.entry(name.clone()).or_default();
                    add_buckets(buckets, stats.latency_us.0.iter().copied());
                }
            }
            Record::End(end) => {
                let measured = end.phases.get(&PhaseName::Measure);
                self.run_us = measured.map_or(0, |phase| phase.end_us - phase.start_us);
            }
            _ => {}
        }
    }

    /// Seconds from the first connection attempt to the end of the last query.
    pub fn seconds(&self) -> f64 {
        (self.connect_us + self.run_us) as f64 / 1e6
    }
}

fn add_buckets(sum: &mut BTreeMap<u64, u64>, buckets: impl IntoIterator<Item = (u64, u64)>) {
    for (lower, count) in buckets {
        *sum.entry(lower).or_default() += count;
    }
}

/// The results of all iterations with one number of clients.
#[derive(Clone, Debug, Default)]
pub struct Times {
    seconds: Vec<f64>,
    latencies: Latencies,
}

/// The test that a report is about.
#[derive(Clone, Debug)]
pub struct Labels<'a> {
    pub engine: Option<&'a str>,
    pub load_type: &'a str,
    pub clients: u32,
    /// Number of queries of each client.
    pub queries_per_client: u64,
    /// Whether to report latency percentiles.
    pub latency: bool,
}

impl<'a> Labels<'a> {
    pub fn new(settings: &'a Settings, engine: Option<&'a str>, clients: u32) -> Self {
        let Settings { load_type, latency, .. } = settings;
        Self {
            engine,
            load_type,
            clients,
            queries_per_client: settings.reported_queries_per_client(clients),
            latency: *latency,
        }
    }
}

impl Times {
    pub fn add(&mut self, round: Round) {
        self.seconds.push(round.seconds());
        for (name, buckets) in round.latencies {
            add_buckets(self.latencies.entry(name).or_default(), buckets);
        }
    }

    /// Mean, minimum and maximum, in seconds.
    fn mean_min_max(&self) -> [f64; 3] {
        let count = self.seconds.len().max(1) as f64;
        let mean = self.seconds.iter().sum::<f64>() / count;
        let min = self.seconds.iter().copied().reduce(f64::min).unwrap_or_default();
        let max = self.seconds.iter().copied().reduce(f64::max).unwrap_or_default();
        [mean, min, max]
    }

    pub fn text(&self, labels: &Labels<'_>) -> String {
        let mut text = "Benchmark\n".to_owned();
        if let Some(engine) = labels.engine {
            let _ = writeln!(text, "\tRunning for engine {engine}");
        }
        for (statistic, seconds) in ["Average", "Minimum", "Maximum"].iter().zip(self.mean_min_max()) {
            let _ =
                writeln!(text, "\t{statistic} number of seconds to run all queries: {seconds:.3} seconds");
        }
        let _ = writeln!(text, "\tNumber of clients running queries: {}", labels.clients);
        let _ = writeln!(text, "\tAverage number of queries per client: {}", labels.queries_per_client);
        if labels.latency {
            text += &self.percentile_table();
        }
        text + "\n"
    }

    /// The CSV line. With `--latency` it ends with the percentiles over all queries, in milliseconds.
    pub fn csv(&self, labels: &Labels<'_>) -> String {
        let [mean, min, max] = self.mean_min_max();
        let (engine, load) = (labels.engine.unwrap_or_default(), labels.load_type);
        let mut line = format!(
            "{engine},{load},{mean:.3},{min:.3},{max:.3},{},{}",
            labels.clients, labels.queries_per_client
        );
        if labels.latency {
            let mut all = BTreeMap::new();
            add_buckets(&mut all, self.latencies.values().flatten().map(|(&lower, &count)| (lower, count)));
            percentiles_ms(&all).iter().for_each(|value_ms| {
                let _ = write!(line, ",{value_ms:.3}");
            });
        }
        line + "\n"
    }

    fn percentile_table(&self) -> String {
        let mut text = "\tLatency in milliseconds, by query:\n".to_owned();
        let _ = writeln!(
            text,
            "\t{:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}  query",
            "count", "50 %", "90 %", "95 %", "99 %", "99.9 %", "max"
        );
        for (name, buckets) in &self.latencies {
            let _ = write!(text, "\t{:>10}", buckets.values().sum::<u64>());
            percentiles_ms(buckets).iter().for_each(|value_ms| {
                let _ = write!(text, " {value_ms:>10.3}");
            });
            let _ = writeln!(text, "  {name}");
        }
        text
    }
}

/// The percentiles (nearest rank) and the maximum, in milliseconds. Each value is the middle of its bucket. Without
/// latencies, all values are 0.
fn percentiles_ms(buckets: &BTreeMap<u64, u64>) -> [f64; PERCENTILES.len() + 1] {
    let all: u64 = buckets.values().sum();
    let middle_ms = |lower: u64| {
        let width = bucket_width_us(lower);
        (lower as f64 + if width > 1 { width as f64 / 2.0 } else { 0.0 }) / 1e3
    };
    let percentile = |per_mille: u64| {
        let rank = (per_mille * all).div_ceil(1000).max(1);
        let mut cumulative = 0;
        let bucket = buckets.iter().find(|&(_, &count)| {
            cumulative += count;
            cumulative >= rank
        });
        bucket.map_or(0.0, |(&lower, _)| middle_ms(lower))
    };
    std::array::from_fn(|index| percentile(PERCENTILES.get(index).copied().unwrap_or(1000)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(seconds: &[f64]) -> Times {
        let buckets = (1..=1000).map(|lower| (lower, 1)).collect();
        let latencies = [("SELECT 1".to_owned(), buckets)].into();
        Times { seconds: seconds.to_vec(), latencies }
    }

    const LABELS: Labels<'_> =
        Labels { engine: None, load_type: "mixed", clients: 2, queries_per_client: 500, latency: false };

    #[test]
    fn the_report_is_that_of_mysqlslap() {
        let text = times(&[0.0014, 0.0026]).text(&Labels { engine: Some("innodb"), ..LABELS });
        let lines = [
            "Benchmark",
            "\tRunning for engine innodb",
            "\tAverage number of seconds to run all queries: 0.002 seconds",
            "\tMinimum number of seconds to run all queries: 0.001 seconds",
            "\tMaximum number of seconds to run all queries: 0.003 seconds",
            "\tNumber of clients running queries: 2",
            "\tAverage number of queries per client: 500",
            "",
        ];
        assert_eq!(text, lines.join("\n") + "\n");
    }

    #[test]
    fn latency_columns_follow_mysqlslaps_columns() {
        assert_eq!(times(&[1.0, 2.0]).csv(&LABELS), ",mixed,1.500,1.000,2.000,2,500\n");
        let more = times(&[1.0]).csv(&Labels { latency: true, ..LABELS });
        assert_eq!(more, ",mixed,1.000,1.000,1.000,2,500,0.500,0.900,0.950,0.990,0.999,1.000\n");
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let text = times(&[1.0]).text(&Labels { latency: true, ..LABELS });
        let line = text.lines().find(|line| line.ends_with("SELECT 1")).unwrap();
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(words[..7], ["1000", "0.500", "0.900", "0.950", "0.990", "0.999", "1.000"]);
        assert_eq!(percentiles_ms(&BTreeMap::new()), [0.0; 6]);
    }
}
