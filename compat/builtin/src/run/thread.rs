//! A thread of the run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::Event;
use dbdyno_random::Rng;

use super::Clock;
use super::control::Message;
use super::meter::Meter;
use super::queue::Queue;
use crate::test::{Line, OpenTest, Runner};

/// How often a thread that waits for an arrival checks for the end of the run.
const NAP: Duration = Duration::from_millis(50);

/// Shared by all threads and the conductor.
pub(super) struct Shared {
    pub(super) test: Arc<dyn OpenTest>,
    pub(super) meters: Vec<Meter>,
    pub(super) queue: Option<Queue>,
    pub(super) limits: Limits,
    pub(super) gate: Gate,
    pub(super) messages: Sender<Message>,
    pub(super) seed: u64,
}

/// The limits after which no event may start.
pub(super) struct Limits {
    /// End of the warm-up.
    pub(super) measured_from: Nanos,
    /// The time limit.
    pub(super) time: Nanos,
    /// Maximum events after the warm-up; `u64::MAX` for no limit.
    pub(super) events: u64,
    /// Number of events that have begun after the warm-up.
    pub(super) begun: AtomicU64,
    /// Whether the run ends early.
    pub(super) over: AtomicBool,
}

impl Limits {
    pub(super) fn is_full(&self) -> bool {
        self.begun.load(Ordering::Relaxed) >= self.events
    }

    fn is_over(&self, now: Nanos) -> bool {
        now >= self.time || self.over.load(Ordering::Relaxed)
    }

    /// Counts an event that is about to start; returns false if a limit forbids it.
    fn admits(&self, now: Nanos) -> bool {
        self.events == u64::MAX
            || now < self.measured_from
            || self.begun.fetch_add(1, Ordering::Relaxed) < self.events
    }
}

/// Threads wait at the gate until the clock starts.
#[derive(Default)]
pub(super) struct Gate {
    start: Mutex<Option<Clock>>,
    opened: Condvar,
}

impl Gate {
    pub(super) fn open(&self) -> Clock {
        let start = Clock::starting_now();
        *self.start.lock().unwrap_or_else(PoisonError::into_inner) = Some(start);
        self.opened.notify_all();
        start
    }

    fn pass(&self) -> Clock {
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *start {
                Some(start) => return start,
                None => start = self.opened.wait(start).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

pub(super) fn thread(shared: &Shared, number: u32) {
    let rng = Rng::new(shared.seed, &[u64::from_be_bytes(*b"runners "), u64::from(number)]);
    let last = match Arc::clone(&shared.test).runner(number, rng) {
        Ok(mut runner) => {
            // Sending fails only if the conductor has returned.
            let _ = shared.messages.send(Message::Ready);
            let clock = shared.gate.pass();
            run(shared, &shared.meters[number as usize], clock, runner.as_mut())
        }
        Err(lines) => Message::Failed(lines),
    };
    let _ = shared.messages.send(last);
}

fn run(shared: &Shared, meter: &Meter, clock: Clock, runner: &mut dyn Runner) -> Message {
    let finished = run_events(shared, meter, clock, runner).and_then(|()| runner.finish());
    match finished {
        Ok(work) => {
            let now = clock.now();
            meter.leave(now, work);
            Message::Left(now)
        }
        Err(lines) => Message::Failed(lines),
    }
}

/// Runs events until a limit is reached or the test ends the run.
fn run_events(
    shared: &Shared,
    meter: &Meter,
    clock: Clock,
    runner: &mut dyn Runner,
) -> Result<(), Vec<Line>> {
    let Shared { limits, queue, .. } = shared;
    let counts = shared.test.counts_events();
    if queue.is_some() {
        // The default timer slack would make each sleep up to 50 µs longer.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
    let mut now = clock.now();
    while !limits.is_over(now) && (!counts || limits.admits(now)) {
        let mut arrival = None;
        if let Some(queue) = queue {
            let Some(due) = queue.take(now) else {
                let _ = shared.messages.send(Message::QueueFull);
                break;
            };
            if !sleep_until(due, clock, limits) {
                break;
            }
            arrival = Some(due);
        }
        if !runner.next() {
            break;
        }
        let start = clock.now();
        let due = arrival.unwrap_or(start);
        meter.begin(due);
        let work = runner.event()?;
        now = clock.now();
        meter.end(Event { due, start, end: now }, work);
    }
    Ok(())
}

/// Sleeps until `due`; returns false if the run ends before that.
fn sleep_until(due: Nanos, clock: Clock, limits: &Limits) -> bool {
    loop {
        let now = clock.now();
        if limits.is_over(now) {
            return false;
        }
        if now >= due {
            return true;
        }
        std::thread::sleep(Duration::from_nanos(due.min(limits.time) - now).min(NAP));
    }
}

impl Shared {
    /// Ends the run for all threads, after their current events.
    pub(super) fn stop(&self) {
        self.limits.over.store(true, Ordering::Relaxed);
    }
}
