//! Pauses of a closed loop's connections: a connection waits for its think time, or until the load curve is so high that
//! the connection is one of the busy ones.

use dbdyno_random::Rng;

use crate::Nanos;
use crate::arrivals::exponential;
use crate::load_curve::LoadCurve;
use crate::plan::{Load, ThinkTime};

/// The pauses that the transactions of a connection demand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionPauses {
    /// Mean of the exponentially distributed pause after the transaction that has ended, in microseconds.
    pub think_us: u64,
    /// The pause before the next transaction, in microseconds.
    pub keying_us: u64,
}

/// A transaction's pause is at most this multiple of its mean, as in TPC-C, clause 5.2.5.4.
const LONGEST_THINK: f64 = 10.0;

/// The pauses of one worker's connections.
#[derive(Clone, Debug)]
pub struct Pauses {
    think: Option<ThinkTime>,
    busy: Option<LoadCurve>,
    rng: Rng,
}

impl Pauses {
    /// The pauses of worker `worker` of `workers`; `None` in an open loop, and if connections begin events as soon as
    /// they are free. Ramps and steps begin at `begin`. `by_transaction`: transactions demand pauses.
    pub fn new(
        load: &Load,
        by_transaction: bool,
        begin: Nanos,
        (worker, workers): (u64, u64),
        seed: u64,
    ) -> Option<Self> {
        if load.shape.is_open() {
            return None;
        }
        let (busy, think) = (load.shape.curve(begin), load.think_time);
        let rng = Rng::new(seed, &[u64::from_be_bytes(*b"thinking"), worker, workers]);
        let has_pauses = by_transaction || think.is_some() || busy.is_some() || load.max_rate_per_s.is_some();
        has_pauses.then_some(Self { think, busy, rng })
    }

    /// When the connection of `user` begins its first event. The run starts at a random point of the connection's pause.
    pub fn first_start(&mut self, user: u64, own: TransactionPauses) -> Nanos {
        let rest = match self.think {
            Some(ThinkTime::Constant { us }) => self.rng.unit() * us as f64 * 1000.0,
            // The rest of an exponentially distributed pause has the same distribution as the whole pause.
            Some(ThinkTime::Exponential { mean_us }) => exponential(&mut self.rng) * mean_us as f64 * 1000.0,
            None if own == TransactionPauses::default() => 0.0,
            None => self.rng.unit() * (own.think_us + own.keying_us) as f64 * 1000.0,
        };
        self.first_busy_time(user, rest as Nanos)
    }

    /// When a connection that became free at `now` begins its next event; `Nanos::MAX` for never. `user` is the number of
    /// the connection's user, counted over all engines of the run.
    pub fn next_start(&mut self, user: u64, now: Nanos, own: TransactionPauses) -> Nanos {
        let pause = match self.think {
            Some(ThinkTime::Constant { us }) => us * 1000,
            Some(ThinkTime::Exponential { mean_us }) => {
                (exponential(&mut self.rng) * mean_us as f64 * 1000.0) as Nanos
            }
            None if own.think_us == 0 => own.keying_us * 1000,
            None => {
                let think = exponential(&mut self.rng).min(LONGEST_THINK) * own.think_us as f64;
                (think * 1000.0) as Nanos + own.keying_us * 1000
            }
        };
        self.first_busy_time(user, now.saturating_add(pause))
    }

    /// The first time, not before `time`, at which the connection of `user` is one of the busy connections.
    fn first_busy_time(&self, user: u64, time: Nanos) -> Nanos {
        let Some(busy) = &self.busy else { return time };
        // The curve's value is rounded to a number of connections, so the first connection is busy from 0.5 on.
        busy.first_time_at_least(user as f64 + 0.5, time).unwrap_or(Nanos::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::{ClosedSteps, ConnectionStep, Poisson, Shape};

    const S: Nanos = 1_000_000_000;
    const NONE: TransactionPauses = TransactionPauses { think_us: 0, keying_us: 0 };

    fn pauses(shape: Shape, think_time: Option<ThinkTime>) -> Option<Pauses> {
        new_pauses(shape, think_time, false)
    }

    fn new_pauses(shape: Shape, think_time: Option<ThinkTime>, by_transaction: bool) -> Option<Pauses> {
        let load = Load {
            connections: 10,
            shape,
            think_time,
            queue_limit: None,
            reconnect_every: 0,
            answer_timeout_us: None,
            max_rate_per_s: None,
            abort_if: None,
        };
        Pauses::new(&load, by_transaction, 0, (0, 1), 1)
    }

    #[test]
    fn a_plain_loop_has_no_pauses() {
        assert!(pauses(Shape::Closed, None).is_none());
        assert!(pauses(Shape::Poisson(Poisson { rate_per_s: 1.0 }), None).is_none());
    }

    #[test]
    fn a_constant_think_time_is_constant_and_the_first_is_random() {
        let mut pauses = pauses(Shape::Closed, Some(ThinkTime::Constant { us: 1_000_000 })).unwrap();
        assert_eq!(pauses.next_start(0, 5 * S, NONE), 6 * S);
        let first: Vec<_> = (0..1000).map(|user| pauses.first_start(user, NONE)).collect();
        assert!(first.iter().all(|&at| at < S));
        let early = first.iter().filter(|&&at| at < S / 2).count();
        // Four standard deviations of a fair coin thrown 1000 times are 63.
        assert!(early.abs_diff(500) < 63, "{early}");
    }

    #[test]
    fn an_exponential_think_time_has_its_mean_and_variance() {
        let mut pauses = pauses(Shape::Closed, Some(ThinkTime::Exponential { mean_us: 1000 })).unwrap();
        let drawn: Vec<_> = (0..100_000).map(|_| pauses.next_start(0, 0, NONE) as f64 / 1e6).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|pause| (pause - mean).powi(2)).sum::<f64>() / 1e5;
        // Standard errors: 0.32 % of the mean, 0.9 % of the variance.
        assert!((mean - 1.0).abs() < 0.013 && (variance - 1.0).abs() < 0.036, "{mean} {variance}");
    }

    #[test]
    fn transactions_add_their_pauses() {
        let mut pauses = new_pauses(Shape::Closed, None, true).unwrap();
        let own = TransactionPauses { think_us: 2_000_000, keying_us: 3_000_000 };
        let drawn: Vec<f64> =
            (0..100_000).map(|_| pauses.next_start(0, S, own) as f64 / S as f64 - 4.0).collect();
        // The standard error of the mean of 100,000 values with the mean 2 is 0.0063; cutting off at ten times the mean
        // lowers it by 0.001.
        let mean = drawn.iter().sum::<f64>() / 1e5;
        assert!((mean - 2.0).abs() < 0.03, "{mean}");
        assert!(drawn.iter().all(|&think| (0.0..=20.0001).contains(&think)));
        assert_eq!(pauses.next_start(0, S, TransactionPauses { think_us: 0, keying_us: 5 }), S + 5000);
        let first: Vec<_> = (0..1000).map(|_| pauses.first_start(0, own)).collect();
        assert!(first.iter().all(|&at| at < 5 * S) && first.iter().any(|&at| at > 4 * S), "{first:?}");
        assert_eq!(pauses.first_start(0, NONE), 0);
    }

    #[test]
    fn steps_of_connections_add_up_over_workers() {
        let step = |connections, seconds: u64| ConnectionStep { connections, for_us: seconds * 1_000_000 };
        let shape =
            Shape::ClosedSteps(ClosedSteps { steps: vec![step(2, 1), step(5, 1), step(0, 1), step(3, 1)] });
        let mut pauses = pauses(shape, None).unwrap();
        let mut busy = |time| (0..10).filter(|&user| pauses.next_start(user, time, NONE) == time).count();
        assert_eq!([0, 1, 2, 3, 9].map(|second| busy(second * S)), [2, 5, 0, 3, 3]);
        assert_eq!(pauses.next_start(4, 2 * S, NONE), Nanos::MAX, "the fifth connection is never busy again");
        assert_eq!(pauses.next_start(2, 2 * S, NONE), 3 * S);
    }
}
