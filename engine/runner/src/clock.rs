//! Time since the start of the run.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dbdyno_load::Nanos;

/// Monotonic time since a common start, the same for all workers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    /// The time of a simulation.
    #[cfg(test)]
    simulated: Option<&'static std::sync::atomic::AtomicU64>,
}

impl Clock {
    pub(crate) fn starting_at(start: Instant) -> Self {
        Self {
            start,
            #[cfg(test)]
            simulated: None,
        }
    }

    #[cfg(test)]
    pub(crate) fn simulated(time: &'static std::sync::atomic::AtomicU64) -> Self {
        Self { start: Instant::now(), simulated: Some(time) }
    }

    /// Nanoseconds since the start; 0 before it.
    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        #[cfg(test)]
        if let Some(time) = self.simulated {
            return time.load(std::sync::atomic::Ordering::Relaxed);
        }
        self.start.elapsed().as_nanos() as Nanos
    }

    pub(crate) fn instant(&self, at: Nanos) -> Instant {
        self.start + Duration::from_nanos(at)
    }
}

/// The current time in microseconds since 1970.
pub fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

/// The instant at which the system clock shows `at_unix_us`, or now if that time has passed. Converted once, so that
/// changes of the system clock during the run have no effect.
pub(crate) fn instant_of(at_unix_us: u64) -> Instant {
    let (instant, wall) = (Instant::now(), unix_us());
    instant + Duration::from_micros(at_unix_us.saturating_sub(wall))
}
