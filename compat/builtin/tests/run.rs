//! Whole runs of a test that does next to nothing: limits, phases, intervals, rate and failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dbdyno_builtin::run::{IntervalWork, RunSpec, channel, run};
use dbdyno_builtin::{Line, OpenTest, Runner, Work};
use dbdyno_metrics::ExtraCounts;
use dbdyno_random::Rng;
use dbdyno_schema::Record;
use dbdyno_schema::log_buckets::LogScale;
use dbdyno_schema::plan::{Phases, Report};
use dbdyno_schema::record::{EndReason, Interval, PhaseName};

/// Events of some length, each a read of 10 bytes; the thread's `own` number of them, and one sync after the last.
#[derive(Clone)]
struct Reads {
    length: Duration,
    own: u64,
    fails_at: Option<u64>,
    runners: Arc<AtomicU64>,
}

impl OpenTest for Reads {
    fn runner(self: Arc<Self>, thread: u32, _rng: Rng) -> Result<Box<dyn Runner>, Vec<Line>> {
        self.runners.fetch_add(1, Ordering::Relaxed);
        match self.fails_at {
            Some(0) if thread == 1 => Err(vec![Line::fatal("no room")]),
            _ => Ok(Box::new((*self).clone())),
        }
    }
}

impl Runner for Reads {
    fn next(&mut self) -> bool {
        self.own = self.own.wrapping_sub(1);
        self.own != u64::MAX
    }

    fn event(&mut self) -> Result<Work, Vec<Line>> {
        std::thread::sleep(self.length);
        if let Some(left) = &mut self.fails_at {
            *left = left.saturating_sub(1);
            if *left == 0 {
                return Err(vec![Line::fatal("it broke"), Line::warning("look at it")]);
            }
        }
        Ok(Work { reads: 1, read_bytes: 10, ..Work::default() })
    }

    fn finish(&mut self) -> Result<Work, Vec<Line>> {
        Ok(Work { syncs: 1, ..Work::default() })
    }
}

fn reads(length_us: u64) -> Reads {
    let length = Duration::from_micros(length_us);
    Reads { length, own: u64::MAX - 1, fails_at: None, runners: Arc::default() }
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

/// What a run wrote.
struct Outcome {
    ended: Result<EndReason, Vec<Line>>,
    records: Vec<Record>,
    work: IntervalWork,
}

impl Outcome {
    fn of(test: Reads, spec: &RunSpec) -> Self {
        let (_control, inbox) = channel();
        let (mut records, work) = (Vec::new(), IntervalWork::default());
        let test: Arc<dyn OpenTest> = Arc::new(test);
        let ended = run(&test, spec, &work, &inbox, &mut |record| {
            records.push(record.clone());
            true
        });
        Self { ended, records, work }
    }

    fn intervals(&self, phase: PhaseName) -> Vec<&Interval> {
        let intervals = self.records.iter().filter_map(|record| match record {
            Record::Interval(interval) if interval.phase == phase => Some(&**interval),
            _ => None,
        });
        intervals.collect()
    }

    /// Events, and holds the totals to the sums of the intervals.
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
        assert_eq!(self.work.between(totals.start_us, totals.end_us).read_bytes, 10 * totals.counts.reads);
        summed
    }
}

#[test]
fn as_many_events_as_were_asked_for() {
    for threads in [1, 4] {
        let outcome = Outcome::of(reads(0), &spec(threads, 0, Some(1234)));
        assert_eq!(outcome.ended, Ok(EndReason::EventLimit));
        assert_eq!(outcome.events(PhaseName::Measure), 1234);
        let Some(Record::End(end)) = outcome.records.last() else { panic!("no end") };
        assert_eq!(end.users.iter().map(|user| user.events).sum::<u64>(), 1234);
        let totals = &end.phases[&PhaseName::Measure];
        assert_eq!((totals.counts.reads, totals.counts.other), (1234, u64::from(threads)));
        assert_eq!(end.users.len(), threads as usize);
    }
}

#[test]
fn a_run_ends_by_the_clock_and_with_the_last_event() {
    let outcome = Outcome::of(reads(30_000), &spec(2, 200, None));
    assert_eq!(outcome.ended, Ok(EndReason::TimeLimit));
    let intervals = outcome.intervals(PhaseName::Measure);
    let ends: Vec<_> = intervals.iter().map(|interval| interval.end_us).collect();
    assert_eq!(ends[..4], [50_000, 100_000, 150_000, 200_000]);
    assert!(*ends.last().unwrap() >= 200_000);
    assert_eq!(intervals[0].users_active, 2);
    assert_eq!(intervals.last().unwrap().users_active, 0);
    outcome.events(PhaseName::Measure);
}

#[test]
fn a_test_may_know_its_own_end() {
    let outcome = Outcome::of(Reads { own: 3, ..reads(0) }, &spec(2, 0, None));
    assert_eq!(outcome.ended, Ok(EndReason::Done));
    assert_eq!(outcome.events(PhaseName::Measure), 6);
}

#[test]
fn what_began_in_the_warm_up_takes_no_part_in_the_limit() {
    let mut spec = spec(1, 0, Some(20));
    spec.phases.warmup_us = 100_000;
    let outcome = Outcome::of(reads(1_000), &spec);
    let measured = outcome.events(PhaseName::Measure);
    assert!((20..=21).contains(&measured), "{measured}: one may have crossed the bound");
    outcome.events(PhaseName::Warmup);
    let phases = outcome.records.iter().filter(|record| matches!(record, Record::Phase(_))).count();
    assert_eq!(phases, 2);
}

#[test]
fn a_rate_is_kept_and_latency_counts_from_the_instant_an_event_was_due() {
    let mut spec = spec(4, 0, Some(300));
    spec.rate_per_s = 1000.0;
    let outcome = Outcome::of(reads(100), &spec);
    assert_eq!(outcome.events(PhaseName::Measure), 300);
    let end_us = outcome.intervals(PhaseName::Measure).last().unwrap().end_us;
    // The 300th arrival: 0.3 s, give or take five times their square root.
    assert!(end_us > 300_000 - 5 * 17_320, "{end_us}");
    // One thread for events that take longer than their gaps: they wait.
    spec = self::spec(1, 300, None);
    spec.rate_per_s = 500.0;
    let outcome = Outcome::of(reads(10_000), &spec);
    outcome.events(PhaseName::Measure);
    let intervals = outcome.intervals(PhaseName::Measure);
    assert!(intervals[3].backlog > 20, "{:?}", intervals[3]);
    assert!(intervals.iter().any(|interval| interval.latency_max_us > Some(50_000.0)));
}

#[test]
fn a_line_that_grows_too_long_ends_the_run() {
    let mut spec = spec(1, 10_000, None);
    (spec.rate_per_s, spec.queue_limit) = (100_000.0, 10);
    let outcome = Outcome::of(reads(20_000), &spec);
    assert_eq!(outcome.ended, Ok(EndReason::QueueFull));
}

#[test]
fn what_takes_too_long_is_given_up() {
    let mut spec = spec(2, 1500, None);
    spec.phases.drain_us = 20_000;
    let outcome = Outcome::of(reads(60_000_000), &spec);
    assert_eq!(outcome.ended, Ok(EndReason::ForcedShutdown));
    assert_eq!(outcome.events(PhaseName::Measure), 0);
    let Some(Record::End(end)) = outcome.records.last() else { panic!("no end") };
    let totals = &end.phases[&PhaseName::Measure];
    assert_eq!((totals.accounting.unfinished, totals.end_us), (2, 1_520_000));
}

#[test]
fn a_stop_from_outside_still_reports() {
    let (control, inbox) = channel();
    let stop = control.clone();
    let test: Arc<dyn OpenTest> = Arc::new(reads(1000));
    let mut outcome = 0;
    let ended = run(&test, &spec(2, 0, None), &IntervalWork::default(), &inbox, &mut |record| {
        if let Record::Interval(interval) = record {
            outcome += interval.counts.events;
            if outcome > 0 {
                stop.stop(EndReason::Interrupted);
            }
        }
        true
    });
    assert_eq!(ended, Ok(EndReason::Interrupted));
    assert!(outcome > 0);
}

#[test]
fn failures_end_a_run_with_their_words() {
    let failing = |fails_at| Reads { fails_at: Some(fails_at), ..reads(0) };
    let words = vec![Line::fatal("it broke"), Line::warning("look at it")];
    assert_eq!(Outcome::of(failing(5), &spec(1, 0, None)).ended, Err(words));
    let outcome = Outcome::of(failing(0), &spec(2, 0, None));
    assert_eq!(outcome.ended, Err(vec![Line::fatal("no room")]));
    assert!(outcome.records.is_empty());
}
