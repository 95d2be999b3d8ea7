//! Ends a run whose load exceeds a limit of `load.abort_if`.

use std::collections::VecDeque;

use dbdyno_load::Nanos;
use dbdyno_load::plan::{AbortIf, LatencyLimit};
use dbdyno_metrics::spans::Span;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::{EndReason, Failure};

use crate::RunEnd;

/// Fewer events than this say little about a percentile, so earlier intervals are added to the last one,
const EVENTS_MIN: u64 = 20;
/// but only intervals within this time. Then the events are judged however few they are.
const WINDOW_MAX: Nanos = 5_000_000_000;

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
            errors: span.counts.errors.values().sum(),
            latency: span.latency.buckets.clone(),
        });
        let is_old = |interval: &Counted| span.end.saturating_sub(interval.start) > WINDOW_MAX;
        while self.intervals.len() > 1 && self.intervals.front().is_some_and(is_old) {
            self.intervals.pop_front();
        }
        let text = self.stalled(&span.outstanding_us).or_else(|| self.exceeded(&span.outstanding_us))?;
        let fix = "the load was ended because of load.abort_if; lower load.connections or load.max_rate, or raise the limit";
        let failure = Failure { text, fix: Some(fix.to_owned()), ..Failure::default() };
        Some(RunEnd { reason: EndReason::LimitExceeded, failure: Some(failure) })
    }

    /// That no transaction ended in the last interval, and all in progress exceed a limit: however few they are.
    fn stalled(&self, outstanding: &Buckets) -> Option<String> {
        let last = self.intervals.back().filter(|last| last.events == 0)?;
        let count = outstanding.count();
        let is_exceeded =
            |limit: &&LatencyLimit| count > 0 && count_above(outstanding, limit.most_us) == count;
        let limit = self.limits.latency.iter().find(is_exceeded)?;
        let length = (last.end - last.start) as f64 / 1e9;
        Some(format!(
            "p{} exceeds {}: no transaction ended in the last {length:.1} s, and all {count} in progress have taken longer",
            limit.percentile,
            milliseconds(limit.most_us)
        ))
    }

    /// What exceeds a limit. `outstanding` has the time since the due time of every event that has not ended.
    fn exceeded(&self, outstanding: &Buckets) -> Option<String> {
        let window = self.window(outstanding)?;
        let length = (window.end - window.start) as f64 / 1e9;
        let slow = |limit: &LatencyLimit| {
            let outstanding = count_above(outstanding, limit.most_us);
            let above = count_above(&window.latency, limit.most_us) + outstanding;
            let events = window.events + outstanding;
            let is_exceeded = above as f64 > events as f64 * (1.0 - limit.percentile / 100.0);
            is_exceeded.then(|| {
                format!(
                    "p{} exceeds {}: in the last {length:.1} s {above} of {events} transactions took longer, {outstanding} of \
                     which have not ended",
                    limit.percentile,
                    milliseconds(limit.most_us)
                )
            })
        };
        let failing = |most: f64| {
            let Counted { events, errors, .. } = window;
            let is_exceeded = errors as f64 * 1000.0 > most * events as f64;
            is_exceeded.then(|| {
                format!(
                    "more than {most} errors per 1,000 transactions: in the last {length:.1} s {errors} errors and {events} \
                     transactions"
                )
            })
        };
        self.limits.latency.iter().find_map(slow).or_else(|| self.limits.errors_per_1000.and_then(failing))
    }

    /// The latest intervals that have enough events together; `None` if there may be enough later.
    fn window(&self, outstanding: &Buckets) -> Option<Counted> {
        let waiting = outstanding.count();
        let mut intervals = self.intervals.iter().rev();
        let last = intervals.next()?;
        let mut sum = Counted { latency: last.latency.clone(), ..*last };
        while sum.events + sum.errors + waiting < EVENTS_MIN {
            let Some(earlier) = intervals.next() else { break };
            sum.start = earlier.start;
            sum.events += earlier.events;
            sum.errors += earlier.errors;
            sum.latency.merge(&earlier.latency);
        }
        let is_enough = sum.events + sum.errors + waiting >= EVENTS_MIN;
        // The next interval would be outside of the longest window, or almost.
        let is_longest = sum.end - sum.start + (last.end - last.start) > WINDOW_MAX;
        (is_enough || is_longest).then_some(sum)
    }
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
        assert!(check.add(&span(1, &[(100, 990), (5_000, 10)], &[], 0)).is_none(), "1 % is not above p99");
        let ended = check.add(&span(2, &[(100, 989), (5_000, 11)], &[], 0));
        assert_eq!(
            text(ended),
            "p99 exceeds 5 ms: in the last 1.0 s 11 of 1000 transactions took longer, 0 of which have not ended"
        );
    }

    #[test]
    fn transactions_that_do_not_end_count_by_the_time_they_have_waited() {
        let mut check = check(50.0, 500_000, None);
        assert!(check.add(&span(1, &[(100, 30)], &[(400_000, 64)], 0)).is_none());
        let ended = check.add(&span(2, &[(100, 30)], &[(600_000, 64)], 0));
        assert!(text(ended).contains("64 of 94 transactions took longer, 64 of which have not ended"));
    }

    #[test]
    fn a_stall_ends_the_run_at_once() {
        let mut check = check(99.0, 500_000, None);
        assert!(check.add(&span(1, &[(100, 1)], &[(900_000, 2)], 0)).is_none(), "one transaction ended");
        assert_eq!(
            text(check.add(&span(2, &[], &[(900_000, 2)], 0))),
            "p99 exceeds 500 ms: no transaction ended in the last 1.0 s, and all 2 in progress have taken longer"
        );
    }

    #[test]
    fn few_transactions_are_judged_together_after_five_seconds() {
        let mut check = check(99.0, 1_000, None);
        for second in 1..=4 {
            assert!(check.add(&span(second, &[(2_000, 1)], &[], 0)).is_none(), "second {second}");
        }
        assert!(text(check.add(&span(5, &[(100, 1)], &[], 0))).contains("in the last 5.0 s 4 of 5"));
    }

    #[test]
    fn a_run_without_any_transaction_exceeds_nothing() {
        let mut check = check(99.0, 1_000, Some(0.0));
        assert!((1..20).all(|second| check.add(&span(second, &[], &[], 0)).is_none()));
    }

    #[test]
    fn too_many_errors_end_the_run() {
        let mut check = check(99.0, S, Some(10.0));
        assert!(check.add(&span(1, &[(100, 1000)], &[], 10)).is_none());
        let ended = check.add(&span(2, &[(100, 1000)], &[], 11));
        assert_eq!(
            text(ended),
            "more than 10 errors per 1,000 transactions: in the last 1.0 s 11 errors and 1000 transactions"
        );
    }
}
