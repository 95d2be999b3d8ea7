//! Tests of the queue in simulated time, against queueing theory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use dbdyno_load::arrivals::arrivals;
use dbdyno_load::timeline::MeasurementEnd;
use dbdyno_random::Rng;
use dbdyno_schema::plan::{Constant, Phases, Poisson, Report, Shape};

use super::*;

const MS: Nanos = 1_000_000;
const MEAN_SERVICE: f64 = 1e7;
const EVENTS: usize = 200_000;
const UTILISATIONS: [f64; 5] = [0.5, 0.7, 0.8, 0.9, 0.95];

fn queue(shape: &Shape, end: Nanos, limit: Option<u64>, users: u64) -> ArrivalQueue {
    let phases = Phases { warmup_us: 0, measure_us: 0, events: None, drain_us: 0 };
    let timeline = Timeline::new(&phases, &Report::default(), MeasurementEnd::default());
    let arrivals = arrivals(shape, 0, 0, 1, 7).unwrap();
    ArrivalQueue::with_arrivals(arrivals, end, limit, users, Recorder::new(timeline, 0, true))
}

/// The waits of the first events if `users` connections serve them, in units of the mean service time.
fn waits(users: usize, utilisation: f64, mut service: impl FnMut() -> f64) -> Vec<f64> {
    let rate_per_s = utilisation * users as f64 / (MEAN_SERVICE / 1e9);
    let queue = queue(&Shape::Poisson(Poisson { rate_per_s }), Nanos::MAX, None, users as u64);
    let mut free: BinaryHeap<_> = (0..users).map(|user| Reverse((0, user))).collect();
    let mut waits = Vec::with_capacity(EVENTS);
    for number in 0..EVENTS {
        let Reverse((since, user)) = free.pop().unwrap();
        let TakenEvent { due, at } = queue.take(since, number < users).unwrap();
        let start = due.max(at);
        waits.push((start - due) as f64 / MEAN_SERVICE);
        free.push(Reverse((start + (service() * MEAN_SERVICE) as Nanos, user)));
    }
    waits
}

/// Mean and standard error by 40 batches, without the first one, in which the queue fills.
fn mean_and_error(waits: &[f64]) -> (f64, f64) {
    let means: Vec<f64> = waits
        .chunks(EVENTS / 40)
        .skip(1)
        .map(|batch| batch.iter().sum::<f64>() / batch.len() as f64)
        .collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

fn assert_mean(users: usize, utilisation: f64, expected: f64, waits: &[f64]) {
    let (mean, error) = mean_and_error(waits);
    // The 99.99 % point of Student's t with 38 degrees of freedom is 4.3; the last term is the rounding to nanoseconds and the
    // few waits of 64 connections at 50 %.
    let tolerance = 4.3 * error + 1e-5;
    assert!(
        (mean - expected).abs() < tolerance,
        "{users} connections at {utilisation}: {mean} ± {error}, expected {expected}"
    );
    assert!(error < 0.2 * expected + 1e-4, "the test is too weak: {mean} ± {error}");
}

/// Erlang's C formula: the mean wait in M/M/c, in units of the mean service time.
fn mean_wait_of_exponential_service(users: usize, utilisation: f64) -> f64 {
    let offered = users as f64 * utilisation;
    let blocked =
        (1..=users).fold(1.0, |blocked, servers| offered * blocked / (servers as f64 + offered * blocked));
    let delayed = blocked / (1.0 - utilisation * (1.0 - blocked));
    delayed / (users as f64 * (1.0 - utilisation))
}

#[test]
fn waits_with_exponential_service_are_those_of_one_queue() {
    assert!((mean_wait_of_exponential_service(1, 0.9) - 9.0).abs() < 1e-9);
    for users in [1, 2, 4, 16, 64] {
        for utilisation in UTILISATIONS {
            let mut rng = Rng::new(users as u64, &[1]);
            let waits = waits(users, utilisation, || -(1.0 - rng.unit()).ln());
            assert_mean(users, utilisation, mean_wait_of_exponential_service(users, utilisation), &waits);
        }
    }
}

/// The expected values solve Crommelin's equations (1932) for the number of events in M/D/c one service time later,
/// q' = max(q - c, 0) + Poisson(c u), as a linear system in numpy. For c = 1 they are u / (2 (1 - u)).
#[test]
fn waits_with_constant_service_are_those_of_one_queue() {
    let expected = [
        (1, [0.5, 1.166667, 2.0, 4.5, 9.5]),
        (2, [0.176741, 0.493610, 0.903284, 2.146923, 4.643948]),
        (4, [0.049652, 0.189708, 0.386095, 0.999966, 2.244684]),
        (16, [0.000810, 0.016073, 0.052548, 0.192467, 0.496693]),
        (64, [0.000000, 0.000172, 0.002795, 0.026734, 0.095759]),
    ];
    for (users, means) in expected {
        for (utilisation, expected) in UTILISATIONS.into_iter().zip(means) {
            assert_mean(users, utilisation, expected, &waits(users, utilisation, || 1.0));
        }
    }
}

#[test]
fn events_leave_the_queue_in_the_order_of_the_calls() {
    let queue = queue(&Shape::Constant(Constant { rate_per_s: 1000.0 }), 20 * MS, None, 2);
    let taken = |now, is_first| queue.take(now, is_first).map(|taken| (taken.due / MS, taken.at / MS));
    assert_eq!(taken(0, true), Some((0, 0)));
    assert_eq!(taken(0, true), Some((1, 0)), "before it is due");
    assert_eq!(taken(5 * MS, false), Some((2, 5)));
    assert_eq!(taken(4 * MS, false), Some((3, 5)), "a call with an earlier time comes later");
    queue.close(6 * MS);
    assert_eq!([taken(9 * MS, false), taken(9 * MS, false)], [Some((4, 9)), Some((5, 9))]);
    assert_eq!(taken(9 * MS, false), Some((6, 9)), "it was due when the arrivals ended");
    assert_eq!(queue.take(9 * MS, false).map(|taken| taken.due), Some(Nanos::MAX));
}

#[test]
fn a_full_queue_drops_events_once_every_user_has_taken_one() {
    let queue = queue(&Shape::Constant(Constant { rate_per_s: 1000.0 }), Nanos::MAX, Some(1), 2);
    // Events 0 and 1 do not wait, because no user has taken one.
    assert_eq!(queue.advance(2 * MS, Nanos::MAX).overflow, None);
    assert_eq!(queue.advance(4 * MS, Nanos::MAX).overflow, Some(3), "of the length at the first drop");
    assert_eq!(queue.advance(4 * MS, Nanos::MAX).overflow, None, "once");
    let due: Vec<_> = (0..4).map(|taken| queue.take(4 * MS, taken < 2).unwrap().due / MS).collect();
    assert_eq!(due, [0, 1, 2, 5], "3 and 4 were dropped");
}
