//! The state that the users of one worker share.
//!
//! A user asks when its next event is due, and reports the result. The state has the metrics, and the pauses of a closed
//! loop. The users run on one thread, so there are no locks, except that of the arrival queue, which the workers share. No code
//! awaits while it borrows the state.

use std::cell::RefCell;
use std::time::Duration;

use dbdyno_load::Nanos;
use dbdyno_load::slices::Slice;
use dbdyno_metrics::{Event, Recorder, Statement};
use dbdyno_schema::record::ErrorClass;
use dbdyno_wire::WireError;
use tokio::sync::Notify;

use crate::QueueOverflow;
use crate::answer_waits::AnswerWaits;
use crate::arrival_queue::QueueProgress;
use crate::clock::Clock;
use crate::control::{CoordinatorLink, Message};
use crate::failure::{self, RunFailure};
use crate::lost_connections::LostConnections;
use crate::machine;
use crate::schedule::Schedule;
use crate::usage::UsageMeter;
use crate::wake_queue::WakeQueue;

mod due;
#[cfg(test)]
mod tests;

/// How often to look at a queue with a limit if no user takes an event.
const QUEUE_CHECK_PAUSE: Nanos = 100_000_000;

/// The number of a user, which is also that of its connection.
#[derive(Clone, Copy, Debug)]
pub struct UserId {
    /// The number over all workers of all engines, from 0.
    pub global: u64,
    /// The number on this worker, from 0.
    pub local: usize,
}

/// The schedule, the metrics and the clock of one worker.
pub struct WorkerState {
    clock: Clock,
    state: RefCell<State>,
    /// Notified when the run is over.
    run_over: Notify,
    /// Notified when something becomes due before the instant for which the timekeeper has set its timer.
    earlier_deadline: Notify,
    /// First instant of the measurement.
    measured_from: Nanos,
    pub(crate) coordinator: CoordinatorLink,
    lost_connections: RefCell<LostConnections>,
    /// What each user waits for.
    pub answer_waits: AnswerWaits,
}

struct State {
    recorder: Recorder,
    schedule: Schedule,
    wake_queue: WakeQueue,
    usage: UsageMeter,
    /// No wake-up and no end of an interval needs handling before this instant.
    next_deadline: Nanos,
    /// Whether no further event may begin.
    is_closing: bool,
}

impl WorkerState {
    pub(crate) fn new(
        clock: Clock,
        recorder: Recorder,
        schedule: Schedule,
        measured_from: Nanos,
        coordinator: CoordinatorLink,
        answer_waits: AnswerWaits,
    ) -> Self {
        let state = State {
            recorder,
            schedule,
            wake_queue: WakeQueue::default(),
            usage: UsageMeter::new(),
            next_deadline: 0,
            is_closing: false,
        };
        Self {
            clock,
            state: RefCell::new(state),
            run_over: Notify::new(),
            earlier_deadline: Notify::new(),
            measured_from,
            coordinator,
            lost_connections: RefCell::default(),
            answer_waits,
        }
    }

    /// The time since the start of the run.
    #[inline]
    pub fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Begins a slice, unless it is the current one.
    pub(crate) fn resume(&self, slice: Slice) {
        let mut state = self.state.borrow_mut();
        let State { recorder, schedule, wake_queue, .. } = &mut *state;
        if let Schedule::Slices { gate, is_batch } = schedule
            && gate.resume(slice)
        {
            // `WorkerContext::set_scheduling` has warned if the system refuses the class.
            let _ = is_batch.then(machine::schedule_batch);
            recorder.set_marks(&slice.boundaries());
            wake_queue.wake_until(Nanos::MAX);
        }
    }

    /// Reports that the worker has paused after a slice, once.
    fn report_pause(&self, state: &mut State, now: Nanos) {
        if let Schedule::Slices { gate, is_batch } = &mut state.schedule
            && !state.recorder.is_over()
            && let Some(pause) = gate.take_pause(now, state.recorder.in_flight())
        {
            let _ = is_batch.then(machine::schedule_normal);
            self.coordinator.send(Message::Paused(pause, state.recorder.latencies_since_interval()));
        }
    }

    /// Begins an event of `user` now, unless the limit is reached. Returns its due time.
    #[inline]
    fn begin(&self, state: &mut State, user: UserId, now: Nanos) -> Option<Nanos> {
        if !self.admit_event(state, now) {
            return None;
        }
        state.recorder.start_event(user.local, now);
        Some(now)
    }

    /// Begins an event of `user` now, regardless of limits and rate, for scripts with their own event loop.
    pub fn begin_unscheduled(&self, user: UserId, now: Nanos) {
        self.current_state(now).recorder.start_event(user.local, now);
    }

    /// Begins an event of `user` that is on its connection since it was due or taken, unless the limit is reached. Returns the
    /// due time.
    #[inline]
    fn begin_due(&self, state: &mut State, user: UserId, due: Nanos, now: Nanos) -> Option<Nanos> {
        if !self.admit_event(state, now) {
            state.recorder.withdraw_event(user.local);
            return None;
        }
        Some(due)
    }

    /// Whether one more event may begin; always true in the warm-up.
    #[inline]
    fn admit_event(&self, state: &mut State, now: Nanos) -> bool {
        let finish = &self.coordinator.finish;
        if !finish.counts_events() || now < self.measured_from || finish.admit_event() {
            return true;
        }
        self.stop_admitting(state, now);
        if finish.set_event_limit_reached() {
            self.coordinator.send(Message::EventLimitReached);
        }
        false
    }

    /// Prevents new events from starting, and wakes every user that waits for one.
    #[cold]
    fn stop_admitting(&self, state: &mut State, now: Nanos) {
        if !state.is_closing {
            state.is_closing = true;
            if let Schedule::Open { queue, .. } = &state.schedule {
                queue.close(now);
            }
            state.wake_queue.wake_until(Nanos::MAX);
        }
    }

    /// Records that a user ended at `at`. A user calls this after it got `None` from [`Self::next_due`].
    pub fn end_user(&self, at: Nanos) {
        self.current_state(at).recorder.finish_user(at);
        if self.coordinator.finish.end_user(at) {
            self.recheck_end();
            self.coordinator.send(Message::AllUsersEnded);
        }
    }

    /// Makes the timekeeper check the shared end of the run again.
    pub(crate) fn recheck_end(&self) {
        self.state.borrow_mut().next_deadline = 0;
        self.earlier_deadline.notify_one();
    }

    /// Ends the run if a connection waits too long for an answer. Returns when to check again.
    fn check_answers(&self, now: Nanos) -> Nanos {
        if let Some(failure) = self.answer_waits.check(now) {
            self.coordinator.finish.skip_drain();
            self.fail_run(failure);
        }
        self.answer_waits.next_check()
    }

    /// Counts an event that succeeded.
    pub fn end_event(&self, user: UserId, event: Event) {
        self.current_state(event.end).recorder.complete_event(user.local, event);
    }

    /// Counts a statement that succeeded.
    #[inline]
    pub fn count_statement(&self, statement: Statement) {
        self.current_state(statement.end).recorder.complete_statement(statement);
    }

    pub(crate) fn count_other_statement(&self, now: Nanos) {
        self.current_state(now).recorder.count_other_statement(now);
    }

    /// Counts an attempt that failed.
    pub fn count_error(&self, now: Nanos, code: &str, class: ErrorClass) {
        self.current_state(now).recorder.count_error(now, code, class);
    }

    /// Counts the restart of an event after an error.
    pub fn count_retry(&self, now: Nanos) {
        self.current_state(now).recorder.count_retry(now);
    }

    /// Counts a reopened connection.
    pub fn count_reconnect(&self, now: Nanos) {
        self.current_state(now).recorder.count_reconnect(now);
    }

    /// Counts an event that failed and is not retried any more.
    pub fn abandon_event(&self, user: UserId, now: Nanos) {
        self.current_state(now).recorder.fail_event(user.local, now);
    }

    /// Whether the run is over.
    pub fn is_over(&self) -> bool {
        self.current_state(self.now()).recorder.is_over()
    }

    /// Ends the run.
    pub fn fail_run(&self, (reason, failure): RunFailure) {
        self.coordinator.send(Message::Failed(reason, failure));
    }

    /// Handles everything that is due now. Returns the next instant at which something is due, or `None` if the run is
    /// over. `planned` is the instant for which the caller had set its timer, if the timer woke the caller.
    pub fn handle_due(&self, planned: Option<Nanos>) -> Option<Nanos> {
        let now = self.now();
        if let Some(planned) = planned {
            let mut state = self.state.borrow_mut();
            // In an open loop, the lag of the events counts instead.
            if !matches!(state.schedule, Schedule::Open { .. }) {
                state.usage.record_lag(now.saturating_sub(planned));
            }
        }
        let state = self.current_state(now);
        (!state.recorder.is_over()).then_some(state.next_deadline)
    }

    /// Returns when something becomes due earlier than the instant that [`Self::handle_due`] returned.
    pub(crate) async fn earlier_deadline(&self) {
        self.earlier_deadline.notified().await;
    }

    /// Wakes every waiting user, so that it notices the end of the run.
    pub(crate) fn wake_all(&self) {
        self.run_over.notify_waiters();
        self.state.borrow_mut().wake_queue.wake_until(Nanos::MAX);
    }

    /// Returns the result of `work`, or `None` if the run ends first.
    pub async fn until_run_ends<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let over = self.run_over.notified();
        if self.current_state(self.now()).recorder.is_over() {
            return None;
        }
        tokio::select! {
            done = work => Some(done),
            () = over => None,
        }
    }

    /// As [`Self::until_run_ends`], but returns `None` also if the time limit passes first after which no event begins.
    pub async fn until_time_limit<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let limit = self.coordinator.finish.time_limit();
        if limit == Nanos::MAX {
            return self.until_run_ends(work).await;
        }
        let remaining = Duration::from_nanos(limit.checked_sub(self.now())?);
        self.until_run_ends(tokio::time::timeout(remaining, work)).await?.ok()
    }

    /// Whether the time limit has passed after which no event begins, or the run is over.
    pub fn is_time_over(&self) -> bool {
        self.now() >= self.coordinator.finish.time_limit() || self.is_over()
    }

    /// Records that `user`, which lost its connection at `since`, could not open a new one.
    pub fn note_lost(&self, user: UserId, since: Nanos, error: &WireError) {
        self.lost_connections.borrow_mut().add(user.local, since, error);
    }

    /// Records that `user` has opened a new connection.
    pub fn note_reopened(&self, user: UserId) {
        self.lost_connections.borrow_mut().remove(user.local);
    }

    /// Reports at the end of the run the connections of `users` that could not be opened again.
    pub fn report_lost_connections(&self, users: usize) {
        self.lost_connections.borrow().report(users, self.measured_from, &self.coordinator);
    }

    /// Reports the events that were in progress at the end of the run, and the totals of each user.
    pub(crate) fn report_end(&self) {
        let mut state = self.state.borrow_mut();
        let users = state.recorder.user_totals();
        self.coordinator.send(Message::Drained(Box::new(state.recorder.take_drained_events()), users));
    }

    /// The state after the wake-ups and the ends of intervals up to `now`.
    #[inline]
    fn current_state(&self, now: Nanos) -> std::cell::RefMut<'_, State> {
        let mut state = self.state.borrow_mut();
        if now >= state.next_deadline {
            self.catch_up(&mut state, now);
        }
        state
    }

    /// Handles the wake-ups and the ends of spans up to `now`.
    #[cold]
    fn catch_up(&self, state: &mut State, now: Nanos) {
        let stop_at = self.apply_shared_end(state, now);
        let finish = &self.coordinator.finish;
        let limit = finish.time_limit();
        let queue_deadline = self.handle_arrivals(state, now, stop_at);
        if now >= limit || finish.is_event_limit_reached() {
            self.stop_admitting(state, now);
        }
        state.wake_queue.wake_until(now);
        state.recorder.close_spans_until(now);
        for (boundary, spans) in state.recorder.take_closed_spans() {
            let usage = spans.interval.is_some().then(|| state.usage.take(now));
            self.coordinator.send(Message::SpansClosed { boundary, spans: Box::new(spans), usage });
        }
        self.report_pause(state, now); // A worker without users has none that could report it.
        let bound = state.recorder.next_span_end().unwrap_or(Nanos::MAX);
        let limit = if state.is_closing { Nanos::MAX } else { limit };
        let deadlines = [bound, limit, state.wake_queue.first_instant(), self.check_answers(now)];
        state.next_deadline = deadlines.into_iter().fold(queue_deadline, Nanos::min);
    }

    /// Passes the end of the run, which any worker may have set, to the recorder, so that it closes no span after the end.
    /// Returns the end; `Nanos::MAX` until it is known.
    fn apply_shared_end(&self, state: &mut State, now: Nanos) -> Nanos {
        let closes = state.recorder.next_span_end().is_some_and(|bound| bound <= now);
        let finish = &self.coordinator.finish;
        let stop_at = if closes { finish.announce_closing(now) } else { finish.stop_at() };
        if stop_at != Nanos::MAX {
            state.recorder.stop_at(stop_at);
        }
        stop_at
    }

    /// At a rate, puts the events that users wait for on their connections when they are due, and closes the spans of the queue.
    /// Returns when to look at the queue again.
    fn handle_arrivals(&self, state: &mut State, now: Nanos, stop_at: Nanos) -> Nanos {
        let State { recorder, schedule, wake_queue, .. } = state;
        let Schedule::Open { queue, overflow } = schedule else {
            return Nanos::MAX;
        };
        // Before an event that is due closes the span.
        let closes = recorder.next_span_end().is_none_or(|bound| bound <= now);
        let (limit, has_limit) = (self.coordinator.finish.time_limit(), queue.has_limit());
        while let Some((due, user)) = wake_queue.wake_first(now.min(limit - 1)) {
            recorder.start_due_event(user, due, due);
        }
        if !closes && !has_limit {
            return Nanos::MAX;
        }
        let QueueProgress { closed, overflow: length } = queue.advance(now, stop_at);
        for (boundary, spans) in closed {
            self.coordinator.send(Message::SpansClosed { boundary, spans: Box::new(spans), usage: None });
        }
        if let Some(length) = length
            && *overflow == QueueOverflow::Abort
        {
            self.fail_run(failure::queue_overflow(length));
            self.stop_admitting(state, now);
        }
        if has_limit { now.saturating_add(QUEUE_CHECK_PAUSE) } else { Nanos::MAX }
    }
}
