//! The sum of the parts of one record.

use dbdyno_schema::Record;
use dbdyno_schema::record::{
    Generator, Hello, Interval, Loaded, LoadingWay, Phase, Ready, StatementStats, Statements, Tick,
};

use super::end::EndSum;
use super::generator::add_generator;
use crate::histogram::LatencySummary;
use crate::spans::Span;

/// A record of all engines that have sent their part of it.
#[derive(Debug)]
pub(super) enum Part {
    Hello(Box<Hello>),
    Ready(Ready),
    Phase(Phase),
    Tick(Tick),
    Interval(Box<Span>, Generator),
    Statements(Statements),
    Loaded(Box<Loaded>),
    End(Box<EndSum>),
}

impl Part {
    /// The part of the first engine. The record must have a key.
    pub(super) fn new(record: Record) -> Self {
        match record {
            Record::Hello(hello) => Part::Hello(hello),
            Record::Ready(ready) => Part::Ready(ready),
            Record::Phase(phase) => Part::Phase(phase),
            Record::Tick(tick) => Part::Tick(tick),
            Record::Interval(interval) => {
                let generator = interval.generator.clone();
                Part::Interval(Box::new(to_span(*interval)), generator)
            }
            Record::Statements(statements) => Part::Statements(statements),
            Record::Loaded(loaded) => Part::Loaded(loaded),
            Record::End(end) => Part::End(Box::new(EndSum::new(*end))),
            Record::Slice(_) | Record::Warning(_) | Record::Loading(_) => unreachable!("it has no key"),
        }
    }

    /// Adds the part of another engine.
    pub(super) fn add(&mut self, record: Record) -> Result<(), String> {
        match (self, record) {
            (Part::Hello(first), Record::Hello(hello)) => require_same_plan(first, &hello),
            (Part::Ready(sum), Record::Ready(ready)) => {
                sum.connections += ready.connections;
                sum.prepared_statements += ready.prepared_statements;
                sum.connect_us = sum.connect_us.max(ready.connect_us);
                require_equal("session", &sum.session, &ready.session)
            }
            (Part::Phase(first), Record::Phase(phase)) => {
                require_equal(&format!("begin of the phase {:?}", phase.name), &first.at_us, &phase.at_us)
            }
            (Part::Tick(sum), Record::Tick(tick)) => {
                sum.events += tick.events;
                Ok(())
            }
            (Part::Interval(sum, generator), Record::Interval(interval)) => {
                add_generator(generator, &interval.generator);
                let span = to_span(*interval);
                require_equal(
                    "interval",
                    &(sum.start, sum.end, sum.phase),
                    &(span.start, span.end, span.phase),
                )?;
                sum.merge(&span);
                Ok(())
            }
            (Part::Statements(sum), Record::Statements(statements)) => add_statements(sum, statements),
            (Part::Loaded(sum), Record::Loaded(loaded)) => {
                add_loaded(sum, *loaded);
                Ok(())
            }
            (Part::End(sum), Record::End(end)) => sum.add(*end),
            (_, record) => unreachable!("parts with one key have one type: {record:?}"),
        }
    }
}

fn require_equal<T: PartialEq + std::fmt::Debug>(what: &str, first: &T, other: &T) -> Result<(), String> {
    if first == other {
        return Ok(());
    }
    Err(format!("its {what} is {other:?}, and that of another engine {first:?}"))
}

fn require_same_plan(first: &Hello, other: &Hello) -> Result<(), String> {
    require_equal("version", &(&first.engine, first.schema), &(&other.engine, other.schema))?;
    let mut plan = other.plan.clone();
    plan.segment = first.plan.segment;
    // The plans are long, and have secrets' names and statements: the message has neither.
    if plan == first.plan { Ok(()) } else { Err("its plan differs from that of another engine".into()) }
}

fn to_span(interval: Interval) -> Span {
    let latency = LatencySummary {
        buckets: interval.latency_us,
        sum_us: interval.latency_sum_us,
        min_us: interval.latency_min_us,
        max_us: interval.latency_max_us,
    };
    Span {
        phase: interval.phase,
        start: interval.start_us * 1000,
        end: interval.end_us * 1000,
        counts: interval.counts,
        latency,
        gaps: interval.gap_spans_ns,
        service: LatencySummary { buckets: interval.service_us, ..LatencySummary::default() },
        backlog: interval.backlog,
        in_flight: interval.in_flight,
        users_active: interval.users_active,
        users: Vec::new(),
        log_buckets: interval.log_buckets,
        outstanding_us: Default::default(),
    }
}

fn add_statements(sum: &mut Statements, part: Statements) -> Result<(), String> {
    require_equal("window of statements", &(sum.start_us, sum.phase), &(part.start_us, part.phase))?;
    for (kind, stats) in part.kinds {
        let StatementStats { count, rows, rows_expected, row_count_mismatches, latency_us } = stats;
        let total = sum.kinds.entry(kind).or_default();
        total.count += count;
        total.rows += rows;
        total.rows_expected += rows_expected;
        total.row_count_mismatches += row_count_mismatches;
        total.latency_us.merge(&latency_us);
    }
    Ok(())
}

/// The engines load at the same time, so their times are the longest ones.
fn add_loaded(sum: &mut Loaded, part: Loaded) {
    let Loaded {
        way, streams, rows, bytes, rows_us, index_us, after_us, analyze_us, retries, tables, ..
    } = part;
    if sum.way == LoadingWay::None {
        sum.way = way;
    }
    sum.streams += streams;
    sum.rows += rows;
    sum.bytes += bytes;
    sum.rows_us = sum.rows_us.max(rows_us);
    sum.index_us = sum.index_us.max(index_us);
    sum.after_us = sum.after_us.max(after_us);
    sum.analyze_us = sum.analyze_us.max(analyze_us);
    sum.retries += retries;
    for table in tables {
        match sum.tables.iter_mut().find(|known| known.table == table.table) {
            None => sum.tables.push(table),
            Some(known) => {
                known.rows += table.rows;
                known.bytes += table.bytes;
                known.rows_us = known.rows_us.max(table.rows_us);
                known.index_us = known.index_us.max(table.index_us);
            }
        }
    }
}
