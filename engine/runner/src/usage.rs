//! A worker's measurements of itself, per interval: its CPU time and its delays.

use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::histogram::{Histogram, LatencySummary};

use crate::machine;

/// Shorter intervals give no usable CPU share: intervals that end while the worker sleeps are closed at the same
/// instant.
const SHORTEST: Duration = Duration::from_millis(1);

/// Measures one worker.
#[derive(Debug)]
pub(crate) struct UsageMeter {
    at: Nanos,
    cpu: Duration,
    run_queue_wait: Duration,
    lag: Histogram,
    /// CPU time divided by elapsed time, in the last interval that was long enough.
    share: f64,
}

/// The resources and delays of one worker, or of several, in an interval.
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
            at: 0,
            cpu: machine::thread_cpu(),
            run_queue_wait: machine::thread_run_queue_wait(),
            lag: Histogram::default(),
            share: 0.0,
        }
    }

    #[inline]
    pub(crate) fn record_lag(&mut self, lag: Nanos) {
        self.lag.record_ns(lag);
    }

    /// The usage from the last call to `now`. If that is too short, the CPU share is that of the previous call.
    pub(crate) fn take(&mut self, now: Nanos) -> GeneratorUsage {
        let wall = Duration::from_nanos(now.saturating_sub(self.at));
        let mut waited = Duration::ZERO;
        if wall >= SHORTEST {
            let (cpu, run_queue_wait) = (machine::thread_cpu(), machine::thread_run_queue_wait());
            self.share = (cpu - self.cpu).as_secs_f64() / wall.as_secs_f64();
            waited = run_queue_wait.saturating_sub(self.run_queue_wait);
            (self.at, self.cpu, self.run_queue_wait) = (now, cpu, run_queue_wait);
        }
        GeneratorUsage { cpu: self.share, run_queue_wait: waited, lag: self.lag.take(), delay: delays() }
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
fn delays() -> LatencySummary {
    let mut delays = Histogram::default();
    dbdyno_wire::delay::take().into_iter().for_each(|delay_ns| delays.record_ns(delay_ns));
    delays.take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_closed_at_one_instant_use_no_more_than_a_cpu() {
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
