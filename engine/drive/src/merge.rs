//! Adds up the spans that the workers close, and turns them into records.

use std::collections::BTreeMap;

use dbdyno_door::Record;
use dbdyno_door::record::{
    Accounting, Counts, Generator, Interval, PhaseName, PhaseTotals, StatementStats, Statements, Tick,
};
use dbdyno_gauge::closed::{Totals, Window};
use dbdyno_gauge::{Closed, closed::Span};
use dbdyno_pace::Nanos;
use dbdyno_workload::Oltp;

/// Share of a core above which a worker counts as saturated.
const SATURATED_CPU: f64 = 0.8;

/// Spans of all workers, until each is complete.
pub(crate) struct Merge {
    workers: usize,
    kinds: Vec<&'static str>,
    ticks: bool,
    open: BTreeMap<Nanos, Partial>,
    seq: u64,
    totals: BTreeMap<PhaseName, (Nanos, Nanos, Totals)>,
    accounting: BTreeMap<PhaseName, Accounting>,
    saturated: u64,
    measured: u64,
}

#[derive(Default)]
struct Partial {
    seen: usize,
    closed: Closed,
    generator: Generator,
}

/// What became complete.
pub(crate) struct Complete {
    /// In the order in which they are to be written.
    pub(crate) records: Vec<Record>,
    /// A phase ended here.
    pub(crate) phase_end: Option<Nanos>,
}

impl Merge {
    pub(crate) fn new(workers: u32, oltp: &Oltp, ticks: bool) -> Self {
        Self {
            workers: workers as usize,
            kinds: oltp.shares().iter().map(|share| share.kind.name()).collect(),
            ticks,
            open: BTreeMap::new(),
            seq: 0,
            totals: BTreeMap::new(),
            accounting: BTreeMap::new(),
            saturated: 0,
            measured: 0,
        }
    }

    /// Adds one worker's span. Returns what it completed.
    pub(crate) fn add(
        &mut self,
        bound: Nanos,
        closed: Closed,
        generator: Option<Generator>,
    ) -> Option<Complete> {
        let partial = self.open.entry(bound).or_default();
        partial.seen += 1;
        partial.closed.merge(closed);
        if let Some(generator) = generator {
            // The mean over the workers: 1.0 is a full core each.
            partial.generator.cpu += generator.cpu / self.workers as f64;
            partial.generator.lag_us_max = partial.generator.lag_us_max.max(generator.lag_us_max);
            partial.generator.run_queue_wait_us += generator.run_queue_wait_us;
        }
        if partial.seen < self.workers {
            return None;
        }
        let partial = self.open.remove(&bound).expect("just added");
        Some(self.complete(bound, partial))
    }

    fn complete(&mut self, bound: Nanos, partial: Partial) -> Complete {
        let Closed { tick_events, interval, window, accounting } = partial.closed;
        let mut records = Vec::new();
        if self.ticks {
            records.push(Record::Tick(Tick { at_us: bound / 1000, events: tick_events }));
        }
        let phase = interval.as_ref().map(|span| span.phase);
        records.extend(interval.map(|span| self.interval(span, partial.generator)));
        records.extend(window.and_then(|window| self.statements(window)));
        let phase_end = accounting.is_some().then_some(bound);
        if let (Some(phase), Some(accounting)) = (phase, accounting) {
            self.accounting.insert(phase, accounting);
        }
        Complete { records, phase_end }
    }

    fn interval(&mut self, span: Span, generator: Generator) -> Record {
        let (_, end, totals) =
            self.totals.entry(span.phase).or_insert((span.start, span.end, Totals::default()));
        *end = span.end;
        totals.add(&span);
        if span.phase == PhaseName::Measure {
            self.measured += 1;
            self.saturated += u64::from(generator.cpu > SATURATED_CPU);
        }
        self.seq += 1;
        Record::Interval(Box::new(Interval {
            seq: self.seq - 1,
            phase: span.phase,
            start_us: span.start / 1000,
            end_us: span.end / 1000,
            counts: span.counts,
            latency_sum_us: span.latency.sum_us,
            latency_min_us: span.latency.min_us,
            latency_max_us: span.latency.max_us,
            latency_us: span.latency.buckets,
            service_us: span.service.buckets,
            generator,
        }))
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
                    off_contract: taken.off_contract,
                    latency_us: taken.latency.buckets,
                };
                ((*kind).to_owned(), stats)
            })
            .collect();
        let (phase, start_us, end_us) = (window.phase, window.start / 1000, window.end / 1000);
        let statements = Statements { phase, start_us, end_us, kinds };
        (!statements.kinds.is_empty()).then_some(Record::Statements(statements))
    }

    /// Whether the generator was short of CPU in more than half of the measured intervals.
    pub(crate) fn is_saturated(&self) -> bool {
        self.saturated * 2 > self.measured
    }

    /// Totals of every phase that ended.
    ///
    /// # Panics
    /// When the accounting identity does not hold: a number that nobody could trust must not be written.
    pub(crate) fn totals(&self) -> BTreeMap<PhaseName, PhaseTotals> {
        let complete = self
            .totals
            .iter()
            .filter_map(|(phase, totals)| Some((phase, totals, self.accounting.get(phase)?)));
        complete
            .map(|(&phase, (start, end, totals), accounting)| {
                let Accounting { due, done, failed, dropped, unfinished, .. } = *accounting;
                assert_eq!(due, done + failed + dropped + unfinished, "{phase:?}: {accounting:?}");
                assert_eq!(done, totals.counts.events, "{phase:?}: the sum of the intervals");
                assert_eq!(done, totals.latency.buckets.count(), "{phase:?}: the latency histogram");
                (phase, phase_totals(*start, *end, totals, accounting.clone()))
            })
            .collect()
    }
}

fn phase_totals(start: Nanos, end: Nanos, totals: &Totals, accounting: Accounting) -> PhaseTotals {
    let counts: Counts = totals.counts.clone();
    PhaseTotals {
        start_us: start / 1000,
        end_us: end / 1000,
        counts,
        accounting,
        latency_us: totals.latency.buckets.clone(),
        latency_sum_us: totals.latency.sum_us,
        latency_min_us: totals.latency.min_us,
        latency_max_us: totals.latency.max_us,
    }
}
