//! Adds up the spans of all workers, and turns them into records.

use std::collections::BTreeMap;

use dbdyno_load::Nanos;
use dbdyno_metrics::phases::{Phases, by_number};
use dbdyno_metrics::spans::{ClosedSpans, DrainedEvents, Span, Window};
use dbdyno_schema::Record;
use dbdyno_schema::record::{
    Accounting, PhaseName, PhaseTotals, StatementStats, Statements, Tick, UserTotals,
};

use crate::generator::GeneratorTotals;
use crate::usage::GeneratorUsage;

/// The spans of all workers. A span is complete when every worker has closed it.
pub(crate) struct Merge {
    workers: usize,
    /// Names of the statement kinds.
    kinds: Vec<String>,
    ticks: bool,
    open: BTreeMap<Nanos, Partial>,
    phases: Phases,
    /// The outcome of the events in progress at the end, which belong to the last phase.
    drained: DrainedEvents,
    users: Vec<(u64, UserTotals)>,
    generator: GeneratorTotals,
    written_to: Nanos,
    /// Whether spans of late workers were replaced by substitutes.
    incomplete: bool,
}

#[derive(Default)]
struct Partial {
    seen: usize,
    closed: ClosedSpans,
    usage: GeneratorUsage,
}

/// A span that every worker has closed.
pub(crate) struct Complete {
    /// The records of the span, in the order in which they are written.
    pub(crate) records: Vec<Record>,
    /// The end of the phase, if a phase ends with the span.
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
            generator: GeneratorTotals::new(workers as usize),
            written_to: 0,
            incomplete: false,
        }
    }

    /// The number of statement kinds.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// The last boundary at which every worker has closed its span.
    pub(crate) fn written_to(&self) -> Nanos {
        self.written_to
    }

    /// Number of events in progress at the end of the latest span that any worker has closed, on the workers that have
    /// closed it.
    pub(crate) fn in_flight(&self) -> u64 {
        let last = self.open.last_key_value().and_then(|(_, partial)| partial.closed.interval.as_ref());
        last.map_or(0, |span| span.in_flight)
    }

    /// Completes every open span; `spans` are the substitutes for the spans of late workers.
    pub(crate) fn complete_all(&mut self, spans: Vec<(Nanos, ClosedSpans)>) -> Vec<Complete> {
        self.incomplete = true;
        for (bound, closed) in spans {
            self.open.entry(bound).or_default().closed.merge(closed);
        }
        let open = std::mem::take(&mut self.open);
        open.into_iter().map(|(bound, partial)| self.complete(bound, partial)).collect()
    }

    /// Adds one worker's span. Returns the complete span if this worker was the last one.
    pub(crate) fn add(
        &mut self,
        bound: Nanos,
        closed: ClosedSpans,
        usage: Option<GeneratorUsage>,
    ) -> Option<Complete> {
        let partial = self.open.entry(bound).or_default();
        partial.seen += 1;
        partial.closed.merge(closed);
        if let Some(usage) = usage {
            partial.usage.merge(&usage);
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
        records.extend(interval.map(|span| self.interval(span, &partial.usage)));
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

    /// Derives the accounting from the intervals, which contain everything that late workers have reported.
    fn settle_accounts(&self, phase: PhaseName, accounting: &mut Accounting) {
        let counted = self.phases.of(phase).map(|totals| &totals.counts);
        accounting.done = counted.map_or(0, |counts| counts.events);
        accounting.dropped = counted.map_or(0, |counts| counts.dropped);
        accounting.due = accounting.done + accounting.failed + accounting.dropped + accounting.unfinished;
    }

    fn interval(&mut self, span: Span, usage: &GeneratorUsage) -> Record {
        let generator = self.generator.interval(span.phase, span.end - span.start, usage);
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

    /// Adds the outcome of the events that were in progress on one worker at the end, and the totals of the worker's
    /// users.
    pub(crate) fn drained(&mut self, drained: &DrainedEvents, users: Vec<(u64, UserTotals)>) {
        self.drained.merge(drained);
        self.users.extend(users);
    }

    /// The totals of each user, by number.
    pub(crate) fn users(&mut self) -> Vec<UserTotals> {
        by_number(std::mem::take(&mut self.users))
    }

    /// Totals of every completed phase.
    pub(crate) fn totals(&self) -> BTreeMap<PhaseName, PhaseTotals> {
        let mut totals = self.phases.totals(&self.drained);
        totals.iter_mut().for_each(|(&phase, totals)| totals.generator = self.generator.phase(phase));
        totals
    }
}
