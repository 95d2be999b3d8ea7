//! Adds up the spans of all workers, and turns them into records.

use std::collections::BTreeMap;

use dbdyno_load::Nanos;
use dbdyno_metrics::phases::{RunTotals, sort_by_number};
use dbdyno_metrics::spans::{ClosedSpans, DrainedEvents, Span, Window};
use dbdyno_schema::Record;
use dbdyno_schema::plan::Plan;
use dbdyno_schema::record::{
    Accounting, PhaseName, PhaseTotals, StatementStats, Statements, Tick, UserTotals,
};

use crate::RunEnd;
use crate::abort::AbortCheck;
use crate::generator::GeneratorTotals;
use crate::share::share;
use crate::usage::GeneratorUsage;

/// Adds up the spans of all workers and of the arrival queue. A span is complete when all of them have closed it.
pub(crate) struct SpanMerger {
    /// Number of recorders: of the workers, and of the arrival queue if there is one.
    recorders: usize,
    /// Names of the statement kinds.
    kinds: Vec<String>,
    writes_ticks: bool,
    /// Open spans by their end.
    open_spans: BTreeMap<Nanos, OpenSpan>,
    phases: RunTotals,
    /// The outcome of the events in progress at the end, which belong to the last phase.
    drained: DrainedEvents,
    users: Vec<(u64, UserTotals)>,
    generator: GeneratorTotals,
    last_boundary: Nanos,
    /// The limits of the load, if the plan has any.
    abort_check: Option<AbortCheck>,
    /// Whether spans of late workers were replaced by substitutes.
    has_substitutes: bool,
}

/// A span that some recorders have not closed.
#[derive(Default)]
struct OpenSpan {
    /// Number of recorders that have closed the span.
    recorders_closed: usize,
    /// Sum over the recorders that have closed the span.
    closed: ClosedSpans,
    usage: GeneratorUsage,
}

/// A span that every recorder has closed.
pub(crate) struct MergedSpan {
    /// The records of the span, in the order in which they are written.
    pub(crate) records: Vec<Record>,
    /// The end of the phase, if a phase ends with the span.
    pub(crate) phase_end: Option<Nanos>,
    /// The end of the run, if the load exceeds a limit.
    pub(crate) abort: Option<RunEnd>,
}

impl SpanMerger {
    pub(crate) fn new(plan: &Plan, kinds: Vec<String>) -> Self {
        Self {
            recorders: plan.client.workers as usize + usize::from(plan.load.shape.is_open()),
            kinds,
            writes_ticks: plan.report.tick_us > 0,
            open_spans: BTreeMap::new(),
            phases: RunTotals::of_fleet(plan.segment.count),
            drained: DrainedEvents::default(),
            users: Vec::new(),
            generator: GeneratorTotals::new(
                plan.client.workers,
                share(plan.load.connections, plan.segment.index, plan.segment.count),
            ),
            last_boundary: 0,
            abort_check: plan.load.abort_if.clone().map(AbortCheck::new),
            has_substitutes: false,
        }
    }

    /// The number of statement kinds.
    pub(crate) fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// The last boundary at which every recorder has closed its span.
    pub(crate) fn last_boundary(&self) -> Nanos {
        self.last_boundary
    }

    /// Number of events in progress at the end of the latest span that any worker has closed, on the workers that have
    /// closed it.
    pub(crate) fn in_flight(&self) -> u64 {
        let last =
            self.open_spans.last_key_value().and_then(|(_, open_span)| open_span.closed.interval.as_ref());
        last.map_or(0, |span| span.in_flight)
    }

    /// Completes every open span; `spans` are the substitutes for the spans of late workers.
    pub(crate) fn complete_all(&mut self, spans: Vec<(Nanos, ClosedSpans)>) -> Vec<MergedSpan> {
        self.has_substitutes = true;
        for (boundary, closed) in spans {
            self.open_spans.entry(boundary).or_default().closed.merge(closed);
        }
        let open_spans = std::mem::take(&mut self.open_spans);
        open_spans.into_iter().map(|(boundary, open_span)| self.complete(boundary, open_span)).collect()
    }

    /// Adds one recorder's span. Returns the complete span if this recorder was the last one.
    pub(crate) fn add(
        &mut self,
        boundary: Nanos,
        closed: ClosedSpans,
        usage: Option<GeneratorUsage>,
    ) -> Option<MergedSpan> {
        let open_span = self.open_spans.entry(boundary).or_default();
        open_span.recorders_closed += 1;
        open_span.closed.merge(closed);
        if let Some(usage) = usage {
            open_span.usage.merge(&usage);
        }
        if open_span.recorders_closed < self.recorders {
            return None;
        }
        let open_span = self.open_spans.remove(&boundary).expect("just added");
        Some(self.complete(boundary, open_span))
    }

    fn complete(&mut self, boundary: Nanos, open_span: OpenSpan) -> MergedSpan {
        let ClosedSpans { tick_events, interval, window, phase: closed_phase } = open_span.closed;
        self.last_boundary = boundary;
        let mut records = Vec::new();
        if self.writes_ticks {
            records.push(Record::Tick(Tick { at_us: boundary / 1000, events: tick_events }));
        }
        let abort =
            self.abort_check.as_mut().zip(interval.as_ref()).and_then(|(check, span)| check.add(span));
        let phase = interval.as_ref().map(|span| span.phase);
        records.extend(interval.map(|span| self.interval_record(span, &open_span.usage)));
        records.extend(window.and_then(|window| self.statements_record(window)));
        let phase_end = closed_phase.is_some().then_some(boundary);
        if let (Some(phase), Some(mut closed)) = (phase, closed_phase) {
            if self.has_substitutes {
                self.recompute_accounting(phase, &mut closed.accounting);
            }
            self.phases.close_phase(phase, closed);
        }
        MergedSpan { records, phase_end, abort }
    }

    /// Derives the accounting from the intervals, which contain everything that late workers have reported.
    fn recompute_accounting(&self, phase: PhaseName, accounting: &mut Accounting) {
        let counted = self.phases.totals_so_far(phase).map(|totals| &totals.counts);
        accounting.done = counted.map_or(0, |counts| counts.events);
        accounting.dropped = counted.map_or(0, |counts| counts.dropped);
        accounting.due = accounting.done + accounting.failed + accounting.dropped + accounting.unfinished;
    }

    fn interval_record(&mut self, span: Span, usage: &GeneratorUsage) -> Record {
        let generator = self.generator.add_interval(span.phase, span.end - span.start, usage);
        Record::Interval(Box::new(self.phases.add_interval(span, generator)))
    }

    fn statements_record(&self, window: Window) -> Option<Record> {
        let stats = self
            .kinds
            .iter()
            .zip(window.kinds)
            .filter(|(_, stats_of_kind)| stats_of_kind.latency.buckets.count() > 0);
        let kinds: BTreeMap<_, _> = stats
            .map(|(kind, stats_of_kind)| {
                let stats = StatementStats {
                    count: stats_of_kind.latency.buckets.count(),
                    rows: stats_of_kind.rows,
                    rows_expected: stats_of_kind.rows_expected,
                    row_count_mismatches: stats_of_kind.row_count_mismatches,
                    latency_us: stats_of_kind.latency.buckets,
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
    pub(crate) fn add_drained(&mut self, drained: &DrainedEvents, users: Vec<(u64, UserTotals)>) {
        self.drained.merge(drained);
        self.users.extend(users);
    }

    /// The totals of each user, by number.
    pub(crate) fn users(&mut self) -> Vec<UserTotals> {
        sort_by_number(std::mem::take(&mut self.users))
    }

    /// Totals of every completed phase.
    pub(crate) fn totals(&self) -> BTreeMap<PhaseName, PhaseTotals> {
        let mut totals = self.phases.totals(&self.drained);
        totals.iter_mut().for_each(|(&phase, totals)| totals.generator = self.generator.phase_record(phase));
        totals
    }
}
