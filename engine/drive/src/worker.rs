//! One worker: a thread with an event loop, its connections and its users.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use dbdyno_door::plan::{Plan, Scheduling, Target};
use dbdyno_door::record::{EndReason, Failure, Warning};
use dbdyno_draw::Rng;
use dbdyno_gauge::Gauge;
use dbdyno_pace::Nanos;
use dbdyno_pace::arrivals::arrivals;
use dbdyno_pace::pauses::Pauses;
use dbdyno_pace::timeline::Timeline;
use dbdyno_wire::{Connection, Connector};
use dbdyno_workload::Oltp;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::Clock;
use crate::control::{Message, WorkerReady};
use crate::desk::{Desk, Schedule, Seat};
use crate::failure;
use crate::finish::Finish;
use crate::machine;
use crate::refusal::{self, Held, Wanted};
use crate::session::{Opener, Refusal, Session, Way};
use crate::timer::Timer;
use crate::user::{Script, User};

/// Tasks that are polled before the kernel is asked again what is ready: many small batches cost more than a few large
/// ones, and a timer that is due meanwhile waits for no more than these.
const POLLS_BETWEEN_WAITS: u32 = 256;

/// How a run ends that cannot begin.
type Ending = (EndReason, Failure);

/// What the conductor tells the workers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    /// Connect and wait.
    Wait,
    /// The clock starts at that instant; there is something to look at whenever `looks` changes.
    Go { start: Instant, looks: u32 },
    /// Give up before the start.
    Quit,
}

/// How a worker hears from the others and is heard.
pub(crate) struct Links {
    pub(crate) signal: watch::Receiver<Signal>,
    pub(crate) finish: Arc<Finish>,
    pub(crate) messages: Sender<Message>,
}

/// Tells the conductor that a worker has ended, even where it panics: nobody is to wait for it.
pub(crate) struct LastWord(pub(crate) Sender<Message>);

impl Drop for LastWord {
    fn drop(&mut self) {
        let _ = self.0.send(Message::Finished);
    }
}

/// One worker's part of a run.
pub(crate) struct Worker<C> {
    pub(crate) plan: Arc<Plan>,
    pub(crate) oltp: Oltp,
    pub(crate) connector: C,
    /// Number of this worker and how many there are, over the whole fleet.
    pub(crate) index: u32,
    pub(crate) count: u32,
    /// What all workers of this engine hold on the server.
    pub(crate) held: Arc<Held>,
    pub(crate) links: Links,
}

impl<C: Connector> Worker<C> {
    /// Runs the worker on the calling thread, to its end.
    pub(crate) fn run(self) {
        let messages = self.links.messages.clone();
        let _last = LastWord(messages.clone());
        // A LocalSet inside a runtime wakes its own thread through the kernel after every 61 tasks.
        let runtime = Builder::new_current_thread()
            .enable_all()
            .event_interval(POLLS_BETWEEN_WAITS)
            .build_local(LocalOptions::default());
        let result = runtime.and_then(|runtime| runtime.block_on(self.work()));
        if let Err(error) = result {
            let text = format!("a worker could not start: {error}");
            let hint = "raise the limit on open files (ulimit -n)".to_owned();
            let failure = Failure { text, hint: Some(hint), ..Failure::default() };
            // Without a conductor nobody waits for it.
            let _ = messages.send(Message::Failed(EndReason::ConnectFailed, failure));
        }
    }

    async fn work(self) -> io::Result<()> {
        machine::exact_timers();
        self.set_scheduling();
        let mut signal = self.links.signal.clone();
        if let Err(failure) = self.make_room() {
            let _ = self.links.messages.send(Message::Failed(EndReason::ConnectFailed, failure));
            return Ok(());
        }
        let opener = Rc::new(Opener::new(self.connector.clone(), &self.oltp, Arc::clone(&self.held)));
        let opened = tokio::select! {
            opened = self.open_all(&opener) => opened,
            _ = signal.wait_for(|signal| matches!(signal, Signal::Quit)) => return Ok(()),
        };
        let sessions = match opened {
            Ok(opened) => opened,
            Err((reason, failure)) => {
                let _ = self.links.messages.send(Message::Failed(reason, failure));
                return Ok(());
            }
        };
        self.report_ready(&sessions);
        match signal.wait_for(|signal| !matches!(signal, Signal::Wait)).await.map(|signal| *signal) {
            Ok(Signal::Go { start, .. }) => self.play(opener, sessions, start).await,
            _ => Ok(()),
        }
    }

    fn set_scheduling(&self) {
        if self.plan.client.scheduling != Scheduling::Batch {
            return;
        }
        if let Err(error) = machine::schedule_batch() {
            let _ = self.links.messages.send(Message::Warning(Warning {
                code: "batch-refused".into(),
                text: format!("the system refuses SCHED_BATCH: {error}"),
                hint: "the run goes on under normal scheduling, which costs more CPU per statement".into(),
            }));
        }
    }

    fn report_ready(&self, sessions: &[Session<C::Connection>]) {
        let prepared = |session: &Session<C::Connection>| {
            session.ways.iter().filter(|way| matches!(way, Way::Prepared(_))).count() as u64
        };
        let first = sessions.first();
        let is_first = self.index == self.plan.segment.index * self.plan.client.workers;
        let _ = self.links.messages.send(Message::Ready(WorkerReady {
            connections: sessions.len() as u32,
            // The conductor wants that of the engine's first connection, which the first worker has.
            session: first.filter(|_| is_first).map(|first| first.connection.session().clone()),
            prepared_statements: sessions.iter().map(prepared).sum(),
        }));
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
            code: None,
            text: format!(
                "{connections} connections need {needed} open files, and this process may open {limit} at most"
            ),
            hint: Some(format!("raise the hard limit (ulimit -Hn {needed}), or use fewer connections")),
            server: None,
        })
    }

    /// Opens this worker's connections and prepares every statement on each.
    async fn open_all(&self, opener: &Rc<Opener<C>>) -> Result<Vec<Session<C::Connection>>, Ending> {
        let wanted = self.share(self.plan.load.connections);
        let mut opening = JoinSet::new();
        for position in 0..u64::from(wanted) {
            let (opener, number) = (Rc::clone(opener), self.number(position));
            opening.spawn_local(async move { opener.open_in_turn(number).await });
        }
        let mut sessions = Vec::with_capacity(wanted as usize);
        let mut refusals = Vec::new();
        while let Some(joined) = opening.join_next().await {
            match joined.expect("opening a connection does not panic") {
                Ok(session) => sessions.push(session),
                // What is under way counts against the limit too: it is waited for, and then all is counted.
                Err(refusal) if !refusals.is_empty() || refusal::is_limit(&refusal.error) => {
                    opener.stop();
                    refusals.push(refusal);
                }
                Err(refusal) => return Err(refusal.failure(&self.plan.target)),
            }
        }
        if !refusals.is_empty() {
            return Err(self.explained(opener, &mut sessions, &mut refusals).await);
        }
        // They come as the server answers; each user is to have the connection of its own number.
        sessions.sort_unstable_by_key(|session| session.number);
        Ok(sessions)
    }

    /// What to say after a limit of the server was met, first by the first of `refusals`.
    async fn explained(
        &self,
        opener: &Opener<C>,
        sessions: &mut [Session<C::Connection>],
        refusals: &mut [Refusal<C::Connection>],
    ) -> Ending {
        let wanted =
            Wanted { connections: self.plan.load.connections.into(), statements: opener.statements_each() };
        let (error, failure) = (refusals[0].error.clone(), refusals[0].failure(&self.plan.target));
        let asked = match sessions.first_mut() {
            Some(session) => Some(&mut session.connection),
            None => refusals.iter_mut().find_map(|refusal| refusal.connection.as_mut()),
        };
        refusal::explained(failure, &error, asked, wanted, &self.held).await
    }

    /// Number within the run of this worker's connection `position`, and of the user that has it.
    fn number(&self, position: u64) -> u64 {
        position * u64::from(self.count) + u64::from(self.index)
    }

    async fn play(
        self,
        opener: Rc<Opener<C>>,
        sessions: Vec<Session<C::Connection>>,
        start: Instant,
    ) -> io::Result<()> {
        let plan = &self.plan;
        let mut timer = Timer::new()?;
        timer.until(start).await?;
        let clock = Clock::starting_at(start);
        let schedule = self.schedule();
        let open = matches!(schedule, Schedule::Open { .. });
        let gauge = Gauge::new(Timeline::new(&plan.phases, &plan.report), self.oltp.shares().len(), open)
            .reporting(&plan.report, sessions.len() as u32);
        let Links { mut signal, finish, messages } = self.links;
        let measured_from: Nanos = plan.phases.warmup_us * 1000;
        // Local tasks must be 'static, and the conductor keeps its own handle of the finish.
        let desk = Rc::new(Desk::new(clock, gauge, schedule, (Arc::clone(&finish), measured_from), messages));
        let numbers: Vec<u64> = sessions.iter().map(|session| session.number).collect();
        let script = Rc::new(Script { oltp: self.oltp, plan: Arc::clone(&self.plan) });

        let mut users = JoinSet::new();
        for (here, session) in sessions.into_iter().enumerate() {
            let index = session.number;
            let place = dbdyno_workload::Seat { index, count: u64::from(plan.load.connections) };
            let event = script.oltp.events(place);
            let rng = Rng::new(plan.seed, &[u64::from_be_bytes(*b"backoffs"), index]);
            let seat = Seat { here, overall: index };
            let (opener, desk, script) = (Rc::clone(&opener), Rc::clone(&desk), Rc::clone(&script));
            users.spawn_local(User { session, opener, desk, seat, script, event, rng }.play());
        }
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
        if let Some(error) = opener.all_lost(users.len()) {
            // None of them has waited for long enough to give up by itself.
            desk.fail(failure::gone_at_the_end(&error));
        }
        desk.dismiss();
        let drain = finish.drain(plan.phases.drain_us);
        let _ = tokio::time::timeout(drain, async { while users.join_next().await.is_some() {} }).await;
        desk.report_drained(&numbers);
        Ok(())
    }

    /// When events are due on this worker.
    fn schedule(&self) -> Schedule {
        let plan = &self.plan;
        let begin: Nanos = plan.phases.warmup_us * 1000;
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        if let Some(arrivals) = arrivals(&plan.load.shape, begin, index, count, plan.seed) {
            let queue_limit = plan.load.queue_limit.map(|limit| self.share(limit).into());
            return Schedule::Open { arrivals, queue_limit, overflow: plan.load.queue_overflow };
        }
        match Pauses::new(&plan.load, begin, index, count, plan.seed) {
            Some(pauses) => Schedule::Paced(pauses),
            None => Schedule::Closed,
        }
    }

    /// This worker's part of something that the whole fleet shares.
    fn share(&self, total: u32) -> u32 {
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
