//! The desk of one worker: what its users share.
//!
//! A user asks the desk when its next event is due and tells it what became of it. The desk owns the gauge and,
//! in an open loop, the arrivals and the backlog. Everything is on one thread: no locks, and no await while the
//! state is borrowed.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use dbdyno_door::record::{EndReason, Failure, Generator};
use dbdyno_gauge::{Event, Gauge, Statement};
use dbdyno_pace::Nanos;
use dbdyno_pace::arrivals::Arrivals;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::control::Message;
use crate::machine;

/// The instant at which every worker stops; `u64::MAX` while none is known. Set at least a little ahead, so that
/// no worker has passed it.
pub(crate) type StopAt = AtomicU64;

pub(crate) struct Desk {
    clock: Clock,
    state: RefCell<State>,
    /// An arrival is waiting, or the run is over.
    news: Notify,
    /// The run is over, for a user that waits for something else than an arrival.
    over: Notify,
    stop_at: Arc<StopAt>,
    messages: Sender<Message>,
    watch: Cell<Watch>,
}

struct State {
    gauge: Gauge,
    arrivals: Option<Box<dyn Arrivals>>,
    /// The first arrival that has not become due.
    next_due: Nanos,
    /// Arrivals that no user has taken.
    backlog: VecDeque<Nanos>,
    /// Before this instant nothing needs to be settled.
    settle_at: Nanos,
}

/// What the worker's thread had used at the last interval.
#[derive(Clone, Copy, Default)]
struct Watch {
    at: Nanos,
    cpu: Duration,
    run_queue_wait: Duration,
    lag_max: Nanos,
}

impl Desk {
    pub(crate) fn new(
        clock: Clock,
        gauge: Gauge,
        mut arrivals: Option<Box<dyn Arrivals>>,
        stop_at: Arc<StopAt>,
        messages: Sender<Message>,
    ) -> Self {
        let next_due = arrivals.as_mut().map_or(Nanos::MAX, |arrivals| arrivals.next_due());
        let watch = Watch {
            cpu: machine::thread_cpu(),
            run_queue_wait: machine::thread_run_queue_wait(),
            ..Watch::default()
        };
        Self {
            clock,
            state: RefCell::new(State { gauge, arrivals, next_due, backlog: VecDeque::new(), settle_at: 0 }),
            news: Notify::new(),
            over: Notify::new(),
            stop_at,
            messages,
            watch: Cell::new(watch),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// When the next event of a user that is free since `now` is due; `None` when the run is over.
    pub(crate) async fn next_due(&self, now: Nanos) -> Option<Nanos> {
        let mut now = now;
        loop {
            {
                let mut state = self.settled(now);
                if state.gauge.is_over() {
                    return None;
                }
                if state.arrivals.is_none() {
                    state.gauge.due(now);
                    return Some(now);
                }
                if let Some(due) = state.backlog.pop_front() {
                    return Some(due);
                }
            }
            self.news.notified().await;
            now = self.now();
        }
    }

    pub(crate) fn event(&self, event: Event) {
        self.settled(event.end).gauge.event(event);
    }

    #[inline]
    pub(crate) fn statement(&self, statement: Statement) {
        self.settled(statement.end).gauge.statement(statement);
    }

    pub(crate) fn other_statement(&self, now: Nanos) {
        self.settled(now).gauge.other_statement(now);
    }

    pub(crate) fn error(&self, now: Nanos, code: &str) {
        self.settled(now).gauge.error(now, code);
    }

    pub(crate) fn retry(&self, now: Nanos) {
        self.settled(now).gauge.retry(now);
    }

    pub(crate) fn reconnect(&self, now: Nanos) {
        self.settled(now).gauge.reconnect(now);
    }

    pub(crate) fn failed(&self, now: Nanos, due: Nanos) {
        self.settled(now).gauge.failed(now, due);
    }

    /// Tells the conductor that this run cannot go on.
    pub(crate) fn fail(&self, (reason, failure): (EndReason, Failure)) {
        // Without a conductor the run is over anyway.
        let _ = self.messages.send(Message::Failed(reason, failure));
    }

    /// Settles everything up to now and returns the next instant at which there is something to settle; `None`
    /// when the run is over. `planned` is the instant for which the caller set its timer.
    pub(crate) fn keep_time(&self, planned: Nanos) -> Option<Nanos> {
        let now = self.now();
        let mut watch = self.watch.get();
        watch.lag_max = watch.lag_max.max(now.saturating_sub(planned));
        self.watch.set(watch);
        let state = self.settled(now);
        (!state.gauge.is_over()).then_some(state.settle_at)
    }

    /// Wakes every user that waits, so that it sees that the run is over.
    pub(crate) fn dismiss(&self) {
        self.news.notify_waiters();
        self.over.notify_waiters();
    }

    /// What `work` returns; `None` when the run is over before it is done.
    pub(crate) async fn unless_over<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let over = self.over.notified();
        if self.settled(self.now()).gauge.is_over() {
            return None;
        }
        tokio::select! {
            done = work => Some(done),
            () = over => None,
        }
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
        let stop_at = self.stop_at.load(Ordering::Acquire);
        if stop_at != Nanos::MAX {
            state.gauge.stop_at(stop_at);
        }
        while state.next_due <= now && !state.gauge.is_over() {
            state.gauge.due(state.next_due);
            state.backlog.push_back(state.next_due);
            state.next_due = state.arrivals.as_mut().map_or(Nanos::MAX, |arrivals| arrivals.next_due());
            self.news.notify_one();
        }
        state.gauge.advance(now);
        for (bound, closed) in state.gauge.take_closed() {
            let generator = closed.interval.is_some().then(|| self.generator(now));
            // Without a conductor the run is over anyway.
            let _ = self.messages.send(Message::Closed { bound, closed: Box::new(closed), generator });
        }
        state.settle_at = state.next_due.min(state.gauge.next_bound().unwrap_or(Nanos::MAX));
    }

    /// What this worker used since the last interval.
    fn generator(&self, now: Nanos) -> Generator {
        let before = self.watch.get();
        let watch = Watch {
            at: now,
            cpu: machine::thread_cpu(),
            run_queue_wait: machine::thread_run_queue_wait(),
            lag_max: 0,
        };
        self.watch.set(watch);
        let wall = Duration::from_nanos((now - before.at).max(1));
        Generator {
            cpu: (watch.cpu - before.cpu).as_secs_f64() / wall.as_secs_f64(),
            lag_us_max: before.lag_max / 1000,
            run_queue_wait_us: (watch.run_queue_wait - before.run_queue_wait).as_micros() as u64,
        }
    }
}
