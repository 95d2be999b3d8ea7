//! Whether the generator could do what it was asked: its own CPU and its own lateness over the measurement.

use dbdyno_load::Nanos;
use dbdyno_metrics::histogram::{Buckets, LatencySummary};
use dbdyno_metrics::percentiles;
use dbdyno_schema::record::{Generator, Warning};

use crate::machine;
use crate::watch::Fared;

/// Share of a core, per worker, above which the generator may be the limit.
const CPU_MAX: f64 = 0.8;
/// 99th percentile of its lateness above which it measures itself.
const LAG_US_MAX: f64 = 1000.0;

/// 99th percentile of a reply's delay inside the client, as a share of the median latency, above which it is told.
const DELAY_SHARE_MAX: f64 = 0.1;

/// How the generator fared over the measurement.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// CPU time the hypervisor gave to others, and all of it, at the end of the last interval.
    stolen: Option<(u64, u64)>,
    intervals: u64,
    saturated: u64,
    late: u64,
    /// Sum over the intervals of CPU share times length, and of length.
    cpu: f64,
    length: f64,
    lag: LatencySummary,
    delay: LatencySummary,
}

impl Health {
    pub(crate) fn new() -> Self {
        Self { stolen: machine::stolen(), ..Self::default() }
    }

    /// Takes in one interval of `length` with what all workers together told of it, and turns that into the record's
    /// part.
    pub(crate) fn interval(
        &mut self,
        length: Nanos,
        fared: &Fared,
        workers: usize,
        measured: bool,
    ) -> Generator {
        let generator = Generator {
            cpu: fared.cpu / workers as f64,
            lag_us_max: fared.lag.max_us.unwrap_or(0.0) as u64,
            lag_us_p99: p99_us(&fared.lag) as u64,
            steal: self.steal(),
            run_queue_wait_us: fared.run_queue_wait.as_micros() as u64,
            client_delay_us_p99: fared.delay.max_us.map(|_| p99_us(&fared.delay) as u64),
        };
        if measured {
            self.intervals += 1;
            self.saturated += u64::from(generator.cpu > CPU_MAX);
            self.late += u64::from(p99_us(&fared.lag) > LAG_US_MAX);
            self.cpu += generator.cpu * length as f64;
            self.length += length as f64;
            self.lag.merge(&fared.lag);
            self.delay.merge(&fared.delay);
        }
        generator
    }

    /// Share of the machine's CPU time stolen since the last call; 0 where that is not told.
    fn steal(&mut self) -> f64 {
        let Some((stolen, all)) = machine::stolen() else { return 0.0 };
        let (stolen_before, all_before) = self.stolen.replace((stolen, all)).unwrap_or((stolen, all));
        let passed = all.saturating_sub(all_before).max(1);
        stolen.saturating_sub(stolen_before) as f64 / passed as f64
    }

    /// A warning where replies lay in the client for a noteworthy part of `median_us`, the median latency.
    pub(crate) fn client_delay(&self, median_us: f64) -> Option<Warning> {
        let delay_us = p99_us(&self.delay);
        (delay_us > DELAY_SHARE_MAX * median_us).then(|| Warning {
            code: "client-delay".into(),
            text: format!(
                "1 % of the replies lay for {delay_us:.0} us or longer before the generator read them; the median \
                 latency is {median_us:.0} us"
            ),
            hint: "keep a core free for the client and give it the scheduling \"normal\", more workers or another \
                   machine; part of the latency shown is the client's own"
                .into(),
        })
    }

    /// What makes the measurement worth less, each at most once.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let share = |intervals: u64| 100.0 * intervals as f64 / self.intervals.max(1) as f64;
        let cpu = self.cpu / self.length.max(1.0);
        if cpu > CPU_MAX {
            warnings.push(Warning {
                code: "generator-saturated".into(),
                text: format!(
                    "the generator used {:.0} % of a core per worker, and more than {:.0} % in {:.0} % of the \
                     intervals",
                    cpu * 100.0,
                    CPU_MAX * 100.0,
                    share(self.saturated)
                ),
                hint: "give the client more workers or another machine; the server may be faster than shown"
                    .into(),
            });
        }
        let lag_us = p99_us(&self.lag);
        if lag_us > LAG_US_MAX {
            warnings.push(Warning {
                code: "generator-late".into(),
                text: format!(
                    "1 % of the generator's own wake-ups came more than {:.1} ms late (limit 1 ms), in {:.0} % of \
                     the intervals",
                    lag_us / 1000.0,
                    share(self.late)
                ),
                hint: "keep a core free for the client, or give it another machine; part of the latency shown \
                       is the client's own"
                    .into(),
            });
        }
        warnings
    }
}

fn p99_us(taken: &LatencySummary) -> f64 {
    percentiles(&taken.buckets, (taken.min_us, taken.max_us), &Buckets::default())
        .map_or(0.0, |found| found.p99.value_us)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dbdyno_metrics::histogram::Histogram;

    use super::*;

    fn fared(cpu: f64, lags_us: &[u64]) -> Fared {
        let mut lag = Histogram::default();
        lags_us.iter().for_each(|us| lag.record_ns(us * 1000));
        Fared {
            cpu,
            run_queue_wait: Duration::from_micros(7),
            lag: lag.take(),
            delay: LatencySummary::default(),
        }
    }

    fn codes(health: &Health) -> Vec<String> {
        health.warnings().into_iter().map(|warning| warning.code).collect()
    }

    #[test]
    fn an_interval_tells_shares_per_worker_and_the_lag() {
        let lags: Vec<u64> = (1..=100).collect();
        let generator = Health::default().interval(1_000, &fared(1.0, &lags), 2, true);
        assert_eq!((generator.cpu, generator.lag_us_p99, generator.lag_us_max), (0.5, 99, 100));
        assert_eq!(generator.run_queue_wait_us, 7);
        assert!((0.0..=1.0).contains(&generator.steal));
    }

    #[test]
    fn a_healthy_generator_is_silent_whatever_the_warm_up_was() {
        let mut health = Health::default();
        health.interval(1_000, &fared(1.0, &[90_000]), 1, false);
        for _ in 0..100 {
            health.interval(1_000, &fared(0.79, &[10, 20, 900]), 1, true);
        }
        // One wake-up of 300 is no percent.
        health.interval(1_000, &fared(0.79, &[50_000]), 1, true);
        assert!(codes(&health).is_empty(), "{:?}", health.warnings());
    }

    #[test]
    fn a_delay_is_told_from_a_tenth_of_the_median_latency_on() {
        let mut health = Health::default();
        let asleep = health.interval(1_000, &fared(0.5, &[10]), 1, true);
        assert_eq!(asleep.client_delay_us_p99, None);
        assert!(health.client_delay(1.0).is_none());
        let sampled = Fared { delay: fared(0.0, &[50, 100]).lag, ..fared(0.5, &[10]) };
        assert_eq!(health.interval(1_000, &sampled, 1, true).client_delay_us_p99, Some(100));
        assert!(health.client_delay(1_000.0).is_none());
        let told = health.client_delay(900.0).unwrap();
        assert!(told.text.contains("for 100 us or longer"), "{}", told.text);
        assert!(told.text.contains("latency is 900 us"), "{}", told.text);
    }

    #[test]
    fn cpu_and_lag_warn_apart_and_name_the_share_of_intervals() {
        let mut health = Health::default();
        health.interval(1_000, &fared(1.0, &[10]), 1, true);
        health.interval(1_000, &fared(0.7, &[10]), 1, true);
        assert_eq!(codes(&health), ["generator-saturated"]);
        assert!(health.warnings()[0].text.contains("used 85 %"), "{:?}", health.warnings());
        assert!(health.warnings()[0].text.contains("in 50 % of"), "{:?}", health.warnings());
        let mut health = Health::default();
        health.interval(1_000, &fared(0.5, &[2_500]), 1, true);
        assert_eq!(codes(&health), ["generator-late"]);
        assert!(health.warnings()[0].text.contains("2.5 ms late"), "{:?}", health.warnings());
    }
}
