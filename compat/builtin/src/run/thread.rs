//! What one thread does: events, one after the other, until the run is over for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_metrics::Event;
use dbdyno_random::Rng;

use super::Clock;
use super::control::Message;
use super::meter::Shared;
use super::queue::Queue;
use crate::test::{Bench, Line, Runner};

/// A thread that waits for an arrival looks this often whether the run is over.
const NAP: Duration = Duration::from_millis(50);

/// What all threads and the conductor share.
pub(super) struct Common {
    pub(super) bench: Arc<dyn Bench>,
    pub(super) meters: Vec<Shared>,
    pub(super) queue: Option<Queue>,
    pub(super) limits: Limits,
    pub(super) gate: Gate,
    pub(super) messages: Sender<Message>,
    pub(super) seed: u64,
}

/// When no event begins any more.
pub(super) struct Limits {
    /// First instant of the measurement, and the first after it.
    pub(super) measured_from: Nanos,
    pub(super) time: Nanos,
    /// Events that may begin in the measurement; `u64::MAX` for any number.
    pub(super) events: u64,
    pub(super) begun: AtomicU64,
    /// The run is over for a reason of its own.
    pub(super) over: AtomicBool,
}

impl Limits {
    /// Whether as many events have begun as may.
    pub(super) fn is_full(&self) -> bool {
        self.begun.load(Ordering::Relaxed) >= self.events
    }

    fn is_over(&self, now: Nanos) -> bool {
        now >= self.time || self.over.load(Ordering::Relaxed)
    }

    /// Whether one more event may begin.
    fn admits(&self, now: Nanos) -> bool {
        self.events == u64::MAX
            || now < self.measured_from
            || self.begun.fetch_add(1, Ordering::Relaxed) < self.events
    }
}

/// Where threads wait for the clock to start.
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

/// Runs thread `number` to its end.
pub(super) fn thread(common: &Common, number: u32) {
    let rng = Rng::new(common.seed, &[u64::from_be_bytes(*b"runners "), u64::from(number)]);
    let last = match common.bench.runner(number, rng) {
        Ok(mut runner) => {
            // Without a conductor nobody waits for the word.
            let _ = common.messages.send(Message::Ready);
            let clock = common.gate.pass();
            play(common, &common.meters[number as usize], clock, runner.as_mut())
        }
        Err(lines) => Message::Failed(lines),
    };
    let _ = common.messages.send(last);
}

fn play(common: &Common, meter: &Shared, clock: Clock, runner: &mut dyn Runner) -> Message {
    let finished = events(common, meter, clock, runner).and_then(|()| runner.finish());
    match finished {
        Ok(work) => {
            let now = clock.now();
            meter.leave(now, work);
            Message::Left(now)
        }
        Err(lines) => Message::Failed(lines),
    }
}

/// Event after event until one of the limits, or the test itself, says that there is none any more.
fn events(common: &Common, meter: &Shared, clock: Clock, runner: &mut dyn Runner) -> Result<(), Vec<Line>> {
    let Common { limits, queue, .. } = common;
    let counts = common.bench.counts_events();
    if queue.is_some() {
        // A refusal costs 50 us of precision.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    }
    let mut now = clock.now();
    while !limits.is_over(now) && (!counts || limits.admits(now)) {
        let mut arrival = None;
        if let Some(queue) = queue {
            let Some(due) = queue.take(now) else {
                let _ = common.messages.send(Message::QueueFull);
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

/// Returns whether the run is not over by then.
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

impl Common {
    /// Ends the run for all threads, after the event at which each of them is.
    pub(super) fn stop(&self) {
        self.limits.over.store(true, Ordering::Relaxed);
    }
}
