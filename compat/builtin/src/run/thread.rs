//! A thread of the run: executes events until a limit is reached.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::Event;
use dbdyno_random::Rng;

use super::Clock;
use super::arrival_queue::ArrivalQueue;
use super::control::Message;
use super::meter::Meter;
use crate::test::{LogMessage, Runner, SharedState};

/// How often a thread that waits for an arrival checks whether the run has ended.
const STOP_POLL: Duration = Duration::from_millis(50);

/// The state that all threads and the coordinator share.
pub(super) struct RunState {
    pub(super) test: Arc<dyn SharedState>,
    pub(super) meters: Vec<Meter>,
    pub(super) queue: Option<ArrivalQueue>,
    pub(super) limits: Limits,
    pub(super) gate: StartGate,
    pub(super) messages: Sender<Message>,
    pub(super) seed: u64,
}

/// The limits of the run. After a limit is reached, no event starts.
pub(super) struct Limits {
    /// Start of the measurement.
    pub(super) measure_start: Nanos,
    pub(super) time_limit: Nanos,
    /// Maximum number of events after the warm-up; `u64::MAX` for no limit.
    pub(super) event_limit: u64,
    /// Number of events that have started after the warm-up.
    pub(super) events_started: AtomicU64,
    /// Whether the run was stopped early.
    pub(super) is_stopped: AtomicBool,
}

impl Limits {
    pub(super) fn is_event_limit_reached(&self) -> bool {
        self.events_started.load(Ordering::Relaxed) >= self.event_limit
    }

    fn has_ended(&self, now: Nanos) -> bool {
        now >= self.time_limit || self.is_stopped.load(Ordering::Relaxed)
    }

    /// Counts an event before it starts; returns false if the event limit is reached.
    fn count_event(&self, now: Nanos) -> bool {
        self.event_limit == u64::MAX
            || now < self.measure_start
            || self.events_started.fetch_add(1, Ordering::Relaxed) < self.event_limit
    }
}

/// Holds the threads back until the clock of the run starts.
#[derive(Default)]
pub(super) struct StartGate {
    start: Mutex<Option<Clock>>,
    changed: Condvar,
}

impl StartGate {
    pub(super) fn start_clock(&self) -> Clock {
        let start = Clock::starting_now();
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.changed.notify_all();
        start
    }

    fn wait_for_start(&self) -> Clock {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *start {
                Some(start) => return start,
                None => start = self.changed.wait(start).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Distinguishes the random streams of the threads from other streams with the same seed; 8 bytes long.
const STREAM_LABEL: [u8; 8] = *b"runners ";

pub(super) fn run_thread(run: &RunState, number: u32) {
    let rng = Rng::new(run.seed, &[u64::from_be_bytes(STREAM_LABEL), u64::from(number)]);
    let last = match Arc::clone(&run.test).create_runner(number, rng) {
        Ok(mut runner) => {
            // Sending fails only if the coordinator has returned.
            let _ = run.messages.send(Message::ThreadReady);
            let clock = run.gate.wait_for_start();
            execute_test(run, &run.meters[number as usize], clock, runner.as_mut())
        }
        Err(messages) => Message::ThreadFailed(messages),
    };
    let _ = run.messages.send(last);
}

fn execute_test(run: &RunState, meter: &Meter, clock: Clock, runner: &mut dyn Runner) -> Message {
    let result = execute_events(run, meter, clock, runner).and_then(|()| runner.finish());
    match result {
        Ok(io_counts) => {
            let now = clock.now();
            meter.end_thread(now, io_counts);
            Message::ThreadEnded(now)
        }
        Err(messages) => Message::ThreadFailed(messages),
    }
}

/// Executes events until a limit is reached or the test has no more events.
fn execute_events(
    run: &RunState,
    meter: &Meter,
    clock: Clock,
    runner: &mut dyn Runner,
) -> Result<(), Vec<LogMessage>> {
    let RunState { limits, queue, .. } = run;
    let uses_event_limit = run.test.uses_event_limit();
    if queue.is_some() {
        // The default timer slack would make each sleep up to 50 µs longer.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
    let mut now = clock.now();
    while !limits.has_ended(now) && (!uses_event_limit || limits.count_event(now)) {
        let mut arrival = None;
        if let Some(queue) = queue {
            let Some(due) = queue.take(now) else {
                // More events wait than `queue_limit` allows.
                let _ = run.messages.send(Message::QueueOverflowed);
                break;
            };
            if !sleep_until(due, clock, limits) {
                break;
            }
            arrival = Some(due);
        }
        if !runner.prepare_event() {
            break;
        }
        let start = clock.now();
        let due = arrival.unwrap_or(start);
        meter.begin(due);
        let io_counts = runner.execute_event()?;
        now = clock.now();
        meter.end(Event { due, start, end: now }, io_counts);
    }
    Ok(())
}

/// Sleeps until `due`; returns false if the run ends before that.
fn sleep_until(due: Nanos, clock: Clock, limits: &Limits) -> bool {
    loop {
        let now = clock.now();
        if limits.has_ended(now) {
            return false;
        }
        if now >= due {
            return true;
        }
        std::thread::sleep(Duration::from_nanos(due.min(limits.time_limit) - now).min(STOP_POLL));
    }
}

impl RunState {
    /// Stops all threads after their current events.
    pub(super) fn stop(&self) {
        self.limits.is_stopped.store(true, Ordering::Relaxed);
    }
}
