//! Signals that end a run: a burst of them is one, the one after it ends the process at once.

#![allow(clippy::disallowed_methods)] // A test starts processes, and sleeps.

mod common;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use common::spawn;
use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, PhaseName};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// A run without an end, once its clock runs. Its transactions take `answer_us` and are waited for a minute.
fn started(answer_us: u64) -> (Child, Lines<BufReader<ChildStdout>>) {
    let plan = json!({
        "schema": 1,
        "target": {"protocol": "null", "answer_us": answer_us},
        "workload": {"name": "oltp_point_select"},
        "load": {"connections": 4},
        "phases": {"measure_us": 0, "drain_us": 60_000_000},
        "seed": 1,
    });
    let mut child = spawn("run", &format!("{plan}\n"), Stdio::piped(), Stdio::inherit());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().contains("\"phase\"")));
    (child, lines)
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Whether the run wrote its last record, and the exit code.
fn ended(mut child: Child, lines: Lines<BufReader<ChildStdout>>) -> (bool, Option<i32>) {
    let last = lines.map(Result::unwrap).last().unwrap_or_default();
    let has_reported = match serde_json::from_str(&last) {
        Ok(Record::End(end)) => end.reason == EndReason::Interrupted,
        _ => false,
    };
    (has_reported, child.wait().unwrap().code())
}

#[test]
fn signals_of_one_burst_are_one() {
    for second in [Signal::INT, Signal::TERM] {
        // The transactions under way take longer than the pause between the signals.
        let (child, lines) = started(300_000);
        send(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(1));
        send(&child, second);
        assert_eq!(ended(child, lines), (true, Some(130)), "{second:?}");
    }
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    // It follows the end of the burst by 0.2 s. On a machine that stalls for as long the two may be one, so there are
    // three attempts.
    let ends_at_once = || {
        let (child, lines) = started(10_000_000);
        send(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(700));
        send(&child, Signal::INT);
        ended(child, lines) == (false, Some(130))
    };
    assert!((0..3).any(|_| ends_at_once()));
}

#[test]
fn a_run_without_any_limit_ends_by_a_signal_and_reports_its_totals() {
    let (mut child, lines) = started(1000);
    send(&child, Signal::INT);
    let last: Record = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    let Record::End(end) = last else { panic!("no end: {last:?}") };
    assert_eq!(end.reason, EndReason::Interrupted);
    assert!(end.phases.contains_key(&PhaseName::Measure), "{end:?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
