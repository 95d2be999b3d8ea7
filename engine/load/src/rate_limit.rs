//! The limit of a closed loop's rate (`load.max_rate_per_s`), for servers that others use too.

use crate::Nanos;
use crate::plan::Load;

/// A busy machine wakes the load generator late, but not as late as this.
const LATE_AFTER: Nanos = 100_000_000;

/// The instants at which the transactions of one worker may begin: at least 1 / rate apart.
///
/// A worker's share of the rate is that of its connections. Time in which no transaction was ready to begin is lost: after a
/// stall of the server the load does not exceed the limit to catch up.
#[derive(Clone, Copy, Debug)]
pub struct RateLimit {
    gap: f64,
    next_start: f64,
}

impl RateLimit {
    /// The limit of worker `worker` of `workers`, which has `connections` of the load's connections; `None` without a limit.
    pub fn new(load: &Load, connections: u32, worker: u64, workers: u64) -> Option<Self> {
        let rate_per_s = load.max_rate_per_s?;
        let share = f64::from(connections.max(1)) / f64::from(load.connections.max(1));
        let gap = 1e9 / (rate_per_s * share);
        // The workers begin one after the other, not all at once.
        Some(Self { gap, next_start: gap * worker as f64 / workers as f64 })
    }

    /// The place of a transaction whose start was `place`. It gets a new one if the load generator was stopped meanwhile:
    /// all places that have passed would otherwise begin at once.
    pub fn keep_or_move(&mut self, place: Nanos, now: Nanos) -> Nanos {
        if now.saturating_sub(place) > LATE_AFTER { self.start_after(now) } else { place }
    }

    /// When a transaction that is ready at `now` may begin. Transactions begin in the order of these calls.
    pub fn start_after(&mut self, now: Nanos) -> Nanos {
        let start = self.next_start.max(now as f64);
        self.next_start = start + self.gap;
        start as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::Shape;

    const S: Nanos = 1_000_000_000;

    fn limit(connections: u32, worker: u64) -> RateLimit {
        let load = Load {
            connections: 10,
            shape: Shape::Closed,
            think_time: None,
            queue_limit: None,
            reconnect_every: 0,
            answer_timeout_us: None,
            max_rate_per_s: Some(10.0),
            abort_if: None,
        };
        RateLimit::new(&load, connections, worker, 2).unwrap()
    }

    #[test]
    fn transactions_begin_at_the_rate_of_the_connections() {
        let mut limit = limit(5, 1);
        let starts: Vec<_> = (0..4).map(|_| limit.start_after(0)).collect();
        assert_eq!(starts, [S / 10, 3 * S / 10, 5 * S / 10, 7 * S / 10]);
    }

    #[test]
    fn places_that_have_passed_long_ago_are_not_used() {
        let mut limit = limit(10, 0);
        let places: Vec<_> = (0..4).map(|_| limit.start_after(0)).collect();
        assert_eq!(limit.keep_or_move(places[1], S / 10 + S / 100), S / 10, "as late as a busy machine");
        let moved: Vec<_> = places.iter().map(|&place| limit.keep_or_move(place, 2 * S)).collect();
        assert_eq!(moved, [2 * S, 21 * S / 10, 22 * S / 10, 23 * S / 10]);
    }

    #[test]
    fn time_without_transactions_is_not_caught_up() {
        let mut limit = limit(10, 0);
        assert_eq!([0, 7 * S, 7 * S].map(|now| limit.start_after(now)), [0, 7 * S, 7 * S + S / 10]);
    }
}
