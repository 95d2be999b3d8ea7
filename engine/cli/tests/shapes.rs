//! Tests of load shapes: the counts of runs against the null server with pauses, a changing load, and overload.

#![allow(clippy::disallowed_methods)] // A test starts processes.

mod common;

use std::process::Stdio;

use common::spawn;
use dbdyno_schema::Record;
use dbdyno_schema::record::{Interval, PhaseName, PhaseTotals};
use serde_json::{Value, json};

/// Runs `load` against a server that answers after `answer_us`; 100 ms of warm-up, 1 s of measurement.
fn run(load: Value, answer_us: u64, workers: u32) -> (PhaseTotals, Vec<Interval>) {
    let plan = json!({
        "schema": 1,
        "target": {"protocol": "null", "answer_us": answer_us},
        "workload": {"name": "oltp_point_select"},
        "load": load,
        "phases": {"warmup_us": 100_000, "measure_us": 1_000_000},
        "report": {"interval_us": 250_000, "tick_us": 50_000},
        "client": {"workers": workers},
        "seed": 1,
    });
    let child = spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut intervals = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line).unwrap() {
            Record::Interval(interval) if interval.phase == PhaseName::Measure => intervals.push(*interval),
            Record::End(end) => return (end.phases[&PhaseName::Measure].clone(), intervals),
            _ => {}
        }
    }
    panic!("no end: {text}");
}

#[test]
fn above_capacity_the_backlog_grows_and_percentiles_are_lower_bounds() {
    // With 10 ms per statement, four connections execute at most 400 per second; the rate is 50 % higher.
    let (totals, intervals) =
        run(json!({"connections": 4, "shape": {"constant": {"rate_per_s": 600.0}}}), 10_000, 1);
    let backlog: Vec<_> = intervals.iter().map(|interval| interval.backlog).collect();
    assert!(backlog.is_sorted() && backlog[3] > 150, "{backlog:?}");
    let accounting = &totals.accounting;
    assert_eq!(accounting.dropped, 0, "nothing is dropped unless a limit is set");
    assert_eq!(totals.drained_us.count() + totals.censored_us.count(), accounting.unfinished);
    assert_eq!(intervals[3].backlog + intervals[3].in_flight, accounting.unfinished);
    let percentiles = totals.percentiles_us.unwrap();
    assert!(percentiles.p99.censored && percentiles.max.censored, "{percentiles:?}");
    // Two thirds of the events were executed, so the oldest waiting event was due long before the end: it has waited for
    // more than 200 ms.
    assert!(percentiles.p99.value_us > 200_000.0, "{percentiles:?}");
}

#[test]
fn a_full_queue_drops_events_and_counts_them() {
    let shape = json!({"constant": {"rate_per_s": 2000.0}});
    let (totals, intervals) = run(json!({"connections": 4, "shape": shape, "queue_limit": 7}), 10_000, 2);
    assert!(intervals.iter().all(|interval| interval.backlog <= 7), "{intervals:?}");
    assert!(totals.counts.dropped > 1000, "{}", totals.counts.dropped);
    let dropped: u64 = intervals.iter().map(|interval| interval.counts.dropped).sum();
    assert_eq!(dropped, totals.accounting.dropped);
    assert!(totals.percentiles_us.unwrap().p50.censored, "most events were dropped");
}

#[test]
fn every_arrival_is_served_with_more_event_loops_than_connections() {
    for (connections, workers) in [(1, 2), (3, 4)] {
        let shape = json!({"constant": {"rate_per_s": 200.0}});
        let (totals, intervals) = run(json!({"connections": connections, "shape": shape}), 0, workers);
        let accounting = &totals.accounting;
        // An arrival at an edge may count on either side. A busy machine may serve the last ones late, but not a half or a
        // quarter of all.
        assert!(accounting.due.abs_diff(200) <= 1 && accounting.unfinished <= 20, "{accounting:?}");
        assert!(intervals.iter().all(|interval| interval.backlog <= 20), "{intervals:?}");
    }
}

#[test]
fn latency_does_not_include_pauses() {
    for think_time in [json!({"constant": {"us": 50_000}}), json!({"exponential": {"mean_us": 50_000}})] {
        let (totals, _) = run(json!({"connections": 40, "think_time": think_time}), 0, 1);
        // In 1 s, 40 users spend 40 s in pauses of 50 ms and in events; the end cuts off about half a pause of each user.
        // Five standard deviations of the sum of the pauses are 7 s. If latency included the pauses, the sum would be
        // 80 s. If the machine stalls, the cut-off part is longer and the sum smaller.
        let spent_s = totals.counts.events as f64 * 0.05 + totals.latency_sum_us / 1e6;
        assert!(
            (10.0..47.0).contains(&spent_s),
            "{think_time}: {spent_s} s, {} events",
            totals.counts.events
        );
    }
}

#[test]
fn a_ramp_has_as_many_arrivals_as_its_area() {
    let ramp =
        json!({"ramp": {"from_per_s": 0.0, "to_per_s": 1600.0, "over_us": 1_000_000, "gaps": "constant"}});
    let (totals, intervals) = run(json!({"connections": 20, "shape": ramp}), 0, 3);
    // 800 arrivals in total; 50, 150, 250 and 350 in the four quarters. An arrival at an edge may count on either side.
    assert!(totals.accounting.due.abs_diff(800) <= 1, "{:?}", totals.accounting);
    let mut done = 0;
    for (interval, due) in intervals.iter().zip([50_u64, 200, 450, 800]) {
        // Every event that was due is done, waiting or in flight, even if the machine is busy.
        done += interval.counts.events;
        let seen = done + interval.backlog + interval.in_flight;
        assert!(seen.abs_diff(due) <= 2, "{due}: {seen}");
    }
}

#[test]
fn each_step_has_its_number_of_busy_connections() {
    let step = |connections: u32| json!({"connections": connections, "for_us": 250_000});
    let shape = json!({"closed_steps": {"steps": [step(2), step(0), step(8), step(4)]}});
    let (_, intervals) = run(json!({"connections": 8, "shape": shape}), 10_000, 2);
    let in_flight: Vec<_> = intervals.iter().map(|interval| interval.in_flight).collect();
    // At the end of a step, every connection of the step has an event in flight, except one whose event has just ended.
    for (seen, busy) in in_flight.iter().zip([2, 0, 8, 4]) {
        assert!(*seen <= busy && seen + 1 >= busy, "{in_flight:?}");
    }
}
