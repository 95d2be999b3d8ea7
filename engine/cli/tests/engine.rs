//! Tests of the program dbdyno-engine: its input is a plan, its output records. The target is the null server.

#![allow(clippy::disallowed_methods)] // A test starts processes.

mod common;

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use common::spawn;
use dbdyno_metrics::spans::add_counts;
use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, PhaseName};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

fn plan() -> serde_json::Value {
    json!({
        "schema": 1,
        "target": {"protocol": "null"},
        "workload": {"name": "oltp_read_write"},
        "load": {"connections": 8},
        "phases": {"warmup_us": 150_000, "measure_us": 350_000},
        "report": {"interval_us": 100_000, "tick_us": 50_000},
        "seed": 1,
    })
}

fn plan_with(key: &str, value: serde_json::Value) -> serde_json::Value {
    let mut plan = plan();
    plan[key] = value;
    plan
}

fn run_engine(command: &str, input: &str) -> Output {
    spawn(command, input, Stdio::piped(), Stdio::piped()).wait_with_output().unwrap()
}

fn records(output: &Output) -> Vec<Record> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn run(plan: &serde_json::Value) -> Vec<Record> {
    let output = run_engine("run", &format!("{plan}\n"));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    records(&output)
}

/// Asserts that every count of the intervals, statements and ticks adds up to the totals of its phase.
fn assert_sums(records: &[Record]) {
    let Some(Record::End(end)) = records.last() else { panic!("no end: {records:?}") };
    for (&phase, totals) in &end.phases {
        let mut counts = Default::default();
        let mut next = totals.start_us;
        for record in records {
            if let Record::Interval(interval) = record
                && interval.phase == phase
            {
                assert_eq!(interval.start_us, next, "a gap between intervals");
                next = interval.end_us;
                add_counts(&mut counts, &interval.counts);
            }
        }
        assert_eq!(next, totals.end_us);
        assert_eq!(counts, totals.counts);
        let statements: u64 = records
            .iter()
            .filter_map(|record| match record {
                Record::Statements(window) if window.phase == phase => Some(window),
                _ => None,
            })
            .flat_map(|window| window.kinds.values().map(|kind| kind.count))
            .sum();
        assert_eq!(statements, counts.reads + counts.writes + counts.other);
        let span = totals.start_us..totals.end_us;
        let ticks: u64 = records
            .iter()
            .filter_map(|record| match record {
                Record::Tick(tick) if span.contains(&(tick.at_us - 1)) => Some(tick.events),
                _ => None,
            })
            .sum();
        assert_eq!(ticks, counts.events);
    }
}

#[test]
fn a_run_is_hello_ready_phases_and_end() {
    let records = run(&plan());
    assert!(matches!(records[0], Record::Hello(_)));
    assert!(matches!(&records[1], Record::Ready(ready) if ready.connections == 8));
    let phases: Vec<_> = records
        .iter()
        .filter_map(|record| match record {
            Record::Phase(phase) => Some((phase.name, phase.at_us)),
            _ => None,
        })
        .collect();
    assert_eq!(phases, [(PhaseName::Warmup, 0), (PhaseName::Measure, 150_000)]);
    assert_sums(&records);
}

#[test]
fn counts_of_several_workers_add_up() {
    let mut plan = plan_with("client", json!({"workers": 3}));
    plan["load"]["connections"] = json!(7);
    let records = run(&plan);
    assert!(matches!(&records[1], Record::Ready(ready) if ready.connections == 7));
    assert_sums(&records);
}

#[test]
fn an_open_loop_keeps_its_rate_and_counts_every_arrival() {
    for shape in [json!({"constant": {"rate_per_s": 2000.0}}), json!({"poisson": {"rate_per_s": 2000.0}})] {
        let records = run(&plan_with("load", json!({"connections": 20, "shape": shape})));
        assert_sums(&records);
        let Some(Record::End(end)) = records.last() else { unreachable!() };
        // Arrivals that the warm-up leaves unfinished count as due in the measurement too; their number depends on the machine.
        let carried = end.phases[&PhaseName::Warmup].accounting.unfinished;
        let arrivals = end.phases[&PhaseName::Measure].accounting.due - carried;
        // 700 arrivals in 0.35 s; four standard deviations of a Poisson count are 106.
        assert!(arrivals.abs_diff(700) <= 106, "{arrivals}");
    }
}

#[test]
fn an_open_loop_above_capacity_counts_unfinished_events() {
    // With at least 10 ms per statement, two connections execute at most 200 point selects per second.
    let mut plan =
        plan_with("load", json!({"connections": 2, "shape": {"constant": {"rate_per_s": 5000.0}}}));
    plan["target"] = json!({"protocol": "null", "answer_us": 10_000});
    plan["workload"]["name"] = json!("oltp_point_select");
    let records = run(&plan);
    assert_sums(&records);
    let Some(Record::End(end)) = records.last() else { unreachable!() };
    let totals = &end.phases[&PhaseName::Measure];
    assert!(totals.accounting.unfinished > 2000, "{:?}", totals.accounting);
    // Latency counts from the due time: the last events have waited for most of the run.
    assert!(totals.latency_max_us.unwrap() > 300_000.0, "{:?}", totals.latency_max_us);
    // All events wait for the backlog of the warm-up and therefore start late, except those already in flight.
    let counts = &totals.counts;
    assert!(counts.events > 2 && counts.late + 2 >= counts.events, "{} of {}", counts.late, counts.events);
}

#[test]
fn littles_law_includes_events_at_the_edges_of_a_phase() {
    // A connection executes about 17 events per phase. Without the events in flight at the edges the error would be 6 %.
    let mut plan = plan_with("target", json!({"protocol": "null", "answer_us": 20_000}));
    plan["workload"]["name"] = json!("oltp_point_select");
    let records = run(&plan);
    let Some(Record::End(end)) = records.last() else { unreachable!() };
    let (before, measure) = (&end.phases[&PhaseName::Warmup], &end.phases[&PhaseName::Measure]);
    let inside_us = measure.latency_sum_us - before.accounting.unfinished_us as f64
        + measure.accounting.unfinished_us as f64;
    let busy = inside_us / (measure.end_us - measure.start_us) as f64;
    assert!((busy - 8.0).abs() < 0.08, "{busy}");
}

#[test]
fn an_error_lists_all_problems_of_a_plan() {
    let mut plan = plan_with("load", json!({"connections": 0}));
    plan["client"] = json!({"workers": 1000});
    plan["workload"]["options"] = json!({"tables": 0});
    let output = run_engine("run", &format!("{plan}\n"));
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    for problem in ["load.connections is 0", "client.workers is 1000", "workload.options.tables is 0"] {
        assert!(message.contains(problem), "{message}");
    }
    assert!(output.stdout.is_empty());
}

#[test]
fn an_unknown_key_is_named() {
    let output = run_engine("run", &format!("{}\n", plan_with("conections", json!(1))));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("conections"));
}

#[test]
fn an_unreachable_server_ends_with_exit_code_3() {
    let target = json!({"protocol": "mysql", "endpoints": [{"tcp": {"host": "127.0.0.1", "port": 1}}],
        "user": "u", "database": "d"});
    let output = run_engine("run", &format!("{}\n", plan_with("target", target)));
    assert_eq!(output.status.code(), Some(3));
    let records = records(&output);
    let Some(Record::End(end)) = records.last() else { panic!("no end") };
    assert_eq!(end.reason, EndReason::ConnectFailed);
    assert!(end.failure.as_ref().unwrap().text.contains("127.0.0.1:1"));
}

#[test]
fn the_end_of_standard_input_stops_a_run() {
    let plan = plan_with("start", json!({"on-command": {"start_timeout_us": 5_000_000}}));
    // Standard input ends after the start command, so the run begins and is abandoned.
    let start = json!({"type": "start", "data": {"at_unix_us": 0}});
    let output = run_engine("run", &format!("{plan}\n{start}\n"));
    assert_eq!(output.status.code(), Some(4));
    let Some(Record::End(end)) = records(&output).pop() else { panic!("no end") };
    assert_eq!(end.reason, EndReason::Abandoned);
}

#[test]
fn the_end_of_standard_input_ends_a_run_that_waits_for_a_server() {
    let mut plan = plan_with("start", json!({"on-command": {"start_timeout_us": 5_000_000}}));
    plan["target"] = json!({"protocol": "null", "answer_us": 60_000_000});
    let start = json!({"type": "start", "data": {"at_unix_us": 0}});
    let began = Instant::now();
    let output = run_engine("run", &format!("{plan}\n{start}\n"));
    assert_eq!(output.status.code(), Some(4));
    assert!(began.elapsed() < Duration::from_secs(5), "it waited {:?}", began.elapsed());
}

#[test]
fn sigint_ends_a_run_with_its_report() {
    let mut plan = plan();
    plan["phases"] = json!({"measure_us": 60_000_000});
    let mut child = spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut lines_read: Vec<String> = Vec::new();
    while !lines_read.last().is_some_and(|line| line.contains("\"interval\"")) {
        lines_read.push(lines.next().expect("an interval"));
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    lines_read.extend(lines);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let records: Vec<Record> = lines_read.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_sums(&records);
    let Some(Record::End(end)) = records.last() else { panic!("no end") };
    assert_eq!(end.reason, EndReason::Interrupted);
    assert!(end.phases[&PhaseName::Measure].counts.events > 0);
}

#[test]
fn plans_of_scripts_are_refused() {
    let plan = plan_with("workload", json!({"name": "lua", "script": {"path": "x.lua"}}));
    for command in ["prepare", "prewarm", "run", "cleanup"] {
        let output = run_engine(command, &format!("{plan}\n"));
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{command}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            message,
            "dbdyno-engine: the workload is a Lua script; run this plan with dbdyno-compat\n"
        );
    }
}
