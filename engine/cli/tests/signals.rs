//! Tests of signals: a burst counts as one signal and ends the run; the next signal ends the process immediately.

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

/// Starts an unlimited run and waits until its clock runs. Statements take `answer_us`; the drain takes up to a minute.
fn start_run(answer_us: u64) -> (Child, Lines<BufReader<ChildStdout>>) {
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

fn send_signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Whether the run wrote its record `end`, and the exit code.
fn wait_for_end(mut child: Child, lines: Lines<BufReader<ChildStdout>>) -> (bool, Option<i32>) {
    let last = lines.map(Result::unwrap).last().unwrap_or_default();
    let has_reported = match serde_json::from_str(&last) {
        Ok(Record::End(end)) => end.reason == EndReason::Interrupted,
        _ => false,
    };
    (has_reported, child.wait().unwrap().code())
}

#[test]
fn a_burst_of_signals_counts_as_one() {
    for second in [Signal::INT, Signal::TERM] {
        // The transactions in flight take longer than the pause between the signals.
        let (child, lines) = start_run(300_000);
        send_signal(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(1));
        send_signal(&child, second);
        assert_eq!(wait_for_end(child, lines), (true, Some(130)), "{second:?}");
    }
}

#[test]
fn a_second_signal_ends_the_process_immediately() {
    // The second signal follows 0.2 s after the burst. If the machine stalls that long, both signals may count as one
    // burst; the test therefore has three attempts.
    let ends_immediately = || {
        let (child, lines) = start_run(10_000_000);
        send_signal(&child, Signal::INT);
        std::thread::sleep(Duration::from_millis(700));
        send_signal(&child, Signal::INT);
        wait_for_end(child, lines) == (false, Some(130))
    };
    assert!((0..3).any(|_| ends_immediately()));
}

#[test]
fn a_signal_ends_an_unlimited_run_with_its_totals() {
    let (mut child, lines) = start_run(1000);
    send_signal(&child, Signal::INT);
    let last: Record = serde_json::from_str(&lines.map(Result::unwrap).last().unwrap()).unwrap();
    let Record::End(end) = last else { panic!("no end: {last:?}") };
    assert_eq!(end.reason, EndReason::Interrupted);
    assert!(end.phases.contains_key(&PhaseName::Measure), "{end:?}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
