//! The generator watches itself: what a worker used and how late it was, per interval.
//!
//! A generator that is late or short of CPU measures itself instead of the server, and has to say so.

use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::histogram::{Histogram, LatencySummary};

use crate::machine;

/// What is shorter says nothing of CPU time: intervals that end while the worker sleeps are closed at one instant.
const SHORTEST: Duration = Duration::from_millis(1);

/// One worker's watch over itself.
#[derive(Debug)]
pub(crate) struct Watch {
    at: Nanos,
    cpu: Duration,
    run_queue_wait: Duration,
    lag: Histogram,
    /// CPU time over wall time when it was last told.
    share: f64,
}

/// How one worker fared in an interval.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fared {
    /// CPU time over wall time.
    pub(crate) cpu: f64,
    pub(crate) run_queue_wait: Duration,
    /// How late it was: by its own timer in a closed loop, at the start of events in an open one.
    pub(crate) lag: LatencySummary,
    /// How long sampled replies lay there before they were read.
    pub(crate) delay: LatencySummary,
}

impl Watch {
    /// Begins now, on the worker's own thread.
    pub(crate) fn new() -> Self {
        Self {
            at: 0,
            cpu: machine::thread_cpu(),
            run_queue_wait: machine::thread_run_queue_wait(),
            lag: Histogram::default(),
            share: 0.0,
        }
    }

    /// Something happened `lag` later than it should have.
    #[inline]
    pub(crate) fn late_by(&mut self, lag: Nanos) {
        self.lag.record_ns(lag);
    }

    /// How the worker fared since the last call, at `now`. Right after that, it still uses the same share of a CPU.
    pub(crate) fn take(&mut self, now: Nanos) -> Fared {
        let wall = Duration::from_nanos(now.saturating_sub(self.at));
        let mut waited = Duration::ZERO;
        if wall >= SHORTEST {
            let (cpu, run_queue_wait) = (machine::thread_cpu(), machine::thread_run_queue_wait());
            self.share = (cpu - self.cpu).as_secs_f64() / wall.as_secs_f64();
            waited = run_queue_wait.saturating_sub(self.run_queue_wait);
            (self.at, self.cpu, self.run_queue_wait) = (now, cpu, run_queue_wait);
        }
        Fared { cpu: self.share, run_queue_wait: waited, lag: self.lag.take(), delay: delays() }
    }
}

impl Fared {
    /// Adds another worker. `cpu` becomes a sum.
    pub(crate) fn merge(&mut self, other: &Fared) {
        self.cpu += other.cpu;
        self.run_queue_wait += other.run_queue_wait;
        self.lag.merge(&other.lag);
        self.delay.merge(&other.delay);
    }
}

/// The delays that were sampled on this thread since the last call.
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
        let mut watch = Watch::new();
        let begun = std::time::Instant::now();
        while begun.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        let now = begun.elapsed().as_nanos() as Nanos;
        let first = watch.take(now);
        assert!(first.cpu > 0.0 && first.cpu < 1.1, "{first:?}");
        assert_eq!(watch.take(now).cpu, first.cpu);
        assert_eq!(watch.take(now + 1000).cpu, first.cpu);
    }
}
