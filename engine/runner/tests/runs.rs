//! Tests of runs without a server: event and time limits, marks, and the options of programs that embed the engine.

use std::sync::Arc;

use dbdyno_runner::{
    ExtraCounts, Inbox, MeasurementEnd, Options, QueueOverflow, Renewal, RunEnd, RunSpec, Secrets, Sink,
    TableStatements,
};
use dbdyno_schema::Record;
use dbdyno_schema::histogram::merge_counts;
use dbdyno_schema::log_buckets::LogScale;
use dbdyno_schema::plan::Distribution;
use dbdyno_schema::record::{End, EndReason, Interval, LoadingStep, PhaseName, PhaseTotals};
use serde_json::{Value, json};

/// The records of a run and why it ended.
struct FinishedRun {
    reason: EndReason,
    records: Vec<Record>,
}

impl Sink for FinishedRun {
    fn record(&mut self, record: &Record) -> bool {
        self.records.push(record.clone());
        true
    }
}

impl FinishedRun {
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
}

/// A run of 8 connections whose statements take `answer_us` microseconds, with `changes` to the plan.
fn spec(answer_us: u64, changes: &Value, options: Options) -> RunSpec {
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
    let spec = RunSpec { options, ..RunSpec::new(serde_json::from_value(plan).unwrap(), Secrets::default()) };
    assert_eq!(spec.plan.problems(), Vec::<String>::new());
    spec
}

fn run_to_end(work: fn(&RunSpec, Inbox, &mut dyn Sink) -> RunEnd, spec: &RunSpec) -> FinishedRun {
    let (_control, inbox) = dbdyno_runner::channel();
    let mut finished = FinishedRun { reason: EndReason::Done, records: Vec::new() };
    finished.reason = work(spec, inbox, &mut finished).reason;
    finished
}

fn run(answer_us: u64, changes: &Value, options: Options) -> FinishedRun {
    run_to_end(dbdyno_runner::run, &spec(answer_us, changes, options))
}

fn counting_last_events() -> Options {
    Options { measurement_end: MeasurementEnd::AfterLastEvent, ..Options::default() }
}

#[test]
fn the_last_events_are_counted_and_end_the_run() {
    // An event takes 300 ms and the time limit is 400 ms, so the second event of each user ends after the limit.
    let phases = json!({"measure_us": 400_000, "drain_us": u64::MAX});
    let report = json!({"interval_us": 150_000, "tick_us": 0});
    let finished = run(300_000, &json!({"phases": phases, "report": report}), counting_last_events());
    assert_eq!(finished.reason, EndReason::TimeLimit);
    let totals = finished.measured();
    assert_eq!((totals.counts.events, totals.accounting.unfinished), (16, 0));
    let intervals = finished.intervals();
    let ends: Vec<u64> = intervals.iter().map(|interval| interval.end_us).collect();
    // The run ends with the last event, some time after 600 ms, and so does the last interval.
    assert_eq!(ends[..4], [150_000, 300_000, 450_000, 600_000]);
    assert!(*ends.last().unwrap() >= 600_000 && totals.end_us == *ends.last().unwrap());
    assert_eq!(intervals[2].users_active, 8, "no user has ended before its last event");
    assert_eq!(intervals.last().unwrap().users_active, 0);
}

#[test]
fn a_forced_shutdown_does_not_wait_for_events() {
    let phases = json!({"measure_us": 100_000, "drain_us": 150_000});
    let finished = run(5_000_000, &json!({"phases": phases}), counting_last_events());
    assert_eq!(finished.reason, EndReason::ForcedShutdown);
    let totals = finished.measured();
    assert_eq!((totals.end_us, totals.accounting.unfinished, totals.counts.events), (250_000, 8, 0));
    assert_eq!(finished.intervals().last().unwrap().users_active, 8);
}

#[test]
fn an_open_loop_finishes_its_last_events_too() {
    let load = json!({"connections": 8, "shape": {"poisson": {"rate_per_s": 500.0}}});
    let changes = json!({"phases": {"measure_us": 300_000}, "load": load});
    let finished = run(1000, &changes, counting_last_events());
    assert_eq!(finished.reason, EndReason::TimeLimit);
    // 150 on average; six standard deviations.
    let events = finished.measured().counts.events;
    assert!(events.abs_diff(150) < 74, "{events}");
}

#[test]
fn an_overflow_of_the_queue_ends_the_run_with_the_option_abort() {
    let load = json!({"connections": 2, "shape": {"poisson": {"rate_per_s": 50_000.0}}, "queue_limit": 100});
    let options = Options { queue_overflow: QueueOverflow::Abort, ..Options::default() };
    let finished = run(5000, &json!({"load": load}), options);
    assert_eq!(finished.reason, EndReason::QueueFull);
    assert!(finished.end().failure.as_ref().unwrap().text.contains("cannot keep up"));
}

#[test]
fn users_and_buckets_are_counted_if_the_options_request_it() {
    let scale = LogScale::new(1024, 0.001, 100_000.0);
    let extra_counts = ExtraCounts { log_buckets: Some(scale), users: true };
    let phases = json!({"measure_us": 0, "events": 100});
    let report = json!({"interval_us": 20_000, "tick_us": 0});
    let options = Options { extra_counts, ..Options::default() };
    let finished = run(5000, &json!({"phases": phases, "report": report}), options);
    let (end, totals) = (finished.end(), finished.measured());
    assert_eq!(end.users.len(), 8);
    assert_eq!(end.users.iter().map(|user| user.events).sum::<u64>(), 100);
    let busy: f64 = end.users.iter().map(|user| user.busy_us).sum();
    assert!((busy / totals.latency_sum_us - 1.0).abs() < 1e-9);
    let least = end.users.iter().filter_map(|user| user.min_us).reduce(f64::min);
    assert_eq!(least, totals.latency_min_us);
    assert_eq!(totals.log_buckets.iter().map(|&(_, count)| count).sum::<u64>(), 100);
    let mut added = Vec::new();
    finished.intervals().iter().for_each(|interval| merge_counts(&mut added, &interval.log_buckets));
    assert_eq!(added, totals.log_buckets);
    // The medians of the two histograms differ by at most half a bucket of each.
    let median_ms = scale.percentile(&totals.log_buckets, 50.0);
    assert!((median_ms / (totals.percentiles_us.unwrap().p50.value_us / 1000.0) - 1.0).abs() < 0.012);

    // The last interval ends with the phase and has the totals of the users; other intervals have them only at marks.
    let users_per_interval: Vec<usize> =
        finished.intervals().iter().map(|interval| interval.users.len()).collect();
    assert!(
        users_per_interval
            .split_last()
            .is_some_and(|(last, rest)| *last == 8 && rest.iter().all(|&users| users == 0))
    );
    assert_eq!(finished.intervals().last().unwrap().users, end.users);

    let plain = run(5000, &json!({"phases": {"measure_us": 50_000}}), Options::default());
    assert!(plain.end().users.is_empty() && plain.measured().log_buckets.is_empty());
}

#[test]
fn without_a_server_answers_may_be_empty() {
    let changes = json!({"phases": {"measure_us": 0, "events": 10}, "workload": {"name": "oltp_read_write"}});
    let finished = run(0, &changes, Options { empty_answers: true, ..Options::default() });
    let counts = &finished.measured().counts;
    assert_eq!((counts.events, counts.reads, counts.writes, counts.other), (10, 0, 0, 200));
}

/// Tables of five rows, with an index.
#[derive(Debug)]
struct EmbeddedTables;

impl TableStatements for EmbeddedTables {
    fn rows(&self) -> u64 {
        5
    }
    fn keys(&self) -> &Distribution {
        &Distribution::Uniform
    }
    fn create(&self, table: u32) -> String {
        format!("CREATE TABLE sbtest{table} (id INT, k INT, c CHAR(120), pad CHAR(60))")
    }
    fn insert(&self, table: u32) -> (String, bool) {
        (format!("INSERT INTO sbtest{table} VALUES"), true)
    }
    fn create_index(&self, table: u32) -> Option<String> {
        Some(format!("CREATE INDEX k_{table} ON sbtest{table} (k)"))
    }
    fn before_scans(&self) -> &'static [&'static str] {
        &[]
    }
    fn scans(&self, table: u32) -> Vec<String> {
        vec![format!("SELECT COUNT(*) FROM sbtest{table}")]
    }
    fn drop_table(&self, table: u32) -> String {
        format!("DROP TABLE sbtest{table}")
    }
}

#[test]
fn every_step_on_tables_of_an_embedding_program_is_reported() {
    type Command = fn(&RunSpec, Inbox, &mut dyn Sink) -> RunEnd;
    let steps = |command: Command, tables: Option<Arc<dyn TableStatements>>| {
        let changes = json!({"workload": {"name": "oltp_read_only", "options": {"tables": 2}}});
        let finished = run_to_end(command, &spec(0, &changes, Options { tables, ..Options::default() }));
        assert_eq!(finished.reason, EndReason::Done);
        let steps = finished.records.into_iter().filter_map(|record| match record {
            Record::Loading(step) => Some((step.step, step.table, step.rows_planned)),
            _ => None,
        });
        steps.collect::<Vec<_>>()
    };
    let of = |begun: &[LoadingStep]| {
        let tables = ["sbtest1", "sbtest2"].into_iter();
        tables.flat_map(|table| begun.iter().map(|&step| (step, table.to_owned(), 10))).collect::<Vec<_>>()
    };
    let prepare_steps = [LoadingStep::Creating, LoadingStep::Filling, LoadingStep::Indexing];
    assert_eq!(steps(dbdyno_runner::prepare, Some(Arc::new(EmbeddedTables))), of(&prepare_steps));
    assert_eq!(steps(dbdyno_runner::prewarm, Some(Arc::new(EmbeddedTables))), of(&[LoadingStep::Prewarming]));
    assert_eq!(steps(dbdyno_runner::cleanup, Some(Arc::new(EmbeddedTables))), of(&[LoadingStep::Dropping]));
    assert_eq!(steps(dbdyno_runner::prepare, None), []);
}

#[test]
fn connections_are_renewed_before_the_next_event_or_within_the_last() {
    let load = json!({"connections": 1, "reconnect_every": 5});
    let changes = json!({"phases": {"measure_us": 0, "events": 100}, "load": load, "client": {"workers": 1}});
    for (renewal, renewed) in [(Renewal::WithinLastEvent, 20), (Renewal::BeforeNextEvent, 19)] {
        let finished = run(0, &changes, Options { renewal, ..Options::default() });
        assert_eq!(
            (finished.measured().counts.events, finished.measured().counts.reconnects),
            (100, renewed)
        );
    }
}

#[test]
fn the_event_limit_is_the_number_of_counted_events() {
    for workers in [1, 2, 3] {
        let changes = json!({"phases": {"measure_us": 0, "events": 1001}, "client": {"workers": workers}});
        let finished = run(1000, &changes, Options::default());
        assert_eq!(finished.end().reason, EndReason::EventLimit);
        let totals = finished.measured();
        let accounting = &totals.accounting;
        assert_eq!((totals.counts.events, accounting.due, accounting.unfinished), (1001, 1001, 0));
        let phases = finished.records.iter().filter(|record| matches!(record, Record::Phase(_))).count();
        assert_eq!((finished.intervals().len(), phases), (1, 1));
        assert_eq!(finished.intervals()[0].users_active, 0);
    }
}

#[test]
fn the_event_limit_holds_without_response_times() {
    // More events than users, fewer events than users, and a single user.
    for (connections, events) in [(8, 5000), (8, 3), (1, 1)] {
        let phases = json!({"measure_us": 0, "events": events});
        let load = json!({"connections": connections});
        let finished = run(0, &json!({"phases": phases, "load": load}), Options::default());
        assert_eq!(
            (finished.end().reason, finished.measured().counts.events),
            (EndReason::EventLimit, events)
        );
    }
}

#[test]
fn the_event_limit_excludes_the_warm_up() {
    let phases = json!({"warmup_us": 100_000, "measure_us": 0, "events": 50});
    let finished = run(10_000, &json!({"phases": phases}), Options::default());
    // Events that begin in the warm-up and end in the measurement count in the measurement.
    let carried = finished.end().phases[&PhaseName::Warmup].accounting.unfinished;
    assert!(finished.end().phases[&PhaseName::Warmup].counts.events > 0);
    assert_eq!(finished.measured().counts.events, 50 + carried);
}

#[test]
fn events_in_flight_at_the_time_limit_are_unfinished() {
    let phases = json!({"measure_us": 50_000, "events": 40});
    let finished = run(20_000, &json!({"phases": phases}), Options::default());
    let accounting = &finished.measured().accounting;
    assert_eq!(finished.measured().end_us, 50_000);
    assert!(accounting.unfinished > 0 && accounting.done + accounting.unfinished == accounting.due);
}

#[test]
fn an_open_loop_ends_with_its_last_event_too() {
    let phases = json!({"measure_us": 0, "events": 100});
    let load = json!({"connections": 8, "shape": {"poisson": {"rate_per_s": 500.0}}});
    let finished = run(1000, &json!({"phases": phases, "load": load}), Options::default());
    assert_eq!(finished.end().reason, EndReason::EventLimit);
    assert_eq!(finished.measured().counts.events, 100);
}

#[test]
fn marks_end_intervals_in_addition_to_the_regular_ones() {
    let phases = json!({"measure_us": 500_000});
    let report =
        json!({"interval_us": 200_000, "tick_us": 0, "marks_us": [100_000, 400_000, 450_000, 900_000]});
    let finished = run(1000, &json!({"phases": phases, "report": report}), Options::default());
    let ends: Vec<u64> = finished.intervals().iter().map(|interval| interval.end_us).collect();
    assert_eq!(ends, [100_000, 200_000, 400_000, 450_000, 500_000]);
    let report = json!({"interval_us": 0, "tick_us": 0, "marks_us": [100_000]});
    let finished = run(1000, &json!({"phases": phases, "report": report}), Options::default());
    let ends: Vec<u64> = finished.intervals().iter().map(|interval| interval.end_us).collect();
    assert_eq!(ends, [100_000, 500_000]);
    assert!(!finished.records.iter().any(|record| matches!(record, Record::Tick(_))));
}

#[test]
fn collected_rows_are_sent_and_counted_before_the_end() {
    let phases = json!({"measure_us": 0, "events": 100});
    let workload = json!({"name": "bulk_insert"});
    let finished = run(0, &json!({"phases": phases, "workload": workload}), Options::default());
    let counts = &finished.measured().counts;
    // One statement of each user that has collected a row; the scheduler decides how many users have.
    assert_eq!(counts.events, 100);
    assert!((1..=8).contains(&counts.writes), "{counts:?}");
}

#[test]
fn the_rate_has_a_limit_over_all_workers() {
    // The server could execute 8,000 events per second. Nine connections of two workers are not divided evenly.
    let load = json!({"connections": 9, "max_rate_per_s": 500.0});
    let finished = run(1000, &json!({"load": load, "phases": {"measure_us": 2_000_000}}), Options::default());
    let events = finished.measured().counts.events;
    assert!(events.abs_diff(1000) <= 20, "{events}");
}

#[test]
fn a_think_time_shares_the_rate_with_other_connections() {
    let think_time = json!({"exponential": {"mean_us": 20_000}});
    let load = json!({"connections": 40, "max_rate_per_s": 500.0, "think_time": think_time});
    let finished = run(100, &json!({"load": load, "phases": {"measure_us": 2_000_000}}), Options::default());
    let events = finished.measured().counts.events;
    assert!(events.abs_diff(1000) <= 20, "{events}");
}

#[test]
fn a_load_above_its_limit_ends_within_a_second() {
    let limits = json!({"latency": [{"percentile": 99.0, "most_us": 100_000}]});
    let changes = json!({
        "load": {"connections": 8, "abort_if": limits},
        "phases": {"measure_us": 60_000_000},
        "report": {"interval_us": 200_000, "tick_us": 0},
    });
    let finished = run(3_600_000_000, &changes, Options::default());
    assert_eq!(finished.reason, EndReason::LimitExceeded);
    let failure = finished.end().failure.as_ref().unwrap();
    assert!(failure.text.starts_with("p99 exceeds 100 ms: in the last "), "{}", failure.text);
    assert!(finished.measured().end_us < 1_500_000, "{}", finished.measured().end_us);
}
