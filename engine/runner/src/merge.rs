//! Adds up the spans that the workers close, and turns them into records.

use std::collections::BTreeMap;

use dbdyno_load::Nanos;
use dbdyno_metrics::percentiles;
use dbdyno_metrics::phases::{Phases, by_number};
use dbdyno_metrics::spans::{ClosedSpans, DrainedEvents, Span, Window};
use dbdyno_schema::Record;
use dbdyno_schema::histogram::Buckets;
use dbdyno_schema::record::{
    Accounting, PhaseName, PhaseTotals, StatementStats, Statements, Tick, UserTotals, Warning,
};

use crate::health::Health;
use crate::watch::Fared;

/// Spans of all workers, until each is complete.
pub(crate) struct Merge {
    workers: usize,
    /// Names of the statement kinds.
    kinds: Vec<String>,
    ticks: bool,
    open: BTreeMap<Nanos, Partial>,
    phases: Phases,
    /// What became of the events under way at the end; they belong to the last phase.
    drained: DrainedEvents,
    users: Vec<(u64, UserTotals)>,
    health: Health,
    /// The last bound that is complete.
    written_to: Nanos,
    /// Something stands in for workers that were not heard to the end.
    incomplete: bool,
}

#[derive(Default)]
struct Partial {
    seen: usize,
    closed: ClosedSpans,
    fared: Fared,
}

/// What became complete.
pub(crate) struct Complete {
    /// In the order in which they are to be written.
    pub(crate) records: Vec<Record>,
    /// A phase ended here.
    pub(crate) phase_end: Option<Nanos>,
}

impl Merge {
    pub(crate) fn new(workers: u32, kinds: Vec<String>, ticks: bool) -> Self {
        Self {
            workers: workers as usize,
            kinds,
            ticks,
            open: BTreeMap::new(),
            phases: Phases::default(),
            drained: DrainedEvents::default(),
            users: Vec::new(),
            health: Health::new(),
            written_to: 0,
            incomplete: false,
        }
    }

    /// Statement kinds.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Up to where all workers were heard.
    pub(crate) fn written_to(&self) -> Nanos {
        self.written_to
    }

    /// Events under way at the end of the last span that any worker has closed, on the workers that have.
    pub(crate) fn in_flight(&self) -> u64 {
        let last = self.open.last_key_value().and_then(|(_, partial)| partial.closed.interval.as_ref());
        last.map_or(0, |span| span.in_flight)
    }

    /// Completes every open span with what stands in for the workers that were not heard.
    pub(crate) fn stand_in(&mut self, spans: Vec<(Nanos, ClosedSpans)>) -> Vec<Complete> {
        self.incomplete = true;
        for (bound, closed) in spans {
            self.open.entry(bound).or_default().closed.merge(closed);
        }
        let open = std::mem::take(&mut self.open);
        open.into_iter().map(|(bound, partial)| self.complete(bound, partial)).collect()
    }

    /// Adds one worker's span. Returns what it completed.
    pub(crate) fn add(
        &mut self,
        bound: Nanos,
        closed: ClosedSpans,
        fared: Option<Fared>,
    ) -> Option<Complete> {
        let partial = self.open.entry(bound).or_default();
        partial.seen += 1;
        partial.closed.merge(closed);
        if let Some(fared) = fared {
            partial.fared.merge(&fared);
        }
        if partial.seen < self.workers {
            return None;
        }
        let partial = self.open.remove(&bound).expect("just added");
        Some(self.complete(bound, partial))
    }

    fn complete(&mut self, bound: Nanos, partial: Partial) -> Complete {
        let ClosedSpans { tick_events, interval, window, phase: phase_closed } = partial.closed;
        self.written_to = bound;
        let mut records = Vec::new();
        if self.ticks {
            records.push(Record::Tick(Tick { at_us: bound / 1000, events: tick_events }));
        }
        let phase = interval.as_ref().map(|span| span.phase);
        records.extend(interval.map(|span| self.interval(span, &partial.fared)));
        records.extend(window.and_then(|window| self.statements(window)));
        let phase_end = phase_closed.is_some().then_some(bound);
        if let (Some(phase), Some(mut closed)) = (phase, phase_closed) {
            if self.incomplete {
                self.settle_accounts(phase, &mut closed.accounting);
            }
            self.phases.close(phase, closed);
        }
        Complete { records, phase_end }
    }

    /// What a worker did before it was heard no more is in the intervals alone.
    fn settle_accounts(&self, phase: PhaseName, accounting: &mut Accounting) {
        let counted = self.phases.of(phase).map(|totals| &totals.counts);
        accounting.done = counted.map_or(0, |counts| counts.events);
        accounting.dropped = counted.map_or(0, |counts| counts.dropped);
        accounting.due = accounting.done + accounting.failed + accounting.dropped + accounting.unfinished;
    }

    fn interval(&mut self, span: Span, fared: &Fared) -> Record {
        let measured = span.phase == PhaseName::Measure;
        let generator = self.health.interval(span.end - span.start, fared, self.workers, measured);
        Record::Interval(Box::new(self.phases.interval(span, generator)))
    }

    fn statements(&self, window: Window) -> Option<Record> {
        let stats =
            self.kinds.iter().zip(window.kinds).filter(|(_, taken)| taken.latency.buckets.count() > 0);
        let kinds: BTreeMap<_, _> = stats
            .map(|(kind, taken)| {
                let stats = StatementStats {
                    count: taken.latency.buckets.count(),
                    rows: taken.rows,
                    rows_expected: taken.rows_expected,
                    row_count_mismatches: taken.row_count_mismatches,
                    latency_us: taken.latency.buckets,
                };
                (kind.clone(), stats)
            })
            .collect();
        let (phase, start_us, end_us) = (window.phase, window.start / 1000, window.end / 1000);
        let statements = Statements { phase, start_us, end_us, kinds };
        (!statements.kinds.is_empty()).then_some(Record::Statements(statements))
    }

    /// Adds what became of one worker's events that were under way at the end, and what its users did.
    pub(crate) fn drained(&mut self, drained: &DrainedEvents, users: Vec<(u64, UserTotals)>) {
        self.drained.merge(drained);
        self.users.extend(users);
    }

    /// What each user did, by number.
    pub(crate) fn users(&mut self) -> Vec<UserTotals> {
        by_number(std::mem::take(&mut self.users))
    }

    /// What makes the measurement worth less.
    pub(crate) fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.health.warnings();
        let median_us = self.phases.of(PhaseName::Measure).and_then(|totals| {
            let latency = &totals.latency;
            percentiles(&latency.buckets, (latency.min_us, latency.max_us), &Buckets::default())
        });
        let median_us = median_us.map(|found| found.p50.value_us);
        warnings.extend(median_us.and_then(|median_us| self.health.client_delay(median_us)));
        warnings
    }

    /// Totals of every phase that ended.
    pub(crate) fn totals(&self) -> BTreeMap<PhaseName, PhaseTotals> {
        self.phases.totals(&self.drained)
    }
}
