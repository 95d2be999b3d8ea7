//! Closed spans: the counters of a tick, an interval, a window of statement statistics or a phase, and their sums over
//! several workers.
//!
//! The plan determines when spans end, so all workers close the same spans, and the sum of their fields is the span of
//! the run.

use dbdyno_load::Nanos;
use dbdyno_schema::histogram::{Buckets, merge_counts};
use dbdyno_schema::record::{Accounting, Counts, ErrorClass, PhaseName, UserTotals};

use crate::gaps::{GapList, intersect};
use crate::histogram::LatencySummary;

/// The counters of one worker for the tick that ends at some time, and for each longer span that ends at the same time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedSpans {
    /// Number of events since the end of the previous tick.
    pub tick_events: u64,
    /// Set if an interval ends.
    pub interval: Option<Span>,
    /// Set if a window of statement statistics ends.
    pub window: Option<Window>,
    /// Set if a phase ends.
    pub phase: Option<PhaseAccounting>,
}

/// The events of a phase by their outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseAccounting {
    /// Number of events by outcome.
    pub accounting: Accounting,
    /// Open loop: for each event that was dropped or is unfinished, the time since it was due.
    pub censored: Buckets,
}

/// The events in flight at the end of an open loop's run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrainedEvents {
    /// Latency of the events that ended within the drain time.
    pub latency: LatencySummary,
    /// For each of the other events, the time from its due time to the end of the run.
    pub censored: Buckets,
}

impl DrainedEvents {
    /// Adds the events of another worker.
    pub fn merge(&mut self, other: &DrainedEvents) {
        self.latency.merge(&other.latency);
        self.censored.merge(&other.censored);
    }
}

/// The counters of an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The phase that contains the interval.
    pub phase: PhaseName,
    /// The first instant of the interval.
    pub start: Nanos,
    /// The first instant after the interval.
    pub end: Nanos,
    /// Counters.
    pub counts: Counts,
    /// Time from due to end of the events.
    pub latency: LatencySummary,
    /// Times in which no event completed.
    pub gaps: GapList,
    /// Time from start to end of the events; empty in a closed loop.
    pub service: LatencySummary,
    /// Number of events that were due but had not started at the end of the interval.
    pub backlog: u64,
    /// Number of events that had started but not ended at the end of the interval.
    pub in_flight: u64,
    /// Number of users that had not finished their last event.
    pub users_active: u32,
    /// Number and totals of each user since the last mark, if requested; only in an interval that ends at a mark (a
    /// time in `report.marks_us`, or the end of a phase).
    pub users: Vec<(u64, UserTotals)>,
    /// Time from due to end of the events, in the buckets of a logarithmic scale, if requested.
    pub log_buckets: Vec<(u16, u64)>,
    /// For each event that was due but had not ended at the end of the interval, the time since it was due, if requested.
    pub outstanding_us: Buckets,
}

/// Statement statistics over a window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The phase that contains the window.
    pub phase: PhaseName,
    /// The first instant of the window.
    pub start: Nanos,
    /// The first instant after the window.
    pub end: Nanos,
    /// Statistics by statement kind, in the workload's order.
    pub kinds: Vec<StatementSummary>,
}

/// Statistics of one statement kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatementSummary {
    /// Number of rows returned or changed.
    pub rows: u64,
    /// Number of rows expected.
    pub rows_expected: u64,
    /// Number of statements that returned or changed another number of rows than expected.
    pub row_count_mismatches: u64,
    /// Latency of the statements; its count is the number of statements.
    pub latency: LatencySummary,
}

impl ClosedSpans {
    /// Adds the counters of another worker for the same span.
    pub fn merge(&mut self, other: ClosedSpans) {
        self.tick_events += other.tick_events;
        join(&mut self.interval, other.interval, |sum, part| sum.merge(&part));
        join(&mut self.window, other.window, |sum, part| sum.merge(&part));
        join(&mut self.phase, other.phase, |sum, part| {
            add_accounting(&mut sum.accounting, &part.accounting);
            sum.censored.merge(&part.censored);
        });
    }
}

/// Adds `other` to `value` if both are present. If only one is present, keeps that one.
fn join<T>(value: &mut Option<T>, other: Option<T>, add: impl FnOnce(&mut T, T)) {
    match (value, other) {
        (Some(value), Some(other)) => add(value, other),
        (value @ None, other) => *value = other,
        (Some(_), None) => {}
    }
}

impl Span {
    pub(crate) fn merge(&mut self, other: &Span) {
        self.users.extend_from_slice(&other.users);
        debug_assert_eq!((self.start, self.end), (other.start, other.end));
        add_counts(&mut self.counts, &other.counts);
        self.latency.merge(&other.latency);
        self.gaps = intersect(&self.gaps, &other.gaps, (self.start, self.end));
        self.service.merge(&other.service);
        self.backlog += other.backlog;
        self.in_flight += other.in_flight;
        self.users_active += other.users_active;
        merge_counts(&mut self.log_buckets, &other.log_buckets);
        self.outstanding_us.merge(&other.outstanding_us);
    }
}

impl Window {
    fn merge(&mut self, other: &Window) {
        debug_assert_eq!((self.start, self.end), (other.start, other.end));
        for (sum, part) in self.kinds.iter_mut().zip(&other.kinds) {
            sum.rows += part.rows;
            sum.rows_expected += part.rows_expected;
            sum.row_count_mismatches += part.row_count_mismatches;
            sum.latency.merge(&part.latency);
        }
    }
}

/// Adds `other` to `counts`, field by field.
pub fn add_counts(counts: &mut Counts, other: &Counts) {
    // Destructured, so that the compiler rejects a forgotten field.
    let Counts {
        events,
        reads,
        writes,
        other: rest,
        rows,
        bytes,
        errors,
        error_classes,
        retries,
        reconnects,
        late,
        rate_limit_wait_us,
        dropped,
        row_count_mismatches,
    } = other;
    counts.events += events;
    counts.reads += reads;
    counts.writes += writes;
    counts.other += rest;
    counts.rows += rows;
    counts.bytes += bytes;
    for (code, &count) in errors {
        let class = error_classes.get(code).copied().unwrap_or(ErrorClass::Other);
        count_error(counts, code, class, count);
    }
    counts.retries += retries;
    counts.reconnects += reconnects;
    counts.late += late;
    counts.rate_limit_wait_us += rate_limit_wait_us;
    counts.dropped += dropped;
    counts.row_count_mismatches += row_count_mismatches;
}

/// Counts `count` errors of one code. The code keeps the most severe class that occurred, so that lost connections are
/// not reported as refused statements.
pub(crate) fn count_error(counts: &mut Counts, code: &str, class: ErrorClass, count: u64) {
    *counts.errors.entry(code.to_owned()).or_default() += count;
    let known = counts.error_classes.entry(code.to_owned()).or_insert(class);
    *known = class.max(*known);
}

pub(crate) fn add_accounting(accounting: &mut Accounting, other: &Accounting) {
    let Accounting { due, done, failed, dropped, unfinished, unfinished_us } = other;
    accounting.due += due;
    accounting.done += done;
    accounting.failed += failed;
    accounting.dropped += dropped;
    accounting.unfinished += unfinished;
    accounting.unfinished_us += unfinished_us;
}
