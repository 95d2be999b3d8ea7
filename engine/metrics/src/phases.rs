//! Makes the records of intervals that all workers have closed, and adds them up to the totals of each phase.

use std::collections::BTreeMap;

use dbdyno_load::Nanos;
use dbdyno_schema::histogram::{Buckets, merge_counts};
use dbdyno_schema::record::{Accounting, Counts, Generator, Interval, PhaseName, PhaseTotals, UserTotals};

use crate::gaps::{GapList, GapTotals};
use crate::histogram::LatencySummary;
use crate::percentiles;
use crate::spans::{DrainedEvents, PhaseAccounting, Span, add_counts};

/// The totals of all phases so far.
#[derive(Debug, Default)]
pub struct RunTotals {
    /// Number of intervals recorded.
    seq: u64,
    open: BTreeMap<PhaseName, PhaseSums>,
    closed: BTreeMap<PhaseName, PhaseAccounting>,
    /// Whether the records of intervals have every gap, for a merge with those of other engines.
    writes_gaps: bool,
}

/// The sums of a phase's intervals.
#[derive(Clone, Debug, Default)]
pub struct PhaseSums {
    start: Nanos,
    end: Nanos,
    /// Counters.
    pub counts: Counts,
    /// Time from due to end of the events.
    pub latency: LatencySummary,
    /// The latency in buckets of a logarithmic scale, if requested.
    pub log_buckets: Vec<(u16, u64)>,
    gaps: GapTotals,
}

impl PhaseSums {
    /// Adds one interval.
    pub fn add(&mut self, span: &Span) {
        self.end = span.end;
        add_counts(&mut self.counts, &span.counts);
        self.latency.merge(&span.latency);
        self.gaps.add(&span.gaps);
        merge_counts(&mut self.log_buckets, &span.log_buckets);
    }
}

impl RunTotals {
    /// Totals of one of `engines` engines.
    pub fn of_fleet(engines: u32) -> Self {
        Self { writes_gaps: engines > 1, ..Self::default() }
    }

    /// Adds the next interval and returns its record. `generator` is the load generator's measurement of itself in this
    /// interval.
    pub fn add_interval(&mut self, span: Span, generator: Generator) -> Interval {
        let empty =
            || PhaseSums { start: span.start, gaps: GapTotals::new(span.start), ..PhaseSums::default() };
        self.open.entry(span.phase).or_insert_with(empty).add(&span);
        self.seq += 1;
        let mut gaps = GapTotals::new(span.start);
        gaps.add(&span.gaps);
        Interval {
            seq: self.seq - 1,
            phase: span.phase,
            start_us: span.start / 1000,
            end_us: span.end / 1000,
            latency_sum_us: span.latency.sum_us,
            latency_min_us: span.latency.min_us,
            latency_max_us: span.latency.max_us,
            gaps: gaps.to_record(),
            gap_spans_ns: if self.writes_gaps { span.gaps } else { GapList::new() },
            percentiles_us: percentiles(
                &span.latency.buckets,
                (span.latency.min_us, span.latency.max_us),
                &Buckets::default(),
            ),
            backlog: span.backlog,
            in_flight: span.in_flight,
            users_active: span.users_active,
            users: sort_by_number(span.users),
            generator,
            counts: span.counts,
            log_buckets: span.log_buckets,
            latency_us: span.latency.buckets,
            service_us: span.service.buckets,
        }
    }

    /// Records the end of a phase, after its last interval.
    pub fn close_phase(&mut self, phase: PhaseName, closed: PhaseAccounting) {
        self.closed.insert(phase, closed);
    }

    /// Sums of the phase's intervals so far.
    pub fn totals_so_far(&self, phase: PhaseName) -> Option<&PhaseSums> {
        self.open.get(&phase)
    }

    /// Totals of every phase that has ended. `drained` belongs to the last phase.
    ///
    /// # Panics
    /// If an event was lost or counted twice (see `Accounting`): wrong numbers must not be written.
    pub fn totals(&self, drained: &DrainedEvents) -> BTreeMap<PhaseName, PhaseTotals> {
        let last = self.closed.last_key_value().map(|(&phase, _)| phase);
        let ended =
            self.open.iter().filter_map(|(phase, totals)| Some((*phase, totals, self.closed.get(phase)?)));
        let nothing = DrainedEvents::default();
        ended
            .map(|(phase, totals, closed)| {
                let Accounting { due, done, failed, dropped, unfinished, .. } = closed.accounting;
                assert_eq!(due, done + failed + dropped + unfinished, "{phase:?}: {:?}", closed.accounting);
                assert_eq!(done, totals.counts.events, "{phase:?}: the sum of the intervals");
                assert_eq!(done, totals.latency.buckets.count(), "{phase:?}: the latency histogram");
                assert_eq!(dropped, totals.counts.dropped, "{phase:?}: the dropped of the intervals");
                (phase, phase_totals(totals, closed, if last == Some(phase) { drained } else { &nothing }))
            })
            .collect()
    }
}

fn phase_totals(totals: &PhaseSums, closed: &PhaseAccounting, drained: &DrainedEvents) -> PhaseTotals {
    let PhaseSums { start, end, counts, latency, log_buckets, gaps } = totals.clone();
    let mut censored_us = closed.censored.clone();
    censored_us.merge(&drained.censored);
    let mut known = latency.clone();
    known.merge(&drained.latency);
    PhaseTotals {
        start_us: start / 1000,
        end_us: end / 1000,
        counts,
        accounting: closed.accounting.clone(),
        latency_us: latency.buckets,
        latency_sum_us: latency.sum_us,
        latency_min_us: latency.min_us,
        latency_max_us: latency.max_us,
        gaps: gaps.to_record(),
        percentiles_us: percentiles(&known.buckets, (known.min_us, known.max_us), &censored_us),
        log_buckets,
        drained_us: drained.latency.buckets.clone(),
        censored_us,
        generator: Default::default(), // The caller sets it.
    }
}

/// Returns the totals of the users in the order of their numbers.
pub fn sort_by_number(mut users: Vec<(u64, UserTotals)>) -> Vec<UserTotals> {
    users.sort_unstable_by_key(|(number, _)| *number);
    users.into_iter().map(|(_, totals)| totals).collect()
}
