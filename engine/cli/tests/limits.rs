//! How a run ends, from outside: limits of events and time, last events that are counted, marks, and what is told only
//! when it is asked for.

#![allow(clippy::disallowed_methods)] // A test starts processes.

mod common;

use std::process::Stdio;

use common::spawn;
use dbdyno_door::Record;
use dbdyno_door::log_buckets::LogScale;
use dbdyno_door::record::{End, EndReason, Interval, PhaseName, PhaseTotals};
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
    let changes = json!({"phases": {"measure_us": 0, "events": 1001, "last_events": "counted"}});
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
        let phases = json!({"measure_us": 0, "events": events, "last_events": "counted"});
        let load = json!({"connections": connections});
        let ran = run(&plan(0, json!({"phases": phases, "load": load})));
        assert_eq!((ran.end().reason, ran.measured().counts.events), (EndReason::EventLimit, events));
    }
}

#[test]
fn events_of_the_warm_up_are_not_among_the_planned() {
    let phases = json!({"warmup_us": 100_000, "measure_us": 0, "events": 50, "last_events": "counted"});
    let ran = run(&plan(10_000, json!({"phases": phases})));
    // Those under way when the measurement begins end in it.
    let carried = ran.end().phases[&PhaseName::Warmup].accounting.unfinished;
    assert!(ran.end().phases[&PhaseName::Warmup].counts.events > 0);
    assert_eq!(ran.measured().counts.events, 50 + carried);
}

#[test]
fn the_last_events_are_counted_and_end_the_run() {
    // An event takes 300 ms, and the limit comes at 400: the second one of each user ends after it.
    let phases = json!({"measure_us": 400_000, "last_events": "counted", "drain_us": u64::MAX});
    let report = json!({"interval_us": 150_000, "tick_us": 0});
    let ran = run(&plan(300_000, json!({"phases": phases, "report": report})));
    assert_eq!((ran.code, ran.end().reason), (Some(0), EndReason::TimeLimit));
    let totals = ran.measured();
    assert_eq!((totals.counts.events, totals.accounting.unfinished), (16, 0));
    let intervals = ran.intervals();
    let ends: Vec<u64> = intervals.iter().map(|interval| interval.end_us).collect();
    // The run ends with the last event, some time after 600 ms, and intervals go on until then.
    assert_eq!(ends[..4], [150_000, 300_000, 450_000, 600_000]);
    assert!(*ends.last().unwrap() >= 600_000 && totals.end_us == *ends.last().unwrap());
    assert_eq!(intervals[2].users_active, 8, "nobody has left before the last event");
    assert_eq!(intervals.last().unwrap().users_active, 0);
}

#[test]
fn events_that_do_not_end_are_given_up() {
    let phases = json!({"measure_us": 100_000, "last_events": "counted", "drain_us": 150_000});
    let ran = run(&plan(5_000_000, json!({"phases": phases})));
    assert_eq!((ran.code, ran.end().reason), (Some(4), EndReason::ForcedShutdown));
    let totals = ran.measured();
    assert_eq!((totals.end_us, totals.accounting.unfinished, totals.counts.events), (250_000, 8, 0));
    assert_eq!(ran.intervals().last().unwrap().users_active, 8);
}

#[test]
fn a_limit_of_events_ends_a_run_whose_last_events_do_not_count() {
    let phases = json!({"measure_us": 60_000_000, "events": 40});
    let ran = run(&plan(20_000, json!({"phases": phases})));
    assert_eq!((ran.code, ran.end().reason), (Some(0), EndReason::EventLimit));
    let accounting = &ran.measured().accounting;
    assert_eq!(accounting.due, 40);
    assert_eq!(accounting.done + accounting.unfinished, 40);
}

#[test]
fn an_open_loop_ends_with_its_limits_too() {
    for (phases, reason) in [
        (json!({"measure_us": 0, "events": 100, "last_events": "counted"}), EndReason::EventLimit),
        (json!({"measure_us": 300_000, "last_events": "counted"}), EndReason::TimeLimit),
    ] {
        let load = json!({"connections": 8, "shape": {"poisson": {"rate_per_s": 500.0}}});
        let ran = run(&plan(1000, json!({"phases": phases, "load": load})));
        assert_eq!((ran.code, ran.end().reason), (Some(0), reason));
        let totals = ran.measured();
        if reason == EndReason::EventLimit {
            assert_eq!(totals.counts.events, 100);
        } else {
            // 150 on average; six standard deviations.
            assert!(totals.counts.events.abs_diff(150) < 74, "{}", totals.counts.events);
        }
    }
}

#[test]
fn a_queue_that_must_not_overflow_ends_the_run() {
    let load = json!({"connections": 2, "shape": {"poisson": {"rate_per_s": 50_000.0}}, "queue_limit": 100,
                      "queue_overflow": "abort"});
    let ran = run(&plan(5000, json!({"load": load})));
    assert_eq!((ran.code, ran.end().reason), (Some(4), EndReason::QueueFull));
    assert!(ran.end().failure.as_ref().unwrap().text.contains("cannot keep up"));
}

#[test]
fn a_run_without_any_limit_ends_by_a_signal() {
    for last_events in ["unfinished", "counted"] {
        let phases = json!({"measure_us": 0, "last_events": last_events});
        let plan = plan(1000, json!({"phases": phases}));
        let mut child = spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit());
        let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
        // The handler of signals is there before the first record.
        let begun = lines.by_ref().find(|line| line.as_ref().unwrap().contains("\"phase\""));
        assert!(begun.is_some());
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        let last: Record = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
        let Record::End(end) = last else { panic!("no end: {last:?}") };
        assert_eq!(end.reason, EndReason::Interrupted);
        assert!(end.phases.contains_key(&PhaseName::Measure), "{last_events}: {end:?}");
        assert_eq!(child.wait().unwrap().code(), Some(130));
    }
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
fn users_and_sysbenchs_buckets_are_told_where_they_are_asked_for() {
    let phases = json!({"measure_us": 0, "events": 100, "last_events": "counted"});
    let report = json!({"interval_us": 20_000, "tick_us": 0, "users": true, "sysbench_buckets": true});
    let ran = run(&plan(5000, json!({"phases": phases, "report": report})));
    let (end, totals) = (ran.end(), ran.measured());
    assert_eq!(end.users.len(), 8);
    assert_eq!(end.users.iter().map(|user| user.events).sum::<u64>(), 100);
    let busy: f64 = end.users.iter().map(|user| user.busy_us).sum();
    assert!((busy / totals.latency_sum_us - 1.0).abs() < 1e-9);
    let least = end.users.iter().filter_map(|user| user.min_us).reduce(f64::min);
    assert_eq!(least, totals.latency_min_us);
    assert_eq!(totals.sysbench_buckets.iter().map(|&(_, count)| count).sum::<u64>(), 100);
    let mut added = Vec::new();
    for interval in ran.intervals() {
        dbdyno_door::log_buckets::merge(&mut added, &interval.sysbench_buckets);
    }
    assert_eq!(added, totals.sysbench_buckets);
    // Two rules of counting, one median: apart by half a bucket of each at most.
    let scale = LogScale::sysbench();
    let median_ms = scale.percentile(&totals.sysbench_buckets, 50.0);
    assert!((median_ms / (totals.percentiles_us.unwrap().p50.value_us / 1000.0) - 1.0).abs() < 0.012);

    // The last interval ends with the phase and tells of the users; those before it hold no mark.
    let told: Vec<usize> = ran.intervals().iter().map(|interval| interval.users.len()).collect();
    assert!(told.split_last().is_some_and(|(last, rest)| *last == 8 && rest.iter().all(|&users| users == 0)));
    assert_eq!(ran.intervals().last().unwrap().users, end.users);

    let plain = run(&plan(5000, json!({"phases": {"measure_us": 50_000}})));
    assert!(plain.end().users.is_empty() && plain.measured().sysbench_buckets.is_empty());
}

#[test]
fn collected_rows_are_sent_and_counted_before_the_end() {
    let phases = json!({"measure_us": 0, "events": 100, "last_events": "counted"});
    let workload = json!({"name": "bulk_insert"});
    let ran = run(&plan(0, json!({"phases": phases, "workload": workload})));
    let counts = &ran.measured().counts;
    // One statement of each user that has collected a row; who those are is up to the scheduler.
    assert_eq!(counts.events, 100);
    assert!((1..=8).contains(&counts.writes), "{counts:?}");
}

#[test]
fn a_silent_server_is_sysbenchs_dry_run() {
    let phases = json!({"measure_us": 0, "events": 10, "last_events": "counted"});
    let target = json!({"protocol": "null", "silent": true});
    let workload = json!({"name": "oltp_read_write"});
    let ran = run(&plan(0, json!({"phases": phases, "target": target, "workload": workload})));
    let counts = &ran.measured().counts;
    assert_eq!((counts.events, counts.reads, counts.writes, counts.other), (10, 0, 0, 200));
}

#[test]
fn connections_may_be_renewed_within_the_event_that_wears_them_out() {
    let phases = json!({"measure_us": 0, "events": 100, "last_events": "counted"});
    for (within, renewed) in [(true, 20), (false, 19)] {
        let load = json!({"connections": 1, "reconnect_every": 5, "reconnect_within": within});
        let ran = run(&plan(0, json!({"phases": phases, "load": load, "client": {"workers": 1}})));
        assert_eq!((ran.measured().counts.events, ran.measured().counts.reconnects), (100, renewed));
    }
}
