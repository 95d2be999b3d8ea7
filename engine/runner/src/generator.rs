//! Records of the load generator's own CPU time and delays, per interval and per phase. The lab's checks interpret them.

use std::collections::BTreeMap;

use dbdyno_load::Nanos;
use dbdyno_metrics::histogram::{Buckets, LatencySummary};
use dbdyno_metrics::percentiles;
use dbdyno_schema::record::{Generator, PhaseName};

use crate::machine;
use crate::usage::GeneratorUsage;

/// Adds up the usage of the workers, and returns it as records.
#[derive(Debug)]
pub(crate) struct GeneratorTotals {
    /// Number of workers that have connections; the others use no CPU time.
    busy_workers: u32,
    /// CPU time that the hypervisor gave to other machines, and total CPU time, at the end of the last interval.
    last_stolen: Option<(u64, u64)>,
    phases: BTreeMap<PhaseName, PhaseUsage>,
}

#[derive(Debug, Default)]
struct PhaseUsage {
    length_ns: f64,
    /// Sum over the intervals of CPU share times length in nanoseconds.
    cpu: f64,
    /// Sum over the intervals of stolen share times length in nanoseconds.
    steal: f64,
    usage: GeneratorUsage,
}

impl GeneratorTotals {
    pub(crate) fn new(workers: u32, connections: u32) -> Self {
        Self {
            busy_workers: workers.min(connections),
            last_stolen: machine::stolen_ticks(),
            phases: BTreeMap::new(),
        }
    }

    /// Adds an interval with the usage of all workers. Returns the interval's record.
    pub(crate) fn add_interval(
        &mut self,
        phase: PhaseName,
        length: Nanos,
        usage: &GeneratorUsage,
    ) -> Generator {
        let interval =
            generator_record(usage, usage.cpu / f64::from(self.busy_workers.max(1)), self.steal_share());
        let total = self.phases.entry(phase).or_default();
        total.length_ns += length as f64;
        total.cpu += interval.cpu * length as f64;
        total.steal += interval.steal * length as f64;
        total.usage.merge(usage);
        interval
    }

    /// The record of a whole phase.
    pub(crate) fn phase_record(&self, phase: PhaseName) -> Generator {
        let mean = |total: &PhaseUsage, sum: f64| sum / total.length_ns.max(1.0);
        let total = self.phases.get(&phase);
        total.map_or_else(Generator::default, |total| {
            generator_record(&total.usage, mean(total, total.cpu), mean(total, total.steal))
        })
    }

    /// The share of the machine's CPU time that was stolen since the last call; 0 if the kernel does not report it.
    fn steal_share(&mut self) -> f64 {
        let Some((stolen, all)) = machine::stolen_ticks() else { return 0.0 };
        let (stolen_before, all_before) = self.last_stolen.replace((stolen, all)).unwrap_or((stolen, all));
        let passed = all.saturating_sub(all_before).max(1);
        stolen.saturating_sub(stolen_before) as f64 / passed as f64
    }
}

fn generator_record(usage: &GeneratorUsage, cpu: f64, steal: f64) -> Generator {
    Generator {
        cpu,
        lag_us_max: usage.lag.max_us.unwrap_or(0.0) as u64,
        lag_us_p99: p99_us(&usage.lag),
        steal,
        run_queue_wait_us: usage.run_queue_wait.as_micros() as u64,
        client_delay_us_p99: usage.delay.max_us.map(|_| p99_us(&usage.delay)),
    }
}

fn p99_us(latencies: &LatencySummary) -> u64 {
    let percentiles =
        percentiles(&latencies.buckets, (latencies.min_us, latencies.max_us), &Buckets::default());
    percentiles.map_or(0, |percentiles| percentiles.p99.value_us as u64)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use dbdyno_metrics::histogram::Histogram;

    use super::*;

    fn latencies(values_us: &[u64]) -> LatencySummary {
        let mut histogram = Histogram::default();
        values_us.iter().for_each(|us| histogram.record_ns(us * 1000));
        histogram.take()
    }

    fn usage(cpu: f64, lags_us: &[u64]) -> GeneratorUsage {
        let run_queue_wait = Duration::from_micros(7);
        GeneratorUsage { cpu, run_queue_wait, lag: latencies(lags_us), delay: LatencySummary::default() }
    }

    #[test]
    fn an_interval_has_shares_per_worker_and_the_lag() {
        let lags: Vec<u64> = (1..=100).collect();
        let generator =
            GeneratorTotals::new(2, 9).add_interval(PhaseName::Measure, 1_000, &usage(1.0, &lags));
        assert_eq!((generator.cpu, generator.lag_us_p99, generator.lag_us_max), (0.5, 99, 100));
        assert_eq!((generator.run_queue_wait_us, generator.client_delay_us_p99), (7, None));
        assert!((0.0..=1.0).contains(&generator.steal));
    }

    #[test]
    fn workers_without_connections_do_not_lower_the_share() {
        let generator = GeneratorTotals::new(8, 2).add_interval(PhaseName::Measure, 1_000, &usage(1.8, &[]));
        assert_eq!(generator.cpu, 0.9);
    }

    #[test]
    fn a_phase_has_the_mean_share_and_the_percentiles_of_all_its_intervals() {
        let mut totals = GeneratorTotals::new(1, 1);
        totals.add_interval(PhaseName::Warmup, 1_000, &usage(1.0, &[90_000]));
        totals.add_interval(PhaseName::Measure, 3_000, &usage(1.0, &[50_000]));
        for _ in 0..100 {
            totals.add_interval(PhaseName::Measure, 10, &usage(0.7, &[10, 20, 900]));
        }
        let delayed = GeneratorUsage { delay: latencies(&[50, 100]), ..usage(0.5, &[10]) };
        totals.add_interval(PhaseName::Measure, 1_000, &delayed);
        let measured = totals.phase_record(PhaseName::Measure);
        assert!((measured.cpu - (3.0 + 0.7 + 0.5) / 5.0).abs() < 1e-9, "{measured:?}");
        // One lag of 302 is less than a percent, so it does not change the 99th percentile.
        assert_eq!((measured.lag_us_max, measured.lag_us_p99), (50_000, 900));
        assert_eq!((measured.run_queue_wait_us, measured.client_delay_us_p99), (102 * 7, Some(100)));
        assert_eq!(totals.phase_record(PhaseName::Warmup).lag_us_max, 90_000);
    }
}
