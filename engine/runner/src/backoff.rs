//! Pauses between attempts to connect. They double with each attempt and have random jitter.

use std::time::Duration;

use dbdyno_random::Rng;
use dbdyno_schema::plan::Reconnect;

/// The pauses between attempts to connect during one outage.
pub(crate) struct Backoff {
    next_us: u64,
    max_us: u64,
}

impl Backoff {
    pub(crate) fn new(settings: &Reconnect) -> Self {
        Self { next_us: settings.first_us, max_us: settings.max_us }
    }

    /// The next pause: a random time between half of the current upper bound and the bound.
    pub(crate) fn next_pause(&mut self, rng: &mut Rng) -> Duration {
        let bound_us = self.next_us.min(self.max_us);
        self.next_us = bound_us.saturating_mul(2);
        Duration::from_micros(bound_us - rng.below(bound_us / 2 + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let settings = Reconnect { first_us: 10_000, max_us: 60_000, ..Reconnect::default() };
        let mut rng = Rng::new(1, &[]);
        for _ in 0..1000 {
            let mut backoff = Backoff::new(&settings);
            for bound_us in [10_000, 20_000, 40_000, 60_000, 60_000] {
                let pause_us = backoff.next_pause(&mut rng).as_micros() as u64;
                assert!((bound_us / 2..=bound_us).contains(&pause_us), "{pause_us} of {bound_us}");
            }
        }
    }

    #[test]
    fn pauses_are_spread_evenly() {
        let mut rng = Rng::new(2, &[]);
        let mut pauses = (0..10_000).map(|_| Backoff::new(&Reconnect::default()).next_pause(&mut rng));
        let early = pauses.by_ref().filter(|pause| pause.as_micros() < 7_500).count();
        // Half of 10,000; four standard deviations are 200.
        assert!(early.abs_diff(5_000) < 200, "{early}");
    }
}
