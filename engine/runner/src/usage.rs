//! A worker's measurements of itself, per interval: its CPU time and its delays.

use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::histogram::{Histogram, LatencySummary};

use crate::machine;

/// Minimum length of an interval for a usable CPU share. Intervals that end while the worker sleeps are all closed at the
/// instant at which it wakes up, so they can be shorter.
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Measures the CPU time and the delays of one worker.
#[derive(Debug)]
pub(crate) struct UsageMeter {
    last_taken: Nanos,
    cpu: Duration,
    run_queue_wait: Duration,
    lag: Histogram,
    /// CPU time divided by elapsed time, in the last interval that was long enough.
    cpu_share: f64,
}

/// The CPU time and delays of one or several workers in an interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct GeneratorUsage {
    /// CPU time divided by elapsed time.
    pub(crate) cpu: f64,
    pub(crate) run_queue_wait: Duration,
    /// Delays of the worker's timer in a closed loop, and of the start of events in an open loop.
    pub(crate) lag: LatencySummary,
    /// The time between the arrival of sampled replies and their reading.
    pub(crate) delay: LatencySummary,
}

impl UsageMeter {
    /// Starts the measurement. Must be called on the worker's thread.
    pub(crate) fn new() -> Self {
        Self {
            last_taken: 0,
            cpu: machine::thread_cpu(),
            run_queue_wait: machine::thread_run_queue_wait(),
            lag: Histogram::default(),
            cpu_share: 0.0,
        }
    }

    #[inline]
    pub(crate) fn record_lag(&mut self, lag: Nanos) {
        self.lag.record_ns(lag);
    }

    /// The usage since the last call. The CPU share covers at least [`INTERVAL_MIN`]: if a call comes sooner, the share is
    /// that of the call before.
    pub(crate) fn take(&mut self, now: Nanos) -> GeneratorUsage {
        let wall = Duration::from_nanos(now.saturating_sub(self.last_taken));
        let mut waited = Duration::ZERO;
        if wall >= INTERVAL_MIN {
            let (cpu, run_queue_wait) = (machine::thread_cpu(), machine::thread_run_queue_wait());
            self.cpu_share = (cpu - self.cpu).as_secs_f64() / wall.as_secs_f64();
            waited = run_queue_wait.saturating_sub(self.run_queue_wait);
            (self.last_taken, self.cpu, self.run_queue_wait) = (now, cpu, run_queue_wait);
        }
        GeneratorUsage {
            cpu: self.cpu_share,
            run_queue_wait: waited,
            lag: self.lag.take(),
            delay: take_delays(),
        }
    }
}

impl GeneratorUsage {
    /// Adds another worker's usage. `cpu` becomes the sum over the workers.
    pub(crate) fn merge(&mut self, other: &GeneratorUsage) {
        self.cpu += other.cpu;
        self.run_queue_wait += other.run_queue_wait;
        self.lag.merge(&other.lag);
        self.delay.merge(&other.delay);
    }
}

/// The delays sampled on this thread since the last call.
fn take_delays() -> LatencySummary {
    let mut delays = Histogram::default();
    dbdyno_wire::delay::take_delays().into_iter().for_each(|delay_ns| delays.record_ns(delay_ns));
    delays.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_length_has_the_previous_cpu_share() {
        let mut meter = UsageMeter::new();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let now = begun.elapsed().as_nanos() as Nanos;
        let first = meter.take(now);
        assert!(first.cpu > 0.0 && first.cpu < 1.1, "{first:?}");
        assert_eq!(meter.take(now).cpu, first.cpu);
        assert_eq!(meter.take(now + 1000).cpu, first.cpu);
    }
}
