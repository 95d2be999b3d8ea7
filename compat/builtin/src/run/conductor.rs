//! The conductor: starts the threads, closes intervals, and writes the records.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_load::timeline::{LastEvents, Timeline};
use dbdyno_schema::Record;
use dbdyno_schema::plan::Phases;
use dbdyno_schema::record::{EndReason, Phase};

use super::control::{Inbox, Message};
use super::ledger::Ledger;
use super::meter::{Part, Shared};
use super::queue::Queue;
use super::records::Records;
use super::thread::{Common, Gate, Limits, thread};
use super::{Clock, Order};
use crate::test::{Bench, Line};

/// With a rate the conductor looks this often whether too many events wait.
const LOOK: Duration = Duration::from_millis(100);
/// A thread needs little stack, and there may be thousands.
const STACK_BYTES: usize = 256 * 1024;

/// Why a run came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// A thread cannot begin.
    AtStart(Vec<Line>),
    /// A thread cannot go on.
    Failed(Vec<Line>),
}

/// Runs a test and writes the records of it: a phase, its intervals, and so on, and the end. `write` returns false when
/// nobody listens any more.
///
/// Threads that have not ended when the run is over by force are left alone: the process is expected to end soon.
///
/// # Errors
/// A thread cannot begin or cannot go on; there is no last record then.
pub fn run(
    bench: &Arc<dyn Bench>,
    order: &Order,
    ledger: &Ledger,
    inbox: &Inbox,
    write: &mut dyn FnMut(&Record) -> bool,
) -> Result<EndReason, Stopped> {
    let timeline = Timeline::new(&order.phases, &order.report, LastEvents::Counted);
    let common = Arc::new(common(bench, order, &timeline, inbox));
    for number in 0..order.threads {
        let common = Arc::clone(&common);
        let spawned = std::thread::Builder::new()
            .name(format!("thread {number}"))
            .stack_size(STACK_BYTES)
            .spawn(move || thread(&common, number));
        if let Err(error) = spawned {
            let text = format!("thread {number} of {} cannot be started: {error}", order.threads);
            let way_out = "use fewer --threads, or raise the limit on processes (ulimit -u)";
            return Err(Stopped::AtStart(vec![Line::fatal(format!("{text}; {way_out}"))]));
        }
    }
    let mut conductor = Conductor {
        timeline,
        common,
        records: Records::new(order.threads, ledger.clone()),
        inbox,
        write,
        working: order.threads,
        left_at: 0,
        closed_to: 0,
        ended: None,
    };
    if !conductor.wait_until_ready()? {
        return Ok(conductor.end());
    }
    conductor.play()
}

fn common(bench: &Arc<dyn Bench>, order: &Order, timeline: &Timeline, inbox: &Inbox) -> Common {
    let Order { phases, extra_counts, rate_per_s, queue_limit, seed, threads, report: _ } = order;
    let open_loop = *rate_per_s > 0.0;
    let meter = |number| Shared::new(timeline, extra_counts, u64::from(number), open_loop);
    Common {
        bench: Arc::clone(bench),
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
    common: Arc<Common>,
    records: Records,
    inbox: &'a Inbox,
    write: &'a mut dyn FnMut(&Record) -> bool,
    /// Threads that have not ended, and when the last one did that has.
    working: u32,
    left_at: Nanos,
    /// Up to here everything is closed.
    closed_to: Nanos,
    /// Why the run ends early; the first reason stands.
    ended: Option<EndReason>,
}

impl Conductor<'_> {
    /// Waits for every thread; false when the run is to end before it has begun.
    fn wait_until_ready(&mut self) -> Result<bool, Stopped> {
        let mut waiting = self.working;
        while waiting > 0 {
            match self.inbox.messages.recv() {
                Ok(Message::Ready) => waiting -= 1,
                Ok(Message::Stop(reason)) => {
                    self.ended = Some(reason);
                    return Ok(false);
                }
                Ok(Message::Failed(lines)) => return Err(Stopped::AtStart(lines)),
                Ok(Message::Left(_) | Message::QueueFull) | Err(_) => {}
            }
        }
        Ok(true)
    }

    /// Starts the clock and follows the run to its end.
    fn play(mut self) -> Result<EndReason, Stopped> {
        let start_unix_us = unix_us();
        self.write_phase(0, start_unix_us);
        let clock = self.common.gate.open();
        while self.working > 0 {
            let now = clock.now();
            let Some(bound) = self.timeline.bound_after(self.closed_to) else { break };
            if bound.at <= now {
                self.close(bound.at, now - bound.at, start_unix_us);
                continue;
            }
            let mut wait = Duration::from_nanos(bound.at - now);
            if let Some(queue) = &self.common.queue {
                wait = wait.min(LOOK);
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
                    self.common.stop();
                    return Err(Stopped::Failed(lines));
                }
                Ok(Message::Ready) | Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
        self.close_last(clock, start_unix_us);
        Ok(self.end())
    }

    /// No event begins any more.
    fn end_early(&mut self, reason: EndReason) {
        self.ended.get_or_insert(reason);
        self.common.stop();
    }

    /// Closes the span that ends at `bound`, at which the conductor is `late`.
    fn close(&mut self, bound: Nanos, late: Nanos, start_unix_us: u64) {
        let common = Arc::clone(&self.common);
        let parts = common.meters.iter().flat_map(|meter| meter.close(bound));
        self.take_in(parts, late, bound, start_unix_us);
        self.closed_to = bound;
    }

    /// Closes the last span, where it is not closed: when all threads have ended, or where the others are given up.
    fn close_last(&mut self, clock: Clock, start_unix_us: u64) {
        let at = if self.working == 0 { self.left_at } else { clock.now() };
        // At least a microsecond after whatever is closed, so that the last span is none of length 0.
        let at = at.max(self.closed_to + 1000).min(self.timeline.end());
        let common = Arc::clone(&self.common);
        let parts = common.meters.iter().flat_map(|meter| meter.end_run(at));
        self.take_in(parts, 0, at, start_unix_us);
    }

    fn take_in(&mut self, parts: impl Iterator<Item = Part>, late: Nanos, now: Nanos, start_unix_us: u64) {
        let waiting = self.common.queue.as_ref().map_or(Some(0), |queue| queue.waiting(now));
        for part in parts {
            let Some(complete) = self.records.add(part, late, waiting.unwrap_or(0)) else { continue };
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

    /// Writes the last record.
    fn end(mut self) -> EndReason {
        let reason = self.ended.unwrap_or(if self.working > 0 {
            EndReason::ForcedShutdown
        } else if self.left_at >= self.common.limits.time {
            EndReason::TimeLimit
        } else if self.common.limits.is_full() {
            EndReason::EventLimit
        } else {
            // The test knew its own end.
            EndReason::Done
        });
        let users = self.common.meters.iter().flat_map(Shared::totals).collect();
        let end = self.records.end(reason, users);
        self.write(&end);
        reason
    }
}

/// Wall time now, microseconds since 1970.
fn unix_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| since.as_micros() as u64)
}
