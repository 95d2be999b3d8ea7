//! A worker's post: its place in the run, and what is the same for users of any kind: the thread's event loop, the room
//! for connections, the schedule, the clock and the end.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use dbdyno_load::Nanos;
use dbdyno_load::arrivals::arrivals;
use dbdyno_load::pauses::Pauses;
use dbdyno_load::timeline::Timeline;
use dbdyno_metrics::Recorder;
use dbdyno_schema::plan::{Plan, Scheduling, Target};
use dbdyno_schema::record::{EndReason, Failure, Warning};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::control::{Message, WorkerReady};
use crate::desk::{Desk, Schedule};
use crate::failure;
use crate::finish::Finish;
use crate::machine;
use crate::timer::Timer;
use crate::{Options, Order};

/// Tasks that are polled before the kernel is asked again what is ready: many small batches cost more than a few large
/// ones, and a timer that is due meanwhile waits for no more than these.
const POLLS_BETWEEN_WAITS: u32 = 256;

/// What the conductor tells the workers.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// Connect and wait.
    Wait,
    /// The clock starts at that instant; there is something to look at whenever `looks` changes.
    Go {
        /// First instant of the warm-up.
        start: Instant,
        /// Counts the calls to look.
        looks: u32,
    },
    /// Give up before the start.
    Quit,
}

/// How a worker hears from the others and is heard.
#[derive(Clone)]
pub struct Links {
    /// What the conductor says.
    pub signal: watch::Receiver<Signal>,
    pub(crate) finish: Arc<Finish>,
    pub(crate) messages: Sender<Message>,
}

impl Links {
    /// Reports that all users of this worker are ready. Without a conductor nobody waits for it, here and below.
    pub fn ready(&self, ready: WorkerReady) {
        let _ = self.messages.send(Message::Ready(ready));
    }

    /// Writes a warning.
    pub fn warn(&self, warning: Warning) {
        let _ = self.messages.send(Message::Warning(warning));
    }

    /// Ends the run.
    pub fn fail(&self, reason: EndReason, failure: Failure) {
        let _ = self.messages.send(Message::Failed(reason, failure));
    }
}

/// Tells the conductor that a worker has ended, and whether by a panic: nobody is to wait for it.
struct LastWord(Sender<Message>);

impl Drop for LastWord {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let (reason, failure) = failure::own_fault();
            let _ = self.0.send(Message::Failed(reason, failure));
        }
        let _ = self.0.send(Message::Finished);
    }
}

/// A user's: tells the conductor where the user panics, since nobody does its work any more and it never leaves.
struct Alarm(Rc<Desk>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.fail(failure::own_fault());
        }
    }
}

/// Starts a user of this worker.
pub fn spawn_user(users: &mut JoinSet<()>, desk: &Rc<Desk>, play: impl Future<Output = ()> + 'static) {
    let alarm = Alarm(Rc::clone(desk));
    users.spawn_local(async move {
        let _alarm = alarm;
        play.await;
    });
}

/// A worker's place in the run.
pub struct Post {
    /// The plan of the run.
    pub plan: Arc<Plan>,
    pub(crate) options: Options,
    /// Number of this worker and how many there are, over the whole fleet.
    index: u32,
    count: u32,
    /// To and from the conductor.
    pub links: Links,
}

/// Runs a worker on the calling thread, to its end.
pub fn work_on_this_thread(links: Links, work: impl Future<Output = io::Result<()>>) {
    let _last = LastWord(links.messages.clone());
    // A LocalSet inside a runtime wakes its own thread through the kernel after every 61 tasks.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .event_interval(POLLS_BETWEEN_WAITS)
        .build_local(LocalOptions::default());
    let result = runtime.and_then(|runtime| runtime.block_on(work));
    if let Err(error) = result {
        let text = format!("a worker could not start: {error}");
        let hint = "raise the limit on open files (ulimit -n)".to_owned();
        let failure = Failure { text, hint: Some(hint), ..Failure::default() };
        links.fail(EndReason::ConnectFailed, failure);
    }
}

impl Post {
    /// That of worker `number` of this engine.
    pub fn new(order: &Order, number: u32, links: Links) -> Self {
        let (plan, options) = (Arc::clone(&order.plan), order.options.clone());
        let (segment, workers) = (plan.segment, plan.client.workers);
        let (index, count) = (segment.index * workers + number, segment.count * workers);
        Self { plan, options, index, count, links }
    }

    /// Whether it is the first of this engine.
    pub fn is_first(&self) -> bool {
        self.index == self.plan.segment.index * self.plan.client.workers
    }

    /// Sets the thread up, before anything is opened. Returns whether there is room for all connections; where there is
    /// not, the conductor has been told.
    pub fn prepare(&self) -> bool {
        machine::exact_timers();
        self.set_scheduling();
        let room = self.make_room();
        if let Err(failure) = room {
            self.links.fail(EndReason::ConnectFailed, failure);
            return false;
        }
        true
    }

    fn set_scheduling(&self) {
        if self.plan.client.scheduling != Scheduling::Batch {
            return;
        }
        if let Err(error) = machine::schedule_batch() {
            self.links.warn(Warning {
                code: "batch-refused".into(),
                text: format!("the system refuses SCHED_BATCH: {error}"),
                hint: "the run goes on under normal scheduling, which costs more CPU per statement".into(),
            });
        }
    }

    /// Raises the limit on open files as far as the system lets us, and sees whether that is enough.
    fn make_room(&self) -> Result<(), Failure> {
        if matches!(self.plan.target, Target::Null { .. }) {
            return Ok(());
        }
        let segment = self.plan.segment;
        let connections = share(self.plan.load.connections, segment.index, segment.count);
        // Beside the connections: what each worker and the process need for themselves, and the predecessors of
        // connections that are being renewed.
        let renewing = if self.plan.load.reconnect_every == 0 { 0 } else { connections.min(64) };
        let needed = u64::from(connections + self.plan.client.workers * 8 + renewing + 16);
        let limit = machine::raise_open_files();
        if needed <= limit {
            return Ok(());
        }
        Err(Failure {
            text: format!(
                "{connections} connections need {needed} open files, and this process may open {limit} at most"
            ),
            hint: Some(format!("raise the hard limit (ulimit -Hn {needed}), or use fewer connections")),
            ..Failure::default()
        })
    }

    /// Number within the run of this worker's connection `position`, and of the user that has it.
    pub fn number(&self, position: u64) -> u64 {
        position * u64::from(self.count) + u64::from(self.index)
    }

    /// Starts the clock at `start`, has `spawn` start the users, which have these `numbers`, and follows the run to its
    /// end; `over` is called when it has come, with the number of users that have not ended.
    pub async fn play(
        self,
        start: Instant,
        kinds: usize,
        numbers: &[u64],
        spawn: impl FnOnce(&Rc<Desk>, &mut JoinSet<()>),
        over: impl FnOnce(&Desk, usize),
    ) -> io::Result<()> {
        let plan = &self.plan;
        let mut timer = Timer::new()?;
        timer.until(start).await?;
        let clock = Clock::starting_at(start);
        let schedule = self.schedule();
        let open = matches!(schedule, Schedule::Open { .. });
        let timeline = Timeline::new(&plan.phases, &plan.report, self.options.last_events);
        let recorder = Recorder::new(timeline, kinds, open).counting(&self.options.extra_counts, numbers);
        let Links { mut signal, finish, messages } = self.links;
        let measured_from: Nanos = plan.phases.warmup_us * 1000;
        // Local tasks must be 'static, and the conductor keeps its own handle of the finish.
        let desk =
            Rc::new(Desk::new(clock, recorder, schedule, (Arc::clone(&finish), measured_from), messages));
        let mut users = JoinSet::new();
        spawn(&desk, &mut users);
        let mut planned = Some(0);
        while let Some(next) = desk.keep_time(planned) {
            planned = tokio::select! {
                on_time = timer.until(clock.instant(next)) => on_time.map(|()| Some(next))?,
                () = desk.sooner() => None,
                changed = signal.changed() => {
                    // Without a conductor nobody waits for the end, which then comes by the clock.
                    if changed.is_err() {
                        break;
                    }
                    desk.look();
                    None
                }
            };
        }
        over(&desk, users.len());
        desk.dismiss();
        let drain = finish.drain(plan.phases.drain_us);
        let _ = tokio::time::timeout(drain, async { while users.join_next().await.is_some() {} }).await;
        desk.report_drained();
        Ok(())
    }

    /// When events are due on this worker.
    fn schedule(&self) -> Schedule {
        let plan = &self.plan;
        let begin: Nanos = plan.phases.warmup_us * 1000;
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        if let Some(arrivals) = arrivals(&plan.load.shape, begin, index, count, plan.seed) {
            let queue_limit = plan.load.queue_limit.map(|limit| self.share(limit).into());
            return Schedule::Open { arrivals, queue_limit, overflow: self.options.queue_overflow };
        }
        match Pauses::new(&plan.load, begin, index, count, plan.seed) {
            Some(pauses) => Schedule::Paced(pauses),
            None => Schedule::Closed,
        }
    }

    /// This worker's part of something that the whole fleet shares.
    pub fn share(&self, total: u32) -> u32 {
        let (segment, workers) = (self.plan.segment, self.plan.client.workers);
        let mine = share(total, segment.index, segment.count);
        share(mine, self.index - segment.index * workers, workers)
    }
}

/// The part of `total` for number `index` of `count`; the parts add up to the total.
pub(crate) fn share(total: u32, index: u32, count: u32) -> u32 {
    total / count + u32::from(index < total % count)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_add_up() {
        for (total, count) in [(10, 3), (3, 10), (1, 1), (64, 7)] {
            assert_eq!((0..count).map(|index| share(total, index, count)).sum::<u32>(), total);
        }
    }
}
