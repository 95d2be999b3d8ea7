//! The coordinator of a run: starts the threads, closes intervals and writes the records. It runs on the caller's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_load::timeline::{MeasurementEnd, Timeline};
use dbdyno_runner::external::unix_us;
use dbdyno_schema::Record;
use dbdyno_schema::plan::Phases;
use dbdyno_schema::record::{EndReason, Phase};

use super::arrival_queue::ArrivalQueue;
use super::control::{Inbox, Message};
use super::interval_io_counts::IntervalIoCounts;
use super::meter::{Meter, ThreadSpan};
use super::record_builder::RecordBuilder;
use super::thread::{Limits, RunState, StartGate, run_thread};
use super::{Clock, RunSpec};
use crate::test::{LogMessage, SharedState};

/// How often the coordinator checks the length of the queue.
const QUEUE_CHECK: Duration = Duration::from_millis(100);
/// Stack size of a thread; small, because there may be thousands of threads.
const STACK_BYTES: usize = 256 * 1024;

/// Runs a test and writes its records: phases, intervals and the end. `write` returns false if a record cannot be
/// written.
///
/// A forced shutdown leaves the threads running, because the process exits soon.
///
/// # Errors
/// The messages of a thread that could not start or continue. The function then writes no end record.
pub fn run(
    test: &Arc<dyn SharedState>,
    spec: &RunSpec,
    interval_io_counts: &IntervalIoCounts,
    inbox: &Inbox,
    write: &mut dyn FnMut(&Record) -> bool,
) -> Result<EndReason, Vec<LogMessage>> {
    let timeline = Timeline::new(&spec.phases, &spec.report, MeasurementEnd::AfterLastEvent);
    let run = Arc::new(create_run_state(test, spec, &timeline, inbox));
    for number in 0..spec.threads {
        let run = Arc::clone(&run);
        let thread = std::thread::Builder::new()
            .name(format!("thread {number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || run_thread(&run, number));
        if let Err(error) = thread {
            let problem = format!("thread {number} of {} cannot be started: {error}", spec.threads);
            let fix = "use fewer --threads, or raise the limit on processes (ulimit -u)";
            return Err(vec![LogMessage::fatal(format!("{problem}; {fix}"))]);
        }
    }
    let mut coordinator = Coordinator {
        timeline,
        run,
        records: RecordBuilder::new(spec.threads, interval_io_counts.clone()),
        inbox,
        write,
        running_threads: spec.threads,
        last_thread_ended_at: 0,
        last_closed_at: 0,
        early_end: None,
    };
    if !coordinator.wait_until_ready()? {
        return Ok(coordinator.write_end());
    }
    coordinator.measure()
}

fn create_run_state(
    test: &Arc<dyn SharedState>,
    spec: &RunSpec,
    timeline: &Timeline,
    inbox: &Inbox,
) -> RunState {
    let RunSpec { phases, extra_counts, rate_per_s, queue_limit, seed, threads, report: _ } = spec;
    let open_loop = *rate_per_s > 0.0;
    let meter = |number| Meter::new(timeline, extra_counts, u64::from(number), open_loop);
    RunState {
        test: Arc::clone(test),
        meters: (0..*threads).map(meter).collect(),
        queue: open_loop.then(|| ArrivalQueue::new(*rate_per_s, *queue_limit, *seed)),
        limits: create_limits(phases),
        gate: StartGate::default(),
        messages: inbox.sender.clone(),
        seed: *seed,
    }
}

fn create_limits(phases: &Phases) -> Limits {
    Limits {
        measure_start: phases.warmup_us * 1000,
        time_limit: phases.limit_us().saturating_mul(1000),
        event_limit: phases.events.unwrap_or(u64::MAX),
        events_started: AtomicU64::new(0),
        is_stopped: AtomicBool::new(false),
    }
}

struct Coordinator<'a> {
    timeline: Timeline,
    run: Arc<RunState>,
    records: RecordBuilder,
    inbox: &'a Inbox,
    write: &'a mut dyn FnMut(&Record) -> bool,
    /// Number of threads that have not ended.
    running_threads: u32,
    last_thread_ended_at: Nanos,
    /// End of the last span that the meters have closed.
    last_closed_at: Nanos,
    /// The first reason for which the run ends early.
    early_end: Option<EndReason>,
}

impl Coordinator<'_> {
    /// Waits until every thread is ready; returns false if the caller stops the run first.
    fn wait_until_ready(&mut self) -> Result<bool, Vec<LogMessage>> {
        let mut starting = self.running_threads;
        while starting > 0 {
            match self.inbox.messages.recv() {
                Ok(Message::ThreadReady) => starting -= 1,
                Ok(Message::Stop(reason)) => {
                    self.early_end = Some(reason);
                    return Ok(false);
                }
                Ok(Message::ThreadFailed(messages)) => return Err(messages),
                Ok(Message::ThreadEnded(_) | Message::QueueOverflowed) | Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Starts the clock, and closes the spans until the run has ended.
    fn measure(mut self) -> Result<EndReason, Vec<LogMessage>> {
        let start_unix_us = unix_us();
        self.write_phase(0, start_unix_us);
        let clock = self.run.gate.start_clock();
        while self.running_threads > 0 {
            let now = clock.now();
            let Some(span_end) = self.timeline.next_span_end(self.last_closed_at) else { break };
            if span_end.time <= now {
                self.close_spans(span_end.time, now - span_end.time, start_unix_us);
                continue;
            }
            let mut wait = Duration::from_nanos(span_end.time - now);
            if let Some(queue) = &self.run.queue {
                wait = wait.min(QUEUE_CHECK);
                if queue.waiting_events(now).is_none() {
                    self.stop_early(EndReason::QueueFull);
                }
            }
            match self.inbox.messages.recv_timeout(wait) {
                Ok(Message::ThreadEnded(at)) => {
                    self.running_threads -= 1;
                    self.last_thread_ended_at = self.last_thread_ended_at.max(at);
                }
                Ok(Message::Stop(reason)) => self.stop_early(reason),
                Ok(Message::QueueOverflowed) => self.stop_early(EndReason::QueueFull),
                Ok(Message::ThreadFailed(messages)) => {
                    self.run.stop();
                    return Err(messages);
                }
                Ok(Message::ThreadReady)
                | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        self.close_last_spans(clock, start_unix_us);
        Ok(self.write_end())
    }

    /// Prevents new events from starting.
    fn stop_early(&mut self, reason: EndReason) {
        self.early_end.get_or_insert(reason);
        self.run.stop();
    }

    /// Closes the threads' spans that end at `span_end`. `delay` is the time from `span_end` to this call.
    fn close_spans(&mut self, span_end: Nanos, delay: Nanos, start_unix_us: u64) {
        let run = Arc::clone(&self.run);
        let spans = run.meters.iter().flat_map(|meter| meter.close(span_end));
        self.add_spans(spans, delay, span_end, start_unix_us);
        self.last_closed_at = span_end;
    }

    /// Closes the last spans when all threads have ended, or at a forced shutdown.
    fn close_last_spans(&mut self, clock: Clock, start_unix_us: u64) {
        let at = if self.running_threads == 0 { self.last_thread_ended_at } else { clock.now() };
        // A span lasts at least a microsecond.
        let at = at.max(self.last_closed_at + 1000).min(self.timeline.end());
        let run = Arc::clone(&self.run);
        let spans = run.meters.iter().flat_map(|meter| meter.end_run(at));
        self.add_spans(spans, 0, at, start_unix_us);
    }

    fn add_spans(
        &mut self,
        spans: impl Iterator<Item = ThreadSpan>,
        delay: Nanos,
        now: Nanos,
        start_unix_us: u64,
    ) {
        let backlog = self.run.queue.as_ref().map_or(Some(0), |queue| queue.waiting_events(now));
        for span in spans {
            let Some(completed) = self.records.add(span, delay, backlog.unwrap_or(0)) else { continue };
            if let Some(record) = completed.record {
                self.write(&record);
            }
            if let Some(at) = completed.phase_end {
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
            self.stop_early(EndReason::Abandoned);
        }
    }

    fn write_end(mut self) -> EndReason {
        let reason = self.early_end.unwrap_or(if self.running_threads > 0 {
            EndReason::ForcedShutdown
        } else if self.last_thread_ended_at >= self.run.limits.time_limit {
            EndReason::TimeLimit
        } else if self.run.limits.is_event_limit_reached() {
            EndReason::EventLimit
        } else {
            // The test ended itself.
            EndReason::Done
        });
        let users = self.run.meters.iter().flat_map(Meter::totals).collect();
        let end = self.records.end_record(reason, users);
        self.write(&end);
        reason
    }
}
