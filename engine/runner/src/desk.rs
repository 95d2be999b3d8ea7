//! The desk of one worker: what its users share.
//!
//! A user asks the desk when its next event is due and tells it what became of it. The desk owns the recorder and,
//! in an open loop, the arrivals; in a closed one with pauses, those. Everything is on one thread: no locks, and no
//! await while the state is borrowed.

use std::cell::RefCell;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::Poll;

use dbdyno_load::Nanos;
use dbdyno_load::arrivals::Arrivals;
use dbdyno_load::pauses::Pauses;
use dbdyno_metrics::{Event, Recorder, Statement};
use dbdyno_schema::record::{EndReason, ErrorClass, Failure};
use tokio::sync::Notify;

use crate::QueueOverflow;
use crate::clock::Clock;
use crate::control::Message;
use crate::failure;
use crate::finish::Finish;
use crate::sleepers::Sleepers;
use crate::watch::Watch;

/// When events are due on one worker.
pub(crate) enum Schedule {
    /// When the one before it on the same connection has ended.
    Closed,
    /// Some time after that.
    Paced(Pauses),
    /// By themselves; at most `queue_limit` wait where there is one.
    Open { arrivals: Box<dyn Arrivals>, queue_limit: Option<u64>, overflow: QueueOverflow },
}

/// A user's place.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    /// On this worker, from 0.
    pub here: usize,
    /// Over the whole fleet.
    pub overall: u64,
}

/// What the users of one worker share: the schedule, the counters and the clock.
pub struct Desk {
    clock: Clock,
    state: RefCell<State>,
    /// An arrival is waiting, or the run is over.
    news: Notify,
    /// The run is over, for a user that waits for something else than an arrival.
    over: Notify,
    /// There is something to settle sooner than the timekeeper was told.
    sooner: Notify,
    finish: Arc<Finish>,
    /// First instant of the measurement.
    measured_from: Nanos,
    messages: Sender<Message>,
}

struct State {
    recorder: Recorder,
    schedule: Schedule,
    /// The first arrival that has not become due.
    next_due: Nanos,
    /// Users that wait for an arrival.
    idle: u64,
    sleepers: Sleepers,
    watch: Watch,
    /// Before this instant nothing needs to be settled.
    settle_at: Nanos,
    /// No event begins any more.
    closing: bool,
}

impl Desk {
    pub(crate) fn new(
        clock: Clock,
        recorder: Recorder,
        mut schedule: Schedule,
        (finish, measured_from): (Arc<Finish>, Nanos),
        messages: Sender<Message>,
    ) -> Self {
        let next_due = match &mut schedule {
            Schedule::Open { arrivals, .. } => arrivals.next_due(),
            Schedule::Closed | Schedule::Paced(_) => Nanos::MAX,
        };
        let state = State {
            recorder,
            schedule,
            next_due,
            idle: 0,
            sleepers: Sleepers::default(),
            watch: Watch::new(),
            settle_at: 0,
            closing: false,
        };
        let (news, over, sooner) = (Notify::new(), Notify::new(), Notify::new());
        Self { clock, state: RefCell::new(state), news, over, sooner, finish, measured_from, messages }
    }

    /// The time since the start of the run.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// When the next event of a user is due that is free since `now`, or has not begun at all; `None` when no event
    /// begins any more: the user is to leave then.
    pub async fn next_due(&self, seat: Seat, free_since: Option<Nanos>) -> Option<Nanos> {
        let now = free_since.unwrap_or_else(|| self.now());
        let pause_ends = {
            let mut state = self.settled(now);
            let State { recorder, schedule, closing, .. } = &mut *state;
            if recorder.is_over() || *closing {
                return None;
            }
            match schedule {
                Schedule::Closed => return self.begin(&mut state, seat, now),
                Schedule::Open { .. } if recorder.waiting() > 0 => return self.take(&mut state, seat, now),
                Schedule::Open { .. } => None,
                Schedule::Paced(pauses) => Some(match free_since {
                    Some(now) => pauses.next(seat.overall, now),
                    None => pauses.first(seat.overall),
                }),
            }
        };
        match pause_ends {
            Some(at) => self.pause(seat, at).await,
            None => self.arrival(seat).await,
        }
    }

    /// The next arrival, for a user that finds none waiting.
    async fn arrival(&self, seat: Seat) -> Option<Nanos> {
        loop {
            self.state.borrow_mut().idle += 1;
            self.news.notified().await;
            let now = self.now();
            let mut state = self.settled(now);
            state.idle -= 1;
            if state.recorder.is_over() || state.closing {
                return None;
            }
            // Another user may have come free in between and taken it.
            if state.recorder.waiting() > 0 {
                let due = self.take(&mut state, seat, now);
                due.into_iter().for_each(|due| state.watch.late_by(now - due));
                return due;
            }
        }
    }

    /// Waits until `at`. The event is due when it begins: a pause is no part of any latency.
    async fn pause(&self, seat: Seat, at: Nanos) -> Option<Nanos> {
        poll_fn(|context| {
            let now = self.now();
            let mut state = self.settled(now);
            if state.recorder.is_over() || state.closing {
                return Poll::Ready(None);
            }
            if now >= at {
                return Poll::Ready(self.begin(&mut state, seat, now));
            }
            state.sleepers.add(at, seat.here, context.waker().clone());
            if at < state.settle_at {
                state.settle_at = at;
                self.sooner.notify_one();
            }
            Poll::Pending
        })
        .await
    }

    /// An event begins at once on `seat`, if one still may. Returns when it was due.
    #[inline]
    fn begin(&self, state: &mut State, seat: Seat, now: Nanos) -> Option<Nanos> {
        if !self.admits(state, now) {
            return None;
        }
        state.recorder.begin(seat.here, now);
        Some(now)
    }

    /// An event begins at once on `seat`, whatever the limits and the rate.
    pub fn begin_unasked(&self, seat: Seat, now: Nanos) {
        self.settled(now).recorder.begin(seat.here, now);
    }

    /// The event that has waited longest begins on `seat`, if one still may. Returns when it was due.
    #[inline]
    fn take(&self, state: &mut State, seat: Seat, now: Nanos) -> Option<Nanos> {
        if !self.admits(state, now) {
            return None;
        }
        state.recorder.take(seat.here)
    }

    /// Whether one more event may begin; in the warm-up always.
    #[inline]
    fn admits(&self, state: &mut State, now: Nanos) -> bool {
        if !self.finish.counts_events() || now < self.measured_from || self.finish.admit() {
            return true;
        }
        self.close_doors(state);
        if self.finish.set_full() {
            // Without a conductor the run is over anyway.
            let _ = self.messages.send(Message::Full);
        }
        false
    }

    /// Lets no event begin any more, and wakes whoever waits for one.
    #[cold]
    fn close_doors(&self, state: &mut State) {
        if !state.closing {
            state.closing = true;
            state.next_due = Nanos::MAX;
            state.sleepers.wake(Nanos::MAX);
            self.news.notify_waiters();
        }
    }

    /// The user that `next_due` gave nothing has no more to do, since `at`.
    pub fn leave(&self, at: Nanos) {
        self.settled(at).recorder.leave(at);
        if self.finish.leave(at) {
            self.look();
            let _ = self.messages.send(Message::AllLeft);
        }
    }

    /// Looks for what the other workers have agreed on.
    pub(crate) fn look(&self) {
        self.state.borrow_mut().settle_at = 0;
        self.sooner.notify_one();
    }

    /// An event has ended.
    pub fn event(&self, seat: Seat, event: Event) {
        self.settled(event.end).recorder.event(seat.here, event);
    }

    /// A statement has succeeded.
    #[inline]
    pub fn statement(&self, statement: Statement) {
        self.settled(statement.end).recorder.statement(statement);
    }

    pub(crate) fn other_statement(&self, now: Nanos) {
        self.settled(now).recorder.other_statement(now);
    }

    /// An attempt has failed with an error of that code.
    pub fn error(&self, now: Nanos, code: &str, class: ErrorClass) {
        self.settled(now).recorder.error(now, code, class);
    }

    /// An event begins anew after an error.
    pub fn retry(&self, now: Nanos) {
        self.settled(now).recorder.retry(now);
    }

    /// A lost connection is open again.
    pub fn reconnect(&self, now: Nanos) {
        self.settled(now).recorder.reconnect(now);
    }

    /// An event was given up.
    pub fn failed(&self, seat: Seat, now: Nanos) {
        self.settled(now).recorder.failed(seat.here, now);
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.settled(self.now()).recorder.is_over()
    }

    /// Tells the conductor that this run cannot go on.
    pub fn fail(&self, (reason, failure): (EndReason, Failure)) {
        // Without a conductor the run is over anyway.
        let _ = self.messages.send(Message::Failed(reason, failure));
    }

    /// Settles everything up to now and returns the next instant at which there is something to settle; `None`
    /// when the run is over. `planned` is the instant for which the caller set its timer, where it was not disturbed.
    pub fn keep_time(&self, planned: Option<Nanos>) -> Option<Nanos> {
        let now = self.now();
        if let Some(planned) = planned {
            let mut state = self.state.borrow_mut();
            // An open loop is late where its events are.
            if !matches!(state.schedule, Schedule::Open { .. }) {
                state.watch.late_by(now.saturating_sub(planned));
            }
        }
        let state = self.settled(now);
        (!state.recorder.is_over()).then_some(state.settle_at)
    }

    /// Returns when there is something to settle sooner than `keep_time` has said.
    pub(crate) async fn sooner(&self) {
        self.sooner.notified().await;
    }

    /// Wakes every user that waits, so that it sees that the run is over.
    pub(crate) fn dismiss(&self) {
        self.news.notify_waiters();
        self.over.notify_waiters();
        self.state.borrow_mut().sleepers.wake(Nanos::MAX);
    }

    /// What `work` returns; `None` when the run is over before it is done.
    pub async fn unless_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let over = self.over.notified();
        if self.settled(self.now()).recorder.is_over() {
            return None;
        }
        tokio::select! {
            done = work => Some(done),
            () = over => None,
        }
    }

    /// Tells the conductor what became of the events that were under way at the end, after the last moment for them,
    /// and what each user did.
    pub(crate) fn report_drained(&self) {
        let mut state = self.state.borrow_mut();
        let users = state.recorder.user_totals();
        // Without a conductor the run is over anyway.
        let _ = self.messages.send(Message::Drained(Box::new(state.recorder.drained()), users));
    }

    /// The state with everything that happened up to `now` in it.
    #[inline]
    fn settled(&self, now: Nanos) -> std::cell::RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        if now >= state.settle_at {
            self.settle(&mut state, now);
        }
        state
    }

    #[cold]
    fn settle(&self, state: &mut State, now: Nanos) {
        self.agree_on_end(state, now);
        let limit = self.finish.limit();
        while state.next_due <= now && state.next_due < limit && !state.recorder.is_over() {
            self.arrive(state);
        }
        if now >= limit || self.finish.is_full() {
            self.close_doors(state);
        }
        state.sleepers.wake(now);
        state.recorder.advance(now);
        for (bound, closed) in state.recorder.take_closed_spans() {
            let fared = closed.interval.is_some().then(|| state.watch.take(now));
            // Without a conductor the run is over anyway.
            let _ = self.messages.send(Message::Closed { bound, closed: Box::new(closed), fared });
        }
        let bound = state.recorder.next_bound().unwrap_or(Nanos::MAX);
        let limit = if state.closing { Nanos::MAX } else { limit };
        state.settle_at = state.next_due.min(bound).min(limit).min(state.sleepers.first());
    }

    /// Lets the recorder close no span after the end of the run, which other workers may have found meanwhile.
    fn agree_on_end(&self, state: &mut State, now: Nanos) {
        let closes = state.recorder.next_bound().is_some_and(|bound| bound <= now);
        let stop_at = if closes { self.finish.closing(now) } else { self.finish.stop_at() };
        if stop_at != Nanos::MAX {
            state.recorder.stop_at(stop_at);
        }
    }

    /// The next arrival joins the line, or finds it full.
    fn arrive(&self, state: &mut State) {
        let Schedule::Open { arrivals, queue_limit, overflow } = &mut state.schedule else {
            return;
        };
        // Who stands in line for a user that has been called already does not count.
        let full = queue_limit.is_some_and(|limit| state.recorder.waiting() >= state.idle + limit);
        if full {
            state.recorder.drop_arrival(state.next_due);
            if *overflow == QueueOverflow::Abort {
                self.fail(failure::queue_full(state.recorder.waiting()));
                return self.close_doors(state);
            }
        } else {
            state.recorder.arrive(state.next_due);
            self.news.notify_one();
        }
        state.next_due = arrivals.next_due();
    }
}
