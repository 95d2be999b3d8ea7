//! When the next event of a user is due.

use std::future::poll_fn;
use std::task::{Context, Poll};

use dbdyno_load::Nanos;
use dbdyno_load::pauses::TransactionPauses;

use super::{State, UserId, WorkerState};
use crate::arrival_queue::TakenEvent;
use crate::schedule::Schedule;

/// What ends the pause of a user between two events.
enum PauseEnd {
    At(Nanos),
    Slice,
    Arrival(Nanos),
}

impl WorkerState {
    /// Waits until the next event of `user` is due, and begins it. `free_since` is the end of the user's last event.
    /// Returns the due time, or `None` if no further event may begin; then the user must call [`Self::end_user`].
    pub async fn next_due(&self, user: UserId, free_since: Option<Nanos>) -> Option<Nanos> {
        self.next_due_after(user, free_since, TransactionPauses::default()).await
    }

    /// As [`Self::next_due`], with the pauses of the user's transactions.
    pub(crate) async fn next_due_after(
        &self,
        user: UserId,
        free_since: Option<Nanos>,
        own: TransactionPauses,
    ) -> Option<Nanos> {
        let now = free_since.unwrap_or_else(|| self.now());
        let pause_end = {
            let mut state = self.current_state(now);
            let State { recorder, schedule, is_closing, .. } = &mut *state;
            if recorder.is_over() || *is_closing {
                return None;
            }
            match schedule {
                Schedule::Closed => return self.begin(&mut state, user, now),
                Schedule::Open { queue, .. } => match queue.take(now, free_since.is_none())? {
                    taken if taken.due <= taken.at => return self.begin_taken(&mut state, user, taken),
                    taken => PauseEnd::Arrival(taken.due),
                },
                Schedule::Slices { gate, .. } if free_since.is_some() && gate.is_open(now) => {
                    return self.begin(&mut state, user, now);
                }
                Schedule::Slices { .. } => PauseEnd::Slice,
                Schedule::Paced(pauses, _) => PauseEnd::At(match free_since {
                    Some(now) => pauses.next_start(user.global, now, own),
                    None => pauses.first_start(user.global, own),
                }),
            }
        };
        match pause_end {
            PauseEnd::At(at) => self.wait_until(user, at).await,
            PauseEnd::Slice => self.wait_for_slice(user).await,
            PauseEnd::Arrival(due) => self.wait_for_arrival(user, due).await,
        }
    }

    /// Begins an event that has waited in the queue.
    fn begin_taken(&self, state: &mut State, user: UserId, taken: TakenEvent) -> Option<Nanos> {
        let TakenEvent { due, at } = taken;
        if at >= state.next_deadline {
            self.catch_up(state, at);
        }
        state.recorder.start_due_event(user.local, due, at);
        self.begin_due(state, user, due, at)
    }

    /// Waits until the event is due that `user` has taken from the queue, and begins it.
    async fn wait_for_arrival(&self, user: UserId, due: Nanos) -> Option<Nanos> {
        let mut is_new = true;
        poll_fn(|context| {
            let is_first_poll = std::mem::take(&mut is_new);
            if is_first_poll {
                // Before the time is read, so that `catch_up` counts the event as due whenever the clock has passed it.
                self.wake_at(&mut self.state.borrow_mut(), user, due, context);
            }
            let now = self.now();
            let mut state = self.current_state(now);
            if state.recorder.is_over() || state.is_closing {
                if self.coordinator.finish.is_event_limit_reached() {
                    state.recorder.withdraw_event(user.local);
                }
                return Poll::Ready(None);
            }
            if now >= due {
                state.usage.record_lag(now - due);
                return Poll::Ready(self.begin_due(&mut state, user, due, now));
            }
            if !is_first_poll {
                self.wake_at(&mut state, user, due, context);
            }
            Poll::Pending
        })
        .await
    }

    /// Waits until `at`, or longer if the rate has a limit, and begins an event that is due at that time, so that the pause
    /// is not part of its latency.
    async fn wait_until(&self, user: UserId, mut at: Nanos) -> Option<Nanos> {
        let mut has_place = false;
        poll_fn(|context| {
            let now = self.now();
            let mut state = self.current_state(now);
            if state.recorder.is_over() || state.is_closing {
                return Poll::Ready(None);
            }
            if let Schedule::Paced(_, Some(limit)) = &mut state.schedule
                && now >= at
            {
                // Only now, because pauses do not end in the order in which they begin.
                at = if has_place { limit.keep_or_move(at, now) } else { limit.start_after(now) };
                has_place = true;
                state.recorder.add_rate_limit_wait(at.saturating_sub(now));
            }
            if now >= at {
                return Poll::Ready(self.begin(&mut state, user, now));
            }
            self.wake_at(&mut state, user, at, context);
            Poll::Pending
        })
        .await
    }

    /// Waits until an event may restart after an error: a restart counts towards the limit of the rate like another event.
    /// Its wait is part of the latency. Returns the time, which is `ready` without a limit, or `None` if the run is over:
    /// nothing may be sent then, because the waits are.
    pub async fn next_restart(&self, user: UserId, ready: Nanos) -> Option<Nanos> {
        let mut place = None;
        poll_fn(|context| {
            let now = self.now();
            let mut state = self.current_state(now);
            let is_over = state.recorder.is_over();
            let Schedule::Paced(_, Some(limit)) = &mut state.schedule else {
                return Poll::Ready(Some(ready));
            };
            if is_over {
                return Poll::Ready(None);
            }
            let at = match place {
                None => limit.start_after(now),
                Some(at) if now >= at => limit.keep_or_move(at, now),
                Some(at) => at,
            };
            if place.replace(at) != Some(at) {
                state.recorder.add_rate_limit_wait(at.saturating_sub(now));
            }
            if now >= at {
                return Poll::Ready(Some(now));
            }
            self.wake_at(&mut state, user, at, context);
            Poll::Pending
        })
        .await
    }

    fn wake_at(&self, state: &mut State, user: UserId, at: Nanos, context: &Context<'_>) {
        state.wake_queue.add(at, user.local, context.waker().clone());
        if at < state.next_deadline {
            state.next_deadline = at;
            self.earlier_deadline.notify_one();
        }
    }

    /// Waits for a slice and begins an event in it.
    async fn wait_for_slice(&self, user: UserId) -> Option<Nanos> {
        poll_fn(|context| {
            let now = self.now();
            let mut state = self.current_state(now);
            if state.recorder.is_over() || state.is_closing {
                return Poll::Ready(None);
            }
            if let Schedule::Slices { gate, .. } = &mut state.schedule
                && gate.is_open(now)
            {
                gate.note_begin(now);
                return Poll::Ready(self.begin(&mut state, user, now));
            }
            self.report_pause(&mut state, now);
            // `resume` wakes this user, no instant does.
            state.wake_queue.add(Nanos::MAX, user.local, context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
