//! Who holds a thread for too long.
//!
//! A script that sleeps, computes or waits inside one call of Lua keeps everybody else on its thread waiting, and their
//! latencies are its doing, not the server's. The wall clock alone cannot tell: a thread that shares its CPU is also
//! put aside. So the first long call only raises suspicion; from then on the time that a call spent waiting for a CPU is
//! taken off, and the first that is long then is told.

use std::cell::Cell;
use std::pin::pin;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use dbdyno_door::record::Warning;

use crate::control::Message;
use crate::desk::Desk;
use crate::machine;

/// A call of Lua longer than this keeps the others waiting.
const LONG: Duration = Duration::from_millis(5);
/// One of this length is no matter of CPUs.
const SURE: Duration = Duration::from_millis(100);

/// Between two looks at whether an event is due, for a script that cannot be left.
const PAUSE: Duration = Duration::from_micros(100);

/// Watches the calls on one thread.
pub(super) struct Watch {
    messages: Option<Sender<Message>>,
    /// Waiting time for a CPU before the call, once there is suspicion.
    suspicious: Cell<bool>,
    told: Cell<bool>,
}

impl Watch {
    /// For a thread with more than one user; otherwise there is nobody to keep waiting.
    pub(super) fn new(messages: Option<Sender<Message>>, users: usize) -> Self {
        let nothing_to_tell = users < 2 || messages.is_none();
        Self { messages, suspicious: Cell::new(false), told: Cell::new(nothing_to_tell) }
    }

    /// Runs `call`, which goes into Lua.
    #[inline]
    pub(super) fn over<T>(&self, call: impl FnOnce() -> T) -> T {
        if self.told.get() {
            return call();
        }
        let waited = self.suspicious.get().then(machine::thread_run_queue_wait);
        let before = Instant::now();
        let done = call();
        let took = before.elapsed();
        if took > LONG {
            self.long(took, waited);
        }
        done
    }

    #[cold]
    fn long(&self, took: Duration, waited: Option<Duration>) {
        let held = waited.map(|before| took.saturating_sub(machine::thread_run_queue_wait() - before));
        let is_sure = took > SURE || held.is_some_and(|held| held > LONG);
        self.suspicious.set(true);
        if !is_sure {
            return;
        }
        self.told.set(true);
        let took_ms = held.unwrap_or(took).as_secs_f64() * 1e3;
        let warning = Warning {
            code: "script-blocks".into(),
            text: format!(
                "the script held its thread for {took_ms:.0} ms in one call, while every other user of the thread waited"
            ),
            hint: "give every user a thread of its own (--lua-threads), or take sleeping and computing out of the event"
                .into(),
        };
        if let Some(messages) = &self.messages {
            // Without a conductor nobody is told.
            let _ = messages.send(Message::Warning(warning));
        }
    }
}

/// Waits for an event of `desk` on a thread that a script holds.
pub(super) fn wait_for<T>(desk: &Desk, due: impl Future<Output = T>) -> T {
    let mut due = pin!(tokio::task::unconstrained(due));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = due.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::sleep(PAUSE);
        desk.keep_time(None);
    }
}
