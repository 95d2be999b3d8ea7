//! The conductor starts the threads, closes intervals and writes the records. It runs on the caller's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_load::timeline::{MeasurementEnd, Timeline};
use dbdyno_schema::Record;
use dbdyno_schema::plan::Phases;
use dbdyno_schema::record::{EndReason, Phase};

use super::control::{Inbox, Message};
use super::interval_work::IntervalWork;
use super::meter::{Meter, ThreadSpan};
use super::queue::Queue;
use super::records::Records;
use super::thread::{Gate, Limits, Shared, thread};
use super::{Clock, RunSpec};
use crate::test::{Line, OpenTest};

/// How often the conductor checks the length of the queue.
const QUEUE_CHECK: Duration = Duration::from_millis(100);
/// Small, because there may be thousands of threads.
const STACK_BYTES: usize = 256 * 1024;

/// Runs a test and writes its records: phases, intervals and the end. `write` returns false if a record cannot be
/// written.
///
/// A forced shutdown leaves its threads running, because the process exits soon.
///
/// # Errors
/// Returns the log lines of a thread that could not start or continue; then there is no end record.
pub fn run(
    test: &Arc<dyn OpenTest>,
    spec: &RunSpec,
    interval_work: &IntervalWork,
    inbox: &Inbox,
    write: &mut dyn FnMut(&Record) -> bool,
) -> Result<EndReason, Vec<Line>> {
    let timeline = Timeline::new(&spec.phases, &spec.report, MeasurementEnd::AfterLastEvent);
    let shared = Arc::new(shared(test, spec, &timeline, inbox));
    for number in 0..spec.threads {
        let shared = Arc::clone(&shared);
        let spawned = std::thread::Builder::new()
            .name(format!("thread {number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || thread(&shared, number));
        if let Err(error) = spawned {
            let text = format!("thread {number} of {} cannot be started: {error}", spec.threads);
            let fix = "use fewer --threads, or raise the limit on processes (ulimit -u)";
            return Err(vec![Line::fatal(format!("{text}; {fix}"))]);
        }
    }
    let mut conductor = Conductor {
        timeline,
        shared,
        records: Records::new(spec.threads, interval_work.clone()),
        inbox,
        write,
        working: spec.threads,
        left_at: 0,
        closed_to: 0,
        ended: None,
    };
    if !conductor.wait_until_ready()? {
        return Ok(conductor.end());
    }
    conductor.run()
}

fn shared(test: &Arc<dyn OpenTest>, spec: &RunSpec, timeline: &Timeline, inbox: &Inbox) -> Shared {
    let RunSpec { phases, extra_counts, rate_per_s, queue_limit, seed, threads, report: _ } = spec;
    let open_loop = *rate_per_s > 0.0;
    let meter = |number| Meter::new(timeline, extra_counts, u64::from(number), open_loop);
    Shared {
        test: Arc::clone(test),
        meters: (0..*threads).map(meter).collect(),
        queue: open_loop.then(|| Queue::new(*rate_per_s, *queue_limit, *seed)),
        limits: limits(phases),
        gate: Gate::default(),
        messages: inbox.sender.clone(),
        seed: *seed,
    }
}

fn limits(phases: &Phases) -> Limits {
    Limits {
        measured_from: phases.warmup_us * 1000,
        time: phases.limit_us().saturating_mul(1000),
        events: phases.events.unwrap_or(u64::MAX),
        begun: AtomicU64::new(0),
        over: AtomicBool::new(false),
    }
}

struct Conductor<'a> {
    timeline: Timeline,
    shared: Arc<Shared>,
    records: Records,
    inbox: &'a Inbox,
    write: &'a mut dyn FnMut(&Record) -> bool,
    /// Number of threads that have not ended.
    working: u32,
    /// When the last thread ended.
    left_at: Nanos,
    /// End of the last span that the meters have closed.
    closed_to: Nanos,
    /// Why the run ends early; the first reason is kept.
    ended: Option<EndReason>,
}

impl Conductor<'_> {
    /// Waits until every thread is ready; returns false if the caller stops the run first.
    fn wait_until_ready(&mut self) -> Result<bool, Vec<Line>> {
        let mut waiting = self.working;
        while waiting > 0 {
            match self.inbox.messages.recv() {
                Ok(Message::Ready) => waiting -= 1,
                Ok(Message::Stop(reason)) => {
                    self.ended = Some(reason);
                    return Ok(false);
                }
                Ok(Message::Failed(lines)) => return Err(lines),
                Ok(Message::Left(_) | Message::QueueFull) | Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Starts the clock, and closes the spans until the run has ended.
    fn run(mut self) -> Result<EndReason, Vec<Line>> {
        let start_unix_us = unix_us();
        self.write_phase(0, start_unix_us);
        let clock = self.shared.gate.open();
        while self.working > 0 {
            let now = clock.now();
            let Some(bound) = self.timeline.bound_after(self.closed_to) else { break };
            if bound.at <= now {
                self.close(bound.at, now - bound.at, start_unix_us);
                continue;
            }
            let mut wait = Duration::from_nanos(bound.at - now);
            if let Some(queue) = &self.shared.queue {
                wait = wait.min(QUEUE_CHECK);
                if queue.waiting(now).is_none() {
                    self.end_early(EndReason::QueueFull);
                }
            }
            match self.inbox.messages.recv_timeout(wait) {
                Ok(Message::Left(at)) => {
                    self.working -= 1;
                    self.left_at = self.left_at.max(at);
                }
                Ok(Message::Stop(reason)) => self.end_early(reason),
                Ok(Message::QueueFull) => self.end_early(EndReason::QueueFull),
                Ok(Message::Failed(lines)) => {
                    self.shared.stop();
                    return Err(lines);
                }
                Ok(Message::Ready) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        self.close_last(clock, start_unix_us);
        Ok(self.end())
    }

    /// Prevents new events from starting.
    fn end_early(&mut self, reason: EndReason) {
        self.ended.get_or_insert(reason);
        self.shared.stop();
    }

    /// Closes the span that ends at `bound`. `late` is the delay of this call after `bound` in nanoseconds.
    fn close(&mut self, bound: Nanos, late: Nanos, start_unix_us: u64) {
        let shared = Arc::clone(&self.shared);
        let spans = shared.meters.iter().flat_map(|meter| meter.close(bound));
        self.add(spans, late, bound, start_unix_us);
        self.closed_to = bound;
    }

    /// Closes the last span when all threads have ended, or at a forced shutdown.
    fn close_last(&mut self, clock: Clock, start_unix_us: u64) {
        let at = if self.working == 0 { self.left_at } else { clock.now() };
        // A span lasts at least a microsecond.
        let at = at.max(self.closed_to + 1000).min(self.timeline.end());
        let shared = Arc::clone(&self.shared);
        let spans = shared.meters.iter().flat_map(|meter| meter.end_run(at));
        self.add(spans, 0, at, start_unix_us);
    }

    fn add(&mut self, spans: impl Iterator<Item = ThreadSpan>, late: Nanos, now: Nanos, start_unix_us: u64) {
        let waiting = self.shared.queue.as_ref().map_or(Some(0), |queue| queue.waiting(now));
        for span in spans {
            let Some(complete) = self.records.add(span, late, waiting.unwrap_or(0)) else { continue };
            if let Some(record) = complete.record {
                self.write(&record);
            }
            if let Some(at) = complete.phase_end {
                self.write_phase(at, start_unix_us);
            }
        }
    }

    fn write_phase(&mut self, at: Nanos, start_unix_us: u64) {
        if let Some(phase) = self.timeline.phase_at(at).filter(|phase| phase.start == at) {
            let at_us = at / 1000;
            self.write(&Record::Phase(Phase { name: phase.name, at_us, at_unix_us: start_unix_us + at_us }));
        }
    }

    fn write(&mut self, record: &Record) {
        if !(self.write)(record) {
            self.end_early(EndReason::Abandoned);
        }
    }

    fn end(mut self) -> EndReason {
        let reason = self.ended.unwrap_or(if self.working > 0 {
            EndReason::ForcedShutdown
        } else if self.left_at >= self.shared.limits.time {
            EndReason::TimeLimit
        } else if self.shared.limits.is_full() {
            EndReason::EventLimit
        } else {
            // The test ended itself.
            EndReason::Done
        });
        let users = self.shared.meters.iter().flat_map(Meter::totals).collect();
        let end = self.records.end(reason, users);
        self.write(&end);
        reason
    }
}

/// The current time in microseconds since 1970.
fn unix_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_micros() as u64)
}
