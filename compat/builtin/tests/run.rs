//! Complete runs of a simple test: limits, phases, intervals, rate and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dbdyno_builtin::run::{IntervalIoCounts, RunSpec, channel, run};
use dbdyno_builtin::{IoCounts, LogMessage, Runner, SharedState};
use dbdyno_metrics::ExtraCounts;
use dbdyno_random::Rng;
use dbdyno_schema::Record;
use dbdyno_schema::log_buckets::LogScale;
use dbdyno_schema::plan::{Phases, Report};
use dbdyno_schema::record::{EndReason, Interval, PhaseName};

/// A test whose events take `length` and count as reads of 10 bytes. Each thread executes `events_left` events and then
/// one sync.
#[derive(Clone)]
struct Reads {
    length: Duration,
    events_left: u64,
    /// The event that fails; 0 for an error when thread 1 starts.
    fails_at: Option<u64>,
    runners: Arc<AtomicU64>,
}

impl SharedState for Reads {
    fn create_runner(self: Arc<Self>, thread: u32, _rng: Rng) -> Result<Box<dyn Runner>, Vec<LogMessage>> {
        self.runners.fetch_add(1, Ordering::Relaxed);
        match self.fails_at {
            Some(0) if thread == 1 => Err(vec![LogMessage::fatal("no room")]),
            _ => Ok(Box::new((*self).clone())),
        }
    }
}

impl Runner for Reads {
    fn prepare_event(&mut self) -> bool {
        self.events_left = self.events_left.wrapping_sub(1);
        self.events_left != u64::MAX
    }

    fn execute_event(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        std::thread::sleep(self.length);
        if let Some(left) = &mut self.fails_at {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return Err(vec![LogMessage::fatal("it broke"), LogMessage::warning("look at it")]);
            }
        }
        Ok(IoCounts { reads: 1, read_bytes: 10, ..IoCounts::default() })
    }

    fn finish(&mut self) -> Result<IoCounts, Vec<LogMessage>> {
        Ok(IoCounts { syncs: 1, ..IoCounts::default() })
    }
}

fn reads(length_us: u64) -> Reads {
    let length = Duration::from_micros(length_us);
    Reads { length, events_left: u64::MAX - 1, fails_at: None, runners: Arc::default() }
}

fn spec(threads: u32, measure_ms: u64, events: Option<u64>) -> RunSpec {
    RunSpec {
        threads,
        phases: Phases { warmup_us: 0, measure_us: measure_ms * 1000, events, drain_us: u64::MAX },
        report: Report { interval_us: 50_000, tick_us: 0, ..Report::default() },
        extra_counts: ExtraCounts { log_buckets: Some(LogScale::new(1024, 0.001, 100_000.0)), users: true },
        rate_per_s: 0.0,
        queue_limit: 1000,
        seed: 1,
    }
}

/// The result and the records of a run.
struct Outcome {
    result: Result<EndReason, Vec<LogMessage>>,
    records: Vec<Record>,
    io: IntervalIoCounts,
}

impl Outcome {
    fn of(test: Reads, spec: &RunSpec) -> Self {
        let (_control, inbox) = channel();
        let (mut records, io) = (Vec::new(), IntervalIoCounts::default());
        let test: Arc<dyn SharedState> = Arc::new(test);
        let result = run(&test, spec, &io, &inbox, &mut |record| {
            records.push(record.clone());
            true
        });
        Self { result, records, io }
    }

    fn intervals(&self, phase: PhaseName) -> Vec<&Interval> {
        let intervals = self.records.iter().filter_map(|record| match record {
            Record::Interval(interval) if interval.phase == phase => Some(&**interval),
            _ => None,
        });
        intervals.collect()
    }

    /// Returns the number of events, and checks the totals against the sums of the intervals.
    fn events(&self, phase: PhaseName) -> u64 {
        let Some(Record::End(end)) = self.records.last() else { panic!("no end") };
        let (totals, intervals) = (&end.phases[&phase], self.intervals(phase));
        let summed: u64 = intervals.iter().map(|interval| interval.counts.events).sum();
        assert_eq!((totals.counts.events, totals.accounting.done), (summed, summed));
        assert_eq!(totals.latency_us.count(), summed);
        assert_eq!(
            (intervals[0].start_us, intervals[intervals.len() - 1].end_us),
            (totals.start_us, totals.end_us)
        );
        assert!(intervals.windows(2).all(|pair| pair[0].end_us == pair[1].start_us));
        assert_eq!(self.io.between(totals.start_us, totals.end_us).read_bytes, 10 * totals.counts.reads);
        summed
    }
}

#[test]
fn a_run_executes_the_requested_number_of_events() {
    for threads in [1, 4] {
        let outcome = Outcome::of(reads(0), &spec(threads, 0, Some(1234)));
        assert_eq!(outcome.result, Ok(EndReason::EventLimit));
        assert_eq!(outcome.events(PhaseName::Measure), 1234);
        let Some(Record::End(end)) = outcome.records.last() else { panic!("no end") };
        assert_eq!(end.users.iter().map(|user| user.events).sum::<u64>(), 1234);
        let totals = &end.phases[&PhaseName::Measure];
        assert_eq!((totals.counts.reads, totals.counts.other), (1234, u64::from(threads)));
        assert_eq!(end.users.len(), threads as usize);
    }
}

#[test]
fn a_run_ends_with_the_last_event_after_the_time_limit() {
    let outcome = Outcome::of(reads(30_000), &spec(2, 200, None));
    assert_eq!(outcome.result, Ok(EndReason::TimeLimit));
    let intervals = outcome.intervals(PhaseName::Measure);
    let ends: Vec<_> = intervals.iter().map(|interval| interval.end_us).collect();
    assert_eq!(ends[..4], [50_000, 100_000, 150_000, 200_000]);
    assert!(*ends.last().unwrap() >= 200_000);
    assert_eq!(intervals[0].users_active, 2);
    assert_eq!(intervals.last().unwrap().users_active, 0);
    outcome.events(PhaseName::Measure);
}

#[test]
fn a_test_can_end_the_run() {
    let outcome = Outcome::of(Reads { events_left: 3, ..reads(0) }, &spec(2, 0, None));
    assert_eq!(outcome.result, Ok(EndReason::Done));
    assert_eq!(outcome.events(PhaseName::Measure), 6);
}

#[test]
fn events_of_the_warm_up_do_not_count_towards_the_limit() {
    let mut spec = spec(1, 0, Some(20));
    spec.phases.warmup_us = 100_000;
    let outcome = Outcome::of(reads(1_000), &spec);
    let measured = outcome.events(PhaseName::Measure);
    assert!((20..=21).contains(&measured), "{measured}: one event may have started in the warm-up");
    outcome.events(PhaseName::Warmup);
    let phases = outcome.records.iter().filter(|record| matches!(record, Record::Phase(_))).count();
    assert_eq!(phases, 2);
}

#[test]
fn events_arrive_at_the_rate_and_latency_counts_from_the_due_time() {
    let mut spec = spec(4, 0, Some(300));
    spec.rate_per_s = 1000.0;
    let outcome = Outcome::of(reads(100), &spec);
    assert_eq!(outcome.events(PhaseName::Measure), 300);
    let end_us = outcome.intervals(PhaseName::Measure).last().unwrap().end_us;
    // The 300th arrival is due after 0.3 s on average; five standard deviations are 5 * 17.32 ms.
    assert!(end_us > 300_000 - 5 * 17_320, "{end_us}");
    // One thread, and events that take longer than the gaps between them: events wait.
    spec = self::spec(1, 300, None);
    spec.rate_per_s = 500.0;
    let outcome = Outcome::of(reads(10_000), &spec);
    outcome.events(PhaseName::Measure);
    let intervals = outcome.intervals(PhaseName::Measure);
    assert!(intervals[3].backlog > 20, "{:?}", intervals[3]);
    assert!(intervals.iter().any(|interval| interval.latency_max_us > Some(50_000.0)));
}

#[test]
fn a_full_queue_ends_the_run() {
    let mut spec = spec(1, 10_000, None);
    (spec.rate_per_s, spec.queue_limit) = (100_000.0, 10);
    let outcome = Outcome::of(reads(20_000), &spec);
    assert_eq!(outcome.result, Ok(EndReason::QueueFull));
}

#[test]
fn a_run_is_forced_to_end_after_the_drain_time() {
    let mut spec = spec(2, 1500, None);
    spec.phases.drain_us = 20_000;
    let outcome = Outcome::of(reads(60_000_000), &spec);
    assert_eq!(outcome.result, Ok(EndReason::ForcedShutdown));
    assert_eq!(outcome.events(PhaseName::Measure), 0);
    let Some(Record::End(end)) = outcome.records.last() else { panic!("no end") };
    let totals = &end.phases[&PhaseName::Measure];
    assert_eq!((totals.accounting.unfinished, totals.end_us), (2, 1_520_000));
}

#[test]
fn a_stopped_run_writes_its_records() {
    let (control, inbox) = channel();
    let stop = control.clone();
    let test: Arc<dyn SharedState> = Arc::new(reads(1000));
    let mut events = 0;
    let result = run(&test, &spec(2, 0, None), &IntervalIoCounts::default(), &inbox, &mut |record| {
        if let Record::Interval(interval) = record {
            events += interval.counts.events;
            if events > 0 {
                stop.stop(EndReason::Interrupted);
            }
        }
        true
    });
    assert_eq!(result, Ok(EndReason::Interrupted));
    assert!(events > 0);
}

#[test]
fn a_failure_ends_the_run_with_its_messages() {
    let failing = |fails_at| Reads { fails_at: Some(fails_at), ..reads(0) };
    let messages = vec![LogMessage::fatal("it broke"), LogMessage::warning("look at it")];
    assert_eq!(Outcome::of(failing(5), &spec(1, 0, None)).result, Err(messages));
    let outcome = Outcome::of(failing(0), &spec(2, 0, None));
    assert_eq!(outcome.result, Err(vec![LogMessage::fatal("no room")]));
    assert!(outcome.records.is_empty());
}
