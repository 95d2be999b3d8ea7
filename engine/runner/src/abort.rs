//! Ends a run whose load exceeds a limit of `load.abort_if`.

use std::collections::VecDeque;

use dbdyno_load::Nanos;
use dbdyno_load::plan::{AbortIf, LatencyLimit};
use dbdyno_metrics::spans::Span;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::{EndReason, Failure};

use crate::RunEnd;

/// The last interval is judged, and all of this time together: it shows what one interval has too few events for.
const WINDOW_MAX: Nanos = 5_000_000_000;
/// A limit counts as exceeded if a load that is exactly at it would show so many slow events, or errors, less often than
/// once in so many intervals. One slow event is no reason to end a run.
const CHANCE: f64 = 1e-4;

/// Compares the intervals of a run with the limits.
pub(crate) struct AbortCheck {
    limits: AbortIf,
    intervals: VecDeque<Counted>,
}

/// What an interval contributes.
struct Counted {
    start: Nanos,
    end: Nanos,
    events: u64,
    dropped: u64,
    errors: u64,
    latency: Buckets,
}

impl AbortCheck {
    pub(crate) fn new(limits: AbortIf) -> Self {
        Self { limits, intervals: VecDeque::new() }
    }

    /// Adds an interval. Returns the end of the run if the last intervals exceed a limit.
    pub(crate) fn add(&mut self, span: &Span) -> Option<RunEnd> {
        self.intervals.push_back(Counted {
            start: span.start,
            end: span.end,
            events: span.counts.events,
            dropped: span.counts.dropped,
            errors: span.counts.errors.values().sum(),
            latency: span.latency.buckets.clone(),
        });
        let is_old = |interval: &Counted| span.end.saturating_sub(interval.start) > WINDOW_MAX;
        while self.intervals.len() > 1 && self.intervals.front().is_some_and(is_old) {
            self.intervals.pop_front();
        }
        let text = self.exceeded(&span.outstanding_us).or_else(|| self.stalled(&span.outstanding_us))?;
        let fix = "the load was ended because of load.abort_if; lower load.connections or load.max_rate, or raise the limit, \
                   in a new run";
        let failure = Failure { text, fix: Some(fix.to_owned()), ..Failure::default() };
        Some(RunEnd { reason: EndReason::LimitExceeded, failure: Some(failure) })
    }

    /// That no transaction ended in the longest window, and all in progress exceed a limit: however few they are.
    fn stalled(&self, outstanding: &Buckets) -> Option<String> {
        let window = self.sum(self.intervals.len())?;
        let last = self.intervals.back()?;
        // The next interval would be outside of the longest window, or almost.
        let is_longest = window.end - window.start + (last.end - last.start) > WINDOW_MAX;
        let count = outstanding.count();
        let is_exceeded = |limit: &&LatencyLimit| count_above(outstanding, limit.most_us) == count;
        let limit = self.limits.latency.iter().find(is_exceeded)?;
        // After a pause a transaction may have begun just now.
        let was_busy = count_above(outstanding, (window.end - window.start) / 1000) > 0;
        (is_longest && window.events == 0 && was_busy).then(|| {
            format!(
                "p{} exceeds {}: no transaction ended in the last {:.1} s, and all {count} in progress have taken longer",
                limit.percentile,
                milliseconds(limit.most_us),
                window.seconds()
            )
        })
    }

    /// What exceeds a limit in the last interval, or in all together. `outstanding` has the time since the due time of every
    /// event that has not ended.
    fn exceeded(&self, outstanding: &Buckets) -> Option<String> {
        [1, self.intervals.len()].into_iter().filter_map(|count| self.sum(count)).find_map(|window| {
            let latency = self.limits.latency.iter().find_map(|limit| window.slow(limit, outstanding));
            latency.or_else(|| window.failing(self.limits.errors_per_1000?, outstanding))
        })
    }

    /// The last `count` intervals together.
    fn sum(&self, count: usize) -> Option<Counted> {
        let mut intervals = self.intervals.iter().rev().take(count);
        let last = intervals.next()?;
        let mut sum = Counted { latency: last.latency.clone(), ..*last };
        for earlier in intervals {
            sum.start = earlier.start;
            sum.events += earlier.events;
            sum.dropped += earlier.dropped;
            sum.errors += earlier.errors;
            sum.latency.merge(&earlier.latency);
        }
        Some(sum)
    }
}

impl Counted {
    fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }

    /// That more transactions took longer than the limit allows. Those that have not ended count once they have, and those
    /// that a full queue has dropped count as slow.
    fn slow(&self, limit: &LatencyLimit, outstanding: &Buckets) -> Option<String> {
        let outstanding = count_above(outstanding, limit.most_us);
        let above = count_above(&self.latency, limit.most_us) + outstanding + self.dropped;
        let events = self.events + outstanding + self.dropped;
        // Percentiles such as 99.9 are no exact fractions.
        let share = (1.0 - limit.percentile / 100.0).max(1e-9);
        is_beyond_chance(above as f64, events as f64 * share, events as f64).then(|| {
            format!(
                "p{} exceeds {}: in the last {:.1} s {above} of {events} transactions took longer, {outstanding} of which have \
                 not ended{}",
                limit.percentile,
                milliseconds(limit.most_us),
                self.seconds(),
                if self.dropped > 0 { format!(" and {} were dropped", self.dropped) } else { String::new() }
            )
        })
    }

    /// That more errors occurred than the limit allows.
    fn failing(&self, most: f64, outstanding: &Buckets) -> Option<String> {
        let Self { events, errors, .. } = self;
        // Transactions in progress may have failed already. An event may fail many times, so the number of errors has no
        // upper limit.
        let tried = (events + outstanding.count()).max(1);
        is_beyond_chance(*errors as f64, most * tried as f64 / 1000.0, f64::INFINITY).then(|| {
            format!(
                "more than {most} errors per 1,000 transactions: in the last {:.1} s {errors} errors and {events} transactions",
                self.seconds()
            )
        })
    }
}

/// Whether `count` or more has a chance below [`CHANCE`] where `expected` is the mean: the bound of Chernoff (A measure of
/// asymptotic efficiency, 1952) for a binomial count of at most `most`, or for a Poisson count if that is infinite.
fn is_beyond_chance(count: f64, expected: f64, most: f64) -> bool {
    if count <= expected {
        return false;
    }
    if expected <= 0.0 {
        return true;
    }
    let rest = most - count;
    let of_rest = if most.is_infinite() {
        expected - count
    } else if rest > 0.0 {
        rest * (rest / (most - expected)).ln()
    } else {
        0.0
    };
    -(count * (count / expected).ln() + of_rest) < CHANCE.ln()
}

/// Number of values above `most_us`, as far as the buckets can tell.
fn count_above(buckets: &Buckets, most_us: u64) -> u64 {
    buckets.0.iter().filter(|&&(lower_us, _)| lower_us >= most_us).map(|&(_, count)| count).sum()
}

fn milliseconds(us: u64) -> String {
    format!("{} ms", us as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dbdyno_metrics::histogram::LatencySummary;
    use dbdyno_schema::record::{Counts, PhaseName};

    const S: Nanos = 1_000_000_000;

    fn check(percentile: f64, most_us: u64, errors_per_1000: Option<f64>) -> AbortCheck {
        let latency = vec![LatencyLimit { percentile, most_us }];
        AbortCheck::new(AbortIf { latency, errors_per_1000 })
    }

    /// The interval that ends at `second`; latencies and outstanding times as (microseconds, count).
    fn span(second: u64, latency: &[(u64, u64)], outstanding: &[(u64, u64)], errors: u64) -> Span {
        let buckets = Buckets(latency.to_vec());
        let events = buckets.count();
        Span {
            phase: PhaseName::Measure,
            start: (second - 1) * S,
            end: second * S,
            counts: Counts { events, errors: [("1213".to_owned(), errors)].into(), ..Counts::default() },
            gaps: Vec::new(),
            latency: LatencySummary { buckets, ..LatencySummary::default() },
            service: LatencySummary::default(),
            backlog: 0,
            in_flight: 0,
            users_active: 1,
            users: Vec::new(),
            log_buckets: Vec::new(),
            outstanding_us: Buckets(outstanding.to_vec()),
        }
    }

    fn text(ended: Option<RunEnd>) -> String {
        let ended = ended.unwrap();
        assert_eq!(ended.reason, EndReason::LimitExceeded);
        ended.failure.unwrap().text
    }

    #[test]
    fn a_percentile_above_its_limit_ends_the_run() {
        let mut check = check(99.0, 5_000, None);
        assert!(check.add(&span(1, &[(100, 985), (5_000, 15)], &[], 0)).is_none(), "1.5 % may be chance");
        let ended = check.add(&span(2, &[(100, 970), (5_000, 30)], &[], 0));
        assert_eq!(
            text(ended),
            "p99 exceeds 5 ms: in the last 1.0 s 30 of 1000 transactions took longer, 0 of which have not ended"
        );
    }

    #[test]
    fn a_percentile_slightly_above_its_limit_ends_the_run_after_seconds() {
        let mut check = check(99.0, 5_000, None);
        let second = |second| span(second, &[(100, 980), (5_000, 20)], &[], 0);
        let ended = (1..10).find_map(|number| check.add(&second(number)));
        assert!(text(ended).contains("in the last 3.0 s 60 of 3000"));
    }

    #[test]
    fn transactions_that_do_not_end_count_by_the_time_they_have_waited() {
        let mut check = check(50.0, 500_000, None);
        assert!(check.add(&span(1, &[(100, 30)], &[(400_000, 94)], 0)).is_none());
        let ended = check.add(&span(2, &[(100, 30)], &[(600_000, 94)], 0));
        assert!(text(ended).contains("94 of 124 transactions took longer, 94 of which have not ended"));
    }

    #[test]
    fn a_few_slow_transactions_end_no_run() {
        for (percentile, slow) in [(50.0, 10), (90.0, 3), (99.0, 1), (99.9, 1)] {
            let mut check = check(percentile, 1_000, None);
            for second in 1..=30 {
                let latency: &[_] =
                    if second == 20 { &[(100, 30 - slow), (9_000, slow)] } else { &[(100, 30)] };
                assert!(check.add(&span(second, latency, &[(9_000, 1)], 0)).is_none(), "p{percentile}");
            }
        }
    }

    #[test]
    fn a_stall_ends_the_run_at_once_if_enough_connections_wait() {
        let mut several = check(99.0, 500_000, None);
        assert!(several.add(&span(1, &[(100, 900)], &[], 0)).is_none());
        assert!(text(several.add(&span(2, &[], &[(900_000, 4)], 0))).contains("in the last 1.0 s 4 of 4"));
        let mut single = check(99.0, 500_000, None);
        assert!(single.add(&span(1, &[(100, 900)], &[], 0)).is_none());
        let waits = |second: u64| span(second, &[], &[((second - 1) * 1_000_000, 1)], 0);
        assert!((2..=5).all(|second| single.add(&waits(second)).is_none()));
        assert_eq!(
            text(single.add(&waits(6))),
            "p99 exceeds 500 ms: no transaction ended in the last 5.0 s, and all 1 in progress have taken longer"
        );
    }

    #[test]
    fn a_run_without_any_transaction_exceeds_nothing() {
        let mut check = check(99.0, 1_000, Some(0.0));
        assert!((1..20).all(|second| check.add(&span(second, &[], &[], 0)).is_none()));
    }

    #[test]
    fn too_many_errors_end_the_run() {
        let mut check = check(99.0, S, Some(10.0));
        assert!(check.add(&span(1, &[(100, 20)], &[], 1)).is_none(), "one error");
        assert!(
            check.add(&span(2, &[(100, 1000)], &[], 11)).is_none(),
            "11 where 10 are allowed may be chance"
        );
        let ended = check.add(&span(3, &[(100, 1000)], &[], 40));
        assert_eq!(
            text(ended),
            "more than 10 errors per 1,000 transactions: in the last 1.0 s 40 errors and 1000 transactions"
        );
    }

    #[test]
    fn one_error_ends_no_run_whose_transactions_are_long() {
        let mut check = check(99.0, 60_000_000, Some(200.0));
        assert!(check.add(&span(1, &[], &[(900_000, 24)], 1)).is_none());
        assert!(check.add(&span(2, &[], &[(1_900_000, 24)], 40)).is_some());
    }

    #[test]
    fn dropped_transactions_are_slow() {
        let mut check = check(99.0, 500_000, None);
        let mut overloaded = span(1, &[(50_000, 40)], &[], 0);
        overloaded.counts.dropped = 160;
        assert!(
            text(check.add(&overloaded))
                .contains("160 of 200 transactions took longer, 0 of which have not ended and 160")
        );
    }

    #[test]
    fn a_pause_before_a_slow_transaction_is_no_stall() {
        let mut check = check(99.0, 300_000, None);
        assert!((1..=5).all(|second| check.add(&span(second, &[], &[], 0)).is_none()));
        assert!(check.add(&span(6, &[], &[(400_000, 1)], 0)).is_none());
    }

    #[test]
    fn without_allowed_errors_one_ends_the_run() {
        let mut check = check(99.0, S, Some(0.0));
        assert!(text(check.add(&span(1, &[(100, 20)], &[], 1))).contains("1 errors and 20 transactions"));
    }

    #[test]
    fn the_bound_of_chance_is_above_the_exact_chance() {
        // By scipy: binom.sf(k - 1, 1000, 0.01) is 1.1e-4 at 24 and 2.1e-7 at 30; poisson.sf(k - 1, 10) is 2.3e-6 at 28.
        assert!(!is_beyond_chance(24.0, 10.0, 1000.0));
        assert!(is_beyond_chance(30.0, 10.0, 1000.0));
        assert!(is_beyond_chance(28.0, 10.0, f64::INFINITY));
        // All of n: the chance is share to the power of n.
        assert!(!is_beyond_chance(13.0, 6.5, 13.0));
        assert!(is_beyond_chance(14.0, 7.0, 14.0));
    }
}
