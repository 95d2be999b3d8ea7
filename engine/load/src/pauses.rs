//! Pauses of a closed loop's connections: a connection waits for its think time, or until the load curve is so high that
//! the connection is one of the busy ones.

use dbdyno_random::Rng;

use crate::Nanos;
use crate::arrivals::exponential;
use crate::load_curve::LoadCurve;
use crate::plan::{Load, ThinkTime};

/// The pauses of one worker's connections.
#[derive(Clone, Debug)]
pub struct Pauses {
    think: Option<ThinkTime>,
    busy: Option<LoadCurve>,
    rng: Rng,
}

impl Pauses {
    /// The pauses of worker `worker` of `workers`; `None` in an open loop, and if connections begin events as soon as
    /// they are free. Ramps and steps begin at `begin`.
    pub fn new(load: &Load, begin: Nanos, worker: u64, workers: u64, seed: u64) -> Option<Self> {
        if load.shape.is_open() {
            return None;
        }
        let (busy, think) = (load.shape.curve(begin), load.think_time);
        let rng = Rng::new(seed, &[u64::from_be_bytes(*b"thinking"), worker, workers]);
        let has_pauses = think.is_some() || busy.is_some() || load.max_rate_per_s.is_some();
        has_pauses.then_some(Self { think, busy, rng })
    }

    /// When the connection of `user` begins its first event. The run starts at a random point of the connection's pause.
    pub fn first_start(&mut self, user: u64) -> Nanos {
        let rest = match self.think {
            Some(ThinkTime::Constant { us }) => self.rng.unit() * us as f64 * 1000.0,
            // The rest of an exponentially distributed pause has the same distribution as the whole pause.
            Some(ThinkTime::Exponential { mean_us }) => exponential(&mut self.rng) * mean_us as f64 * 1000.0,
            None => 0.0,
        };
        self.first_busy_time(user, rest as Nanos)
    }

    /// When a connection that became free at `now` begins its next event; `Nanos::MAX` for never. `user` is the number of
    /// the connection's user, counted over all engines of the run.
    pub fn next_start(&mut self, user: u64, now: Nanos) -> Nanos {
        let pause = match self.think {
            Some(ThinkTime::Constant { us }) => us * 1000,
            Some(ThinkTime::Exponential { mean_us }) => {
                (exponential(&mut self.rng) * mean_us as f64 * 1000.0) as Nanos
            }
            None => 0,
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

    fn pauses(shape: Shape, think_time: Option<ThinkTime>) -> Option<Pauses> {
        Pauses::new(
            &Load {
                connections: 10,
                shape,
                think_time,
                queue_limit: None,
                reconnect_every: 0,
                answer_timeout_us: None,
                max_rate_per_s: None,
                abort_if: None,
            },
            0,
            0,
            1,
            1,
        )
    }

    #[test]
    fn a_plain_loop_has_no_pauses() {
        assert!(pauses(Shape::Closed, None).is_none());
        assert!(pauses(Shape::Poisson(Poisson { rate_per_s: 1.0 }), None).is_none());
    }

    #[test]
    fn a_constant_think_time_is_constant_and_the_first_is_random() {
        let mut pauses = pauses(Shape::Closed, Some(ThinkTime::Constant { us: 1_000_000 })).unwrap();
        assert_eq!(pauses.next_start(0, 5 * S), 6 * S);
        let first: Vec<_> = (0..1000).map(|user| pauses.first_start(user)).collect();
        assert!(first.iter().all(|&at| at < S));
        let early = first.iter().filter(|&&at| at < S / 2).count();
        // Four standard deviations of a fair coin thrown 1000 times are 63.
        assert!(early.abs_diff(500) < 63, "{early}");
    }

    #[test]
    fn an_exponential_think_time_has_its_mean_and_variance() {
        let mut pauses = pauses(Shape::Closed, Some(ThinkTime::Exponential { mean_us: 1000 })).unwrap();
        let drawn: Vec<_> = (0..100_000).map(|_| pauses.next_start(0, 0) as f64 / 1e6).collect();
        let mean = drawn.iter().sum::<f64>() / 1e5;
        let variance = drawn.iter().map(|pause| (pause - mean).powi(2)).sum::<f64>() / 1e5;
        // Standard errors: 0.32 % of the mean, 0.9 % of the variance.
        assert!((mean - 1.0).abs() < 0.013 && (variance - 1.0).abs() < 0.036, "{mean} {variance}");
    }

    #[test]
    fn steps_of_connections_add_up_over_workers() {
        let step = |connections, seconds: u64| ConnectionStep { connections, for_us: seconds * 1_000_000 };
        let shape =
            Shape::ClosedSteps(ClosedSteps { steps: vec![step(2, 1), step(5, 1), step(0, 1), step(3, 1)] });
        let mut pauses = pauses(shape, None).unwrap();
        let mut busy = |time| (0..10).filter(|&user| pauses.next_start(user, time) == time).count();
        assert_eq!([0, 1, 2, 3, 9].map(|second| busy(second * S)), [2, 5, 0, 3, 3]);
        assert_eq!(pauses.next_start(4, 2 * S), Nanos::MAX, "the fifth connection is never busy again");
        assert_eq!(pauses.next_start(2, 2 * S), 3 * S);
    }
}
