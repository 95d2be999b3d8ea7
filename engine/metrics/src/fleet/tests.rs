//! The records of several engines, merged, against the records of one engine that has run all events.

use std::collections::BTreeMap;

use dbdyno_schema::record::{
    Accounting, Counts, End, EndReason, Failure, Generator, Interval, Phase, PhaseTotals, Ready, Session,
    StatementStats, Statements, Tick,
};

use super::*;
use crate::gaps::GapRecorder;
use crate::histogram::{Buckets, Histogram, buckets_of};
use crate::spans::{DrainedEvents, PhaseAccounting, Span};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// One event: when it ended, and its latency, in nanoseconds.
type Event = (u64, u64);

/// A sequence of random numbers.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn span(second: u64, events: &[Event]) -> Span {
    let (start, end) = (second * SECOND, (second + 1) * SECOND);
    let own = || events.iter().filter(|(at, _)| (start..end).contains(at));
    let (mut histogram, mut gaps) = (Histogram::default(), GapRecorder::default());
    gaps.take(start);
    own().for_each(|&(at, latency)| {
        histogram.record_ns(latency);
        gaps.complete_event(at);
    });
    let events = own().count() as u64;
    Span {
        phase: PhaseName::Measure,
        start,
        end,
        counts: Counts { events, rows: 3 * events, ..Counts::default() },
        latency: histogram.take(),
        gaps: gaps.take(end),
        service: Default::default(),
        backlog: events,
        in_flight: 1,
        users_active: 2,
        users: Vec::new(),
        log_buckets: Vec::new(),
        outstanding_us: Buckets::default(),
    }
}

/// The records of an engine that ran `events` and, in an open loop, had some events in flight at the end.
fn records(events: &[Event], drained: &[u64], censored: &[u64], engines: u32) -> Vec<Record> {
    let mut totals = RunTotals::of_fleet(engines);
    let mut intervals: Vec<Record> = (0..3)
        .map(|second| totals.add_interval(span(second, events), Generator::default()))
        .map(|interval| Record::Interval(Box::new(interval)))
        .collect();
    let done = events.len() as u64;
    let unfinished = (drained.len() + censored.len()) as u64;
    let accounting = Accounting { due: done + unfinished, done, unfinished, ..Accounting::default() };
    totals.close_phase(PhaseName::Measure, PhaseAccounting { accounting, censored: Buckets::default() });
    let mut latency = Histogram::default();
    drained.iter().for_each(|&value| latency.record_ns(value));
    let drained = DrainedEvents { latency: latency.take(), censored: buckets_of(censored.iter().copied()) };
    intervals.push(end(EndReason::TimeLimit, totals.totals(&drained)));
    intervals
}

fn end(reason: EndReason, phases: BTreeMap<PhaseName, PhaseTotals>) -> Record {
    Record::End(Box::new(End {
        reason,
        failure: None,
        phases,
        users: Vec::new(),
        memory_peak_bytes: 10,
        cpu_us: 7,
    }))
}

fn merger(engines: usize) -> FleetMerger {
    FleetMerger::new((0..engines).map(|engine| format!("host {engine}")).collect())
}

/// Passes the records of all engines in a random order that keeps the order of each engine.
fn merge(streams: Vec<Vec<Record>>, draw: &mut Draw) -> Vec<Record> {
    let mut merger = merger(streams.len());
    let mut left: Vec<_> = streams.into_iter().map(Vec::into_iter).collect();
    let mut merged = Vec::new();
    while left.iter().any(|stream| stream.len() > 0) {
        let engine = draw.below(left.len() as u64) as usize;
        if let Some(record) = left[engine].next() {
            merged.extend(merger.add(engine, record).unwrap());
        }
    }
    assert!(matches!(merged.last(), Some(Record::End(_))));
    merged
}

#[test]
fn the_merged_records_are_those_of_all_events_together() {
    let mut draw = Draw(1);
    for engines in [1, 2, 3, 7] {
        for _ in 0..30 {
            let mut own: Vec<(Vec<Event>, Vec<u64>, Vec<u64>)> = Vec::new();
            for _ in 0..engines {
                let mut events: Vec<Event> = (0..draw.below(200))
                    .map(|_| (draw.below(3 * SECOND), 1000 * (1 + draw.below(1_000_000))))
                    .collect();
                events.sort_unstable();
                let mut values =
                    |most| (0..draw.below(most)).map(|_| 1000 * (1 + draw.below(2_000_000))).collect();
                own.push((events, values(4), values(3)));
            }
            let mut all = (Vec::new(), Vec::new(), Vec::new());
            for (events, drained, censored) in &own {
                all.0.extend(events);
                all.1.extend(drained);
                all.2.extend(censored);
            }
            all.0.sort_unstable();
            let streams = own.iter().map(|(e, d, c)| records(e, d, c, engines)).collect();
            let merged = merge(streams, &mut draw);
            let joined = records(&all.0, &all.1, &all.2, 1);
            assert_eq!(merged.len(), joined.len());
            merged
                .into_iter()
                .zip(joined)
                .for_each(|(merged, joined)| compare(merged, joined, u64::from(engines)));
        }
    }
}

/// Compares a merged record with that of one engine, except for what describes the engines.
fn compare(merged: Record, joined: Record, engines: u64) {
    match (merged, joined) {
        (Record::Interval(mut merged), Record::Interval(joined)) => {
            assert_eq!((merged.in_flight, merged.users_active), (engines, 2 * engines as u32));
            merged.in_flight = joined.in_flight;
            merged.users_active = joined.users_active;
            assert!((merged.latency_sum_us - joined.latency_sum_us).abs() < 1e-3);
            merged.latency_sum_us = joined.latency_sum_us;
            assert_eq!(merged, joined);
        }
        (Record::End(merged), Record::End(joined)) => {
            assert_eq!((merged.memory_peak_bytes, merged.cpu_us), (10 * engines, 7 * engines));
            let (name, mut merged) = merged.phases.into_iter().next().unwrap();
            let joined = &joined.phases[&name];
            merged.latency_sum_us = joined.latency_sum_us;
            // A bucket's middle is limited by the largest value, of which drained events have only the bucket.
            let (Some(merged_percentiles), Some(percentiles)) =
                (&mut merged.percentiles_us, &joined.percentiles_us)
            else {
                return assert_eq!(merged.percentiles_us, joined.percentiles_us);
            };
            let near = (merged_percentiles.p99_9.value_us / percentiles.p99_9.value_us - 1.0).abs();
            assert!(near < 1e-3, "{merged_percentiles:?} {percentiles:?}");
            for (merged, joined) in [
                (&mut merged_percentiles.p50, &percentiles.p50),
                (&mut merged_percentiles.p90, &percentiles.p90),
                (&mut merged_percentiles.p95, &percentiles.p95),
                (&mut merged_percentiles.p99, &percentiles.p99),
                (&mut merged_percentiles.p99_9, &percentiles.p99_9),
            ] {
                assert_eq!(merged.censored, joined.censored);
                assert!((merged.value_us / joined.value_us - 1.0).abs() < 1e-3, "{merged:?} {joined:?}");
                merged.value_us = joined.value_us;
            }
            assert_eq!(&merged, joined);
        }
        pair => panic!("{pair:?}"),
    }
}

fn interval(record: &Record) -> &Interval {
    match record {
        Record::Interval(interval) => interval,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_engine_that_ends_early_fails_the_run_without_totals() {
    let mut merger = merger(2);
    let stream = records(&[(SECOND / 2, MS)], &[], &[], 2);
    assert_eq!(merger.add(0, stream[0].clone()).unwrap(), []);
    let failure = Failure { text: "the server is gone".into(), ..Failure::default() };
    let lost = End {
        reason: EndReason::ConnectionLost,
        failure: Some(failure),
        phases: BTreeMap::new(),
        users: Vec::new(),
        memory_peak_bytes: 0,
        cpu_us: 0,
    };
    let merged = merger.add(1, Record::End(Box::new(lost))).unwrap();
    let [Record::End(end)] = merged.as_slice() else { panic!("{merged:?}") };
    assert_eq!(end.failure.as_ref().unwrap().text, "host 1: the server is gone");
    assert!(end.phases.is_empty());
    // What the others still write is no result.
    assert_eq!(merger.add(0, stream[3].clone()).unwrap(), []);
}

#[test]
fn connections_add_up_and_the_worst_load_generator_counts() {
    let mut merger = merger(2);
    let ready = |connections, connect_us| {
        Record::Ready(Ready { connections, connect_us, prepared_statements: 5, session: Session::default() })
    };
    assert_eq!(merger.add(1, ready(3, 900)).unwrap(), []);
    let Record::Ready(sum) = &merger.add(0, ready(4, 100)).unwrap()[0] else { panic!("no ready") };
    assert_eq!((sum.connections, sum.connect_us, sum.prepared_statements), (7, 900, 10));
    for (engine, cpu, delay) in [(0, 0.2, None), (1, 0.9, Some(7))] {
        let mut one = records(&[], &[], &[], 2).remove(0);
        if let Record::Interval(interval) = &mut one {
            interval.generator =
                Generator { cpu, client_delay_us_p99: delay, steal: 0.1, ..Generator::default() };
        }
        let merged = merger.add(engine, one).unwrap();
        if engine == 1 {
            let generator = &interval(&merged[0]).generator;
            assert_eq!((generator.cpu, generator.steal, generator.client_delay_us_p99), (0.9, 0.1, Some(7)));
        }
    }
}

#[test]
fn statements_of_some_engines_come_before_the_next_interval() {
    let mut merger = merger(2);
    let stream = records(&[(SECOND / 2, MS)], &[], &[], 2);
    let stats =
        StatementStats { count: 2, rows: 4, latency_us: Buckets(vec![(8, 2)]), ..StatementStats::default() };
    let window = |kind: &str| {
        let kinds = BTreeMap::from([(kind.to_owned(), stats.clone())]);
        Record::Statements(Statements { phase: PhaseName::Measure, start_us: 0, end_us: 1_000_000, kinds })
    };
    for (engine, record) in
        [(0, stream[0].clone()), (1, stream[0].clone()), (0, window("read")), (0, stream[1].clone())]
    {
        merger.add(engine, record).unwrap();
    }
    merger.add(1, window("read")).unwrap();
    let merged = merger.add(1, stream[1].clone()).unwrap();
    let [Record::Statements(sum), Record::Interval(_)] = merged.as_slice() else { panic!("{merged:?}") };
    assert_eq!(sum.kinds["read"].count, 4);
    assert_eq!(sum.kinds["read"].latency_us, Buckets(vec![(8, 4)]));
}

#[test]
fn records_that_do_not_fit_are_refused() {
    let tick = |at_us| Record::Tick(Tick { at_us, events: 1 });
    let mut twice = merger(2);
    twice.add(0, tick(5)).unwrap();
    assert_eq!(twice.add(0, tick(5)).unwrap_err(), "host 0: it sent the record Tick(5) twice");
    assert!(twice.add(2, tick(5)).unwrap_err().contains("no engine 2"));
    let phase = |at_us| Record::Phase(Phase { name: PhaseName::Measure, at_us, at_unix_us: 0 });
    let mut other = merger(2);
    other.add(0, phase(5)).unwrap();
    assert!(other.add(1, phase(6)).unwrap_err().starts_with("host 1: its begin of the phase Measure is 6"));
    assert_eq!(other.missing(), ["host 0", "host 1"]);
}
