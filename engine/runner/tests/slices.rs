//! Tests of loads that pause and resume on command, without a server.

use dbdyno_runner::{Control, RunSpec, Secrets, Sink};
use dbdyno_schema::Record;
use dbdyno_schema::record::{End, EndReason, PhaseName, Slice};
use serde_json::{Value, json};

/// The records of a run. Sends the next of `commands` when the load has started, and after each slice.
struct Driver {
    control: Control,
    when_ready: fn(&Control),
    commands: Vec<fn(&Control)>,
    slices: Vec<Slice>,
    others: Vec<Record>,
}

impl Sink for Driver {
    fn record(&mut self, record: &Record) -> bool {
        if matches!(record, Record::Ready(_)) {
            (self.when_ready)(&self.control);
        }
        match record {
            Record::Slice(slice) => self.slices.push((**slice).clone()),
            other => self.others.push(other.clone()),
        }
        if matches!(record, Record::Slice(_) | Record::Phase(_)) && !self.commands.is_empty() {
            self.commands.remove(0)(&self.control);
        }
        true
    }
}

impl Driver {
    fn end(&self) -> &End {
        match self.others.last() {
            Some(Record::End(end)) => end,
            other => panic!("no end: {other:?}"),
        }
    }

    fn failure(&self) -> &str {
        &self.end().failure.as_ref().unwrap().text
    }
}

/// Runs 3 connections on 2 event loops, with `changes` to the plan; an event takes about 2 ms.
fn run(changes: &Value, commands: &[fn(&Control)]) -> Driver {
    run_with(changes, commands, |it| it.start(0))
}

/// As `run`, with another command when the connections are open.
fn run_with(changes: &Value, commands: &[fn(&Control)], when_ready: fn(&Control)) -> Driver {
    let mut plan = json!({
        "schema": 1,
        "target": {"protocol": "null", "answer_us": 2000},
        "workload": {"name": "oltp_point_select"},
        "load": {"connections": 3, "shape": {"closed_slices": {"guard_us": 20_000}}},
        "phases": {"measure_us": 0},
        "report": {"interval_us": 0, "tick_us": 0},
        "client": {"workers": 2},
        "start": {"on-command": {"start_timeout_us": 5_000_000}},
        "seed": 1,
    });
    plan.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    let spec = RunSpec::new(serde_json::from_value(plan).unwrap(), Secrets::default());
    assert_eq!(spec.plan.problems(), [""; 0]);
    let (control, inbox) = dbdyno_runner::channel();
    let (commands, slices, others) = (commands.to_vec(), Vec::new(), Vec::new());
    let mut driver = Driver { control, when_ready, commands, slices, others };
    dbdyno_runner::run(&spec, inbox, &mut driver);
    driver
}

/// Asserts what holds for the slices of every run that `finish` ended.
fn assert_slices(driver: &Driver, numbers: &[u64]) {
    assert_eq!(driver.end().reason, EndReason::Done, "{:?}", driver.end().failure);
    assert!(!driver.others.iter().any(|record| matches!(record, Record::Interval(_) | Record::Tick(_))));
    assert_eq!(driver.slices.iter().map(|slice| slice.slice).collect::<Vec<_>>(), numbers);
    let mut events = 0;
    let mut paused_us = 0;
    for slice in &driver.slices {
        assert!(slice.resumed_us >= paused_us, "{slice:?}");
        assert!((slice.resumed_us..slice.end_us).contains(&slice.began_us.unwrap()), "{slice:?}");
        assert!(slice.paused_us >= slice.end_us && slice.in_flight <= 3, "{slice:?}");
        assert_eq!(slice.latency_us.count(), slice.counts.events);
        assert_eq!(slice.in_flight_latency_us.count(), slice.in_flight);
        events += slice.guard_events + slice.counts.events + slice.in_flight;
        paused_us = slice.paused_us;
    }
    let totals = &driver.end().phases[&PhaseName::Measure];
    assert_eq!((totals.counts.events, totals.accounting.unfinished), (events, 0));
    assert_eq!(totals.counts.reads, events, "an event is one statement");
}

#[test]
fn a_load_runs_only_in_slices_and_every_event_is_counted() {
    let resumes: [fn(&Control); 4] =
        [|it| it.resume(7, 60_000), |it| it.resume(3, 30_000), |it| it.resume(9, 60_000), |it| it.finish()];
    let driver = run(&json!({}), &resumes);
    assert_slices(&driver, &[7, 3, 9]);
    let lengths = driver.slices.iter().map(|slice| {
        assert_eq!(slice.start_us - slice.resumed_us, 20_000);
        slice.end_us - slice.start_us
    });
    assert_eq!(lengths.collect::<Vec<_>>(), [40_000, 10_000, 40_000]);
    let first = &driver.slices[0];
    assert!(first.guard_events > 0 && first.counts.events > 0, "{first:?}");
}

#[test]
fn event_loops_without_connections_pause_too() {
    let changes = json!({"client": {"workers": 5},
        "load": {"connections": 1, "shape": {"closed_slices": {"guard_us": 0}}}});
    let driver = run(&changes, &[|it| it.resume(0, 20_000), |it| it.resume(1, 20_000), |it| it.finish()]);
    assert_slices(&driver, &[0, 1]);
    let [first, second] = &driver.slices[..] else { unreachable!() };
    assert_eq!((first.guard_events, second.guard_events), (0, 0), "there is no guard time");
}

#[test]
fn an_event_that_outlasts_its_slice_delays_the_pause() {
    let target = json!({"target": {"protocol": "null", "answer_us": 50_000}});
    let driver = run(&target, &[|it| it.resume(0, 25_000), |it| it.finish()]);
    assert_slices(&driver, &[0]);
    let slice = &driver.slices[0];
    assert_eq!((slice.guard_events, slice.counts.events, slice.in_flight), (0, 0, 3));
    assert!(slice.paused_us >= slice.resumed_us + 50_000, "{slice:?}");
    assert!(slice.in_flight_latency_us.0.iter().all(|&(lower_us, _)| lower_us >= 49_900), "{slice:?}");
}

#[test]
fn the_time_limit_cuts_off_a_slice_without_a_record() {
    let phases = json!({"phases": {"measure_us": 50_000}});
    let driver = run(&phases, &[|it| it.resume(0, 1_000_000)]);
    assert_eq!((driver.end().reason, driver.slices.len()), (EndReason::TimeLimit, 0));
    assert!(driver.end().phases[&PhaseName::Measure].counts.events > 0);
}

#[test]
fn a_command_that_does_not_fit_ends_the_run() {
    let early = run(
        &json!({}),
        &[|it| {
            it.resume(4, 30_000_000);
            it.resume(5, 30_000);
        }],
    );
    assert_eq!(early.failure(), "slice 5 was to begin before slice 4 had ended");
    let short = run(&json!({}), &[|it| it.resume(1, 20_000)]);
    assert_eq!(short.failure(), "for_us of slice 1 is 20000; it must be between 20001 and 86400000000");
    for command in [|it: &Control| it.resume(1, 20_000), |it: &Control| it.finish()] {
        let plain = run(&json!({"load": {"connections": 1}}), &[command]);
        assert_eq!(plain.end().reason, EndReason::Abandoned);
        assert!(
            plain.failure().starts_with("resume or finish arrived before the record `phase`, or load.shape")
        );
    }
    for command in [|it: &Control| it.resume(1, 30_000), |it: &Control| it.finish()] {
        let unstarted = run_with(&json!({}), &[], command);
        assert_eq!(unstarted.end().reason, EndReason::Abandoned);
        assert!(unstarted.failure().starts_with("resume or finish arrived before the record `phase`"));
    }
}
