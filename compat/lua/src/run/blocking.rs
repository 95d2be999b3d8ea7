//! Detects a script that blocks its thread.
//!
//! A script that sleeps, computes or waits inside one Lua call makes all other users of its thread wait, and inflates
//! their latencies. A long call alone does not prove this, because the thread may have waited for a CPU. The monitor
//! therefore sums the long calls of each second, and warns if the sum exceeds the time that the thread waited for a CPU
//! in that second.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use dbdyno_schema::record::Warning;

use dbdyno_runner::external::{WorkerState, thread_cpu, thread_run_queue_wait};

/// Code of the warning that a script blocked its thread.
pub const SCRIPT_BLOCKS: &str = "script-blocks";

/// A Lua call counts as long if it takes longer than this.
const LONG_CALL: Duration = Duration::from_millis(5);
/// After a call longer than this, the monitor checks immediately instead of at the end of the window.
const VERY_LONG_CALL: Duration = Duration::from_millis(100);

/// Pause between two polls in [`block_until_ready`].
const POLL_PAUSE: Duration = Duration::from_micros(100);

/// The monitor sums long calls over windows of this length.
const WINDOW: Duration = Duration::from_secs(1);

/// Measures the Lua calls of one thread.
pub(super) struct BlockingMonitor {
    warn: Option<Box<dyn Fn(Warning)>>,
    /// Whether CPU time is excused, that is, does not count as blocking.
    allow_cpu: bool,
    /// Whether the monitor has warned already or never needs to.
    is_done: Cell<bool>,
    window: Cell<Window>,
}

/// The long calls of the current window.
#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    /// Value of [`excused_time`] at the start of the window.
    excused: Duration,
    /// Time spent in long calls since the start of the window.
    long: Duration,
    longest: Duration,
}

impl Window {
    fn new(start: Instant, excused: Duration) -> Self {
        Self { start, excused, long: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl BlockingMonitor {
    /// `users` is the number of users of the thread: a single user has no other user to block. Commands set `allow_cpu`,
    /// because they compute rows on all CPUs, so their users would wait for a CPU anyway.
    pub(super) fn new(warn: Option<Box<dyn Fn(Warning)>>, users: usize, allow_cpu: bool) -> Self {
        let is_done = Cell::new(users < 2 || warn.is_none());
        let window = Cell::new(Window::new(Instant::now(), excused_time(allow_cpu)));
        Self { warn, allow_cpu, is_done, window }
    }

    /// Runs and times a Lua call.
    #[inline]
    pub(super) fn time<T>(&self, call: impl FnOnce() -> T) -> T {
        if self.is_done.get() {
            return call();
        }
        let before = Instant::now();
        let result = call();
        let after = Instant::now();
        if after - before > LONG_CALL {
            self.add_long_call(after, after - before);
        } else if after.saturating_duration_since(self.window.get().start) > WINDOW {
            self.check(after);
        }
        result
    }

    #[cold]
    fn add_long_call(&self, now: Instant, duration: Duration) {
        let mut window = self.window.get();
        window.long += duration;
        window.longest = window.longest.max(duration);
        self.window.set(window);
        if duration > VERY_LONG_CALL || now - window.start > WINDOW {
            self.check(now);
        }
    }

    /// Warns about the long calls of the current window, unless waits for a CPU explain them.
    #[cold]
    pub(super) fn check(&self, now: Instant) {
        let Window { excused: excused_before, long, longest, .. } = self.window.get();
        let next = Window::new(now, excused_time(self.allow_cpu));
        self.window.set(next);
        let blocked = long.saturating_sub(next.excused.saturating_sub(excused_before));
        if blocked <= LONG_CALL || self.is_done.replace(true) {
            return;
        }
        let longest_ms = longest.min(blocked).as_secs_f64() * 1e3;
        let warning = Warning {
            code: SCRIPT_BLOCKS.into(),
            text: format!(
                "the script blocked its thread for {longest_ms:.0} ms in one call, while the other users of the thread waited"
            ),
            fix: "give every user its own thread (--lua-threads), or move sleeping and computing out of the event"
                .into(),
        };
        if let Some(warn) = &self.warn {
            warn(warning);
        }
    }
}

/// The time that does not count as blocking: waits for a CPU and, with `allow_cpu`, CPU time.
fn excused_time(allow_cpu: bool) -> Duration {
    let computed = if allow_cpu { thread_cpu() } else { Duration::ZERO };
    thread_run_queue_wait() + computed
}

/// Blocks the thread until `future` is ready, for a script that cannot yield. No other task of the thread runs meanwhile,
/// so this function also handles arrivals and the ends of intervals.
pub(super) fn block_until_ready<T>(worker: &WorkerState, future: impl Future<Output = T>) -> T {
    let mut future = pin!(tokio::task::unconstrained(future));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        std::thread::sleep(POLL_PAUSE);
        worker.handle_due(None);
    }
}
