//! How a run ends, from outside: limits of events and time, and marks.

#![allow(clippy::disallowed_methods)] // A test starts processes.

mod common;

use std::process::Stdio;

use common::spawn;
use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, Interval, PhaseName, PhaseTotals};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// What came out of a run.
struct Ran {
    code: Option<i32>,
    records: Vec<Record>,
}

/// A plan of 8 connections whose statements take `answer_us`, with `changes` on top of it.
fn plan(answer_us: u64, changes: Value) -> Value {
    let mut plan = json!({
        "schema": 1,
        "target": {"protocol": "null", "answer_us": answer_us},
        "workload": {"name": "oltp_point_select"},
        "load": {"connections": 8},
        "phases": {"measure_us": 0},
        "report": {"interval_us": 0, "tick_us": 0},
        "client": {"workers": 2},
        "seed": 1,
    });
    plan.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    plan
}

fn run(plan: &Value) -> Ran {
    let child = spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit());
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let records = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    Ran { code: output.status.code(), records }
}

impl Ran {
    fn end(&self) -> &End {
        match self.records.last() {
            Some(Record::End(end)) => end,
            other => panic!("no end: {other:?}"),
        }
    }

    fn measured(&self) -> &PhaseTotals {
        &self.end().phases[&PhaseName::Measure]
    }

    fn intervals(&self) -> Vec<&Interval> {
        let intervals = self.records.iter().filter_map(|record| match record {
            Record::Interval(interval) => Some(interval.as_ref()),
            _ => None,
        });
        intervals.collect()
    }

    fn phases(&self) -> usize {
        self.records.iter().filter(|record| matches!(record, Record::Phase(_))).count()
    }
}

#[test]
fn as_many_events_are_counted_as_were_asked_for() {
    let changes = json!({"phases": {"measure_us": 0, "events": 1001}});
    for workers in [1, 2, 3] {
        let mut plan = plan(1000, changes.clone());
        plan["client"] = json!({"workers": workers});
        let ran = run(&plan);
        assert_eq!((ran.code, ran.end().reason), (Some(0), EndReason::EventLimit));
        let totals = ran.measured();
        let accounting = &totals.accounting;
        assert_eq!((totals.counts.events, accounting.due, accounting.unfinished), (1001, 1001, 0));
        assert_eq!((ran.intervals().len(), ran.phases()), (1, 1));
        assert_eq!(ran.intervals()[0].users_active, 0);
    }
}

#[test]
fn a_run_without_a_pause_counts_its_events_too() {
    // Statements that answer at once, fewer events than users, and one user alone.
    for (connections, events) in [(8, 5000), (8, 3), (1, 1)] {
        let phases = json!({"measure_us": 0, "events": events});
        let load = json!({"connections": connections});
        let ran = run(&plan(0, json!({"phases": phases, "load": load})));
        assert_eq!((ran.end().reason, ran.measured().counts.events), (EndReason::EventLimit, events));
    }
}

#[test]
fn events_of_the_warm_up_are_not_among_the_planned() {
    let phases = json!({"warmup_us": 100_000, "measure_us": 0, "events": 50});
    let ran = run(&plan(10_000, json!({"phases": phases})));
    // Those under way when the measurement begins end in it.
    let carried = ran.end().phases[&PhaseName::Warmup].accounting.unfinished;
    assert!(ran.end().phases[&PhaseName::Warmup].counts.events > 0);
    assert_eq!(ran.measured().counts.events, 50 + carried);
}

#[test]
fn events_in_flight_at_the_time_limit_are_unfinished() {
    let phases = json!({"measure_us": 50_000, "events": 40});
    let ran = run(&plan(20_000, json!({"phases": phases})));
    let accounting = &ran.measured().accounting;
    assert_eq!((ran.code, ran.measured().end_us), (Some(0), 50_000));
    assert!(accounting.unfinished > 0 && accounting.done + accounting.unfinished == accounting.due);
}

#[test]
fn an_open_loop_ends_with_its_last_event_too() {
    let phases = json!({"measure_us": 0, "events": 100});
    let load = json!({"connections": 8, "shape": {"poisson": {"rate_per_s": 500.0}}});
    let ran = run(&plan(1000, json!({"phases": phases, "load": load})));
    assert_eq!((ran.code, ran.end().reason), (Some(0), EndReason::EventLimit));
    assert_eq!(ran.measured().counts.events, 100);
}

#[test]
fn a_run_without_any_limit_ends_by_a_signal() {
    let plan = plan(1000, json!({}));
    let mut child = spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit());
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    // The handler of signals is there before the first record.
    let begun = lines.by_ref().find(|line| line.as_ref().unwrap().contains("\"phase\""));
    assert!(begun.is_some());
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let last: Record = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    let Record::End(end) = last else { panic!("no end: {last:?}") };
    assert_eq!(end.reason, EndReason::Interrupted);
    assert!(end.phases.contains_key(&PhaseName::Measure), "{end:?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn marks_end_intervals_beside_the_regular_ones() {
    let phases = json!({"measure_us": 500_000});
    let report =
        json!({"interval_us": 200_000, "tick_us": 0, "marks_us": [100_000, 400_000, 450_000, 900_000]});
    let ran = run(&plan(1000, json!({"phases": phases, "report": report})));
    let ends: Vec<u64> = ran.intervals().iter().map(|interval| interval.end_us).collect();
    assert_eq!(ends, [100_000, 200_000, 400_000, 450_000, 500_000]);
    let report = json!({"interval_us": 0, "tick_us": 0, "marks_us": [100_000]});
    let ran = run(&plan(1000, json!({"phases": phases, "report": report})));
    let ends: Vec<u64> = ran.intervals().iter().map(|interval| interval.end_us).collect();
    assert_eq!(ends, [100_000, 500_000]);
    assert!(!ran.records.iter().any(|record| matches!(record, Record::Tick(_))));
}

#[test]
fn collected_rows_are_sent_and_counted_before_the_end() {
    let phases = json!({"measure_us": 0, "events": 100});
    let workload = json!({"name": "bulk_insert"});
    let ran = run(&plan(0, json!({"phases": phases, "workload": workload})));
    let counts = &ran.measured().counts;
    // One statement of each user that has collected a row; who those are is up to the scheduler.
    assert_eq!(counts.events, 100);
    assert!((1..=8).contains(&counts.writes), "{counts:?}");
}
