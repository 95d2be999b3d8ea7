//! Detects a script that blocks its thread.
//!
//! A script that sleeps, computes or waits inside one call of Lua makes all other users of its thread wait, and their latencies
//! are its fault, not the server's. The wall clock alone does not show that: a thread that shares its CPU also waits for it.
//! So the monitor adds long calls up for a second, and warns only where the thread's wait for a CPU in that second does not
//! explain them.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use dbdyno_schema::record::Warning;

use dbdyno_runner::external::{WorkerState, thread_cpu, thread_run_queue_wait};

/// Code of the warning that a script held its thread.
pub const SCRIPT_BLOCKS: &str = "script-blocks";

/// A call of Lua longer than this makes the others wait.
const LONG: Duration = Duration::from_millis(5);
/// A wait for a CPU does not explain a call of this length.
const SURE: Duration = Duration::from_millis(100);

/// Between two polls for the next event, for a script that cannot yield.
const PAUSE: Duration = Duration::from_micros(100);

/// Time for which long calls are added up.
const WINDOW: Duration = Duration::from_secs(1);

/// Times the calls on one thread.
pub(super) struct BlockingMonitor {
    warn: Option<Box<dyn Fn(Warning)>>,
    /// Whether calls that compute are no fault.
    allow_cpu: bool,
    /// Whether the monitor has warned, or would warn nobody.
    done: Cell<bool>,
    window: Cell<Window>,
}

#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    /// Value of [`explained`] at the start.
    explained: Duration,
    /// Time in long calls since.
    long: Duration,
    longest: Duration,
}

impl Window {
    fn new(start: Instant, explained: Duration) -> Self {
        Self { start, explained, long: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl BlockingMonitor {
    /// For a thread with so many users; a single one blocks nobody. A command has no events and computes rows on every CPU, so
    /// it sets `allow_cpu`: its users would wait for the CPU anyway.
    pub(super) fn new(warn: Option<Box<dyn Fn(Warning)>>, users: usize, allow_cpu: bool) -> Self {
        let done = Cell::new(users < 2 || warn.is_none());
        let window = Cell::new(Window::new(Instant::now(), explained(allow_cpu)));
        Self { warn, allow_cpu, done, window }
    }

    /// Runs and times `call`, a call of Lua.
    #[inline]
    pub(super) fn time<T>(&self, call: impl FnOnce() -> T) -> T {
        if self.done.get() {
            return call();
        }
        let before = Instant::now();
        let result = call();
        let after = Instant::now();
        if after - before > LONG {
            self.add(after, after - before);
        } else if after.saturating_duration_since(self.window.get().start) > WINDOW {
            self.check(after);
        }
        result
    }

    #[cold]
    fn add(&self, now: Instant, took: Duration) {
        let mut window = self.window.get();
        window.long += took;
        window.longest = window.longest.max(took);
        self.window.set(window);
        if took > SURE || now - window.start > WINDOW {
            self.check(now);
        }
    }

    /// Warns of the long calls of the current window, unless a wait for a CPU explains them.
    #[cold]
    pub(super) fn check(&self, now: Instant) {
        let Window { explained: before, long, longest, .. } = self.window.get();
        let next = Window::new(now, explained(self.allow_cpu));
        self.window.set(next);
        let unexplained = long.saturating_sub(next.explained.saturating_sub(before));
        if unexplained <= LONG || self.done.replace(true) {
            return;
        }
        let longest_ms = longest.min(unexplained).as_secs_f64() * 1e3;
        let warning = Warning {
            code: SCRIPT_BLOCKS.into(),
            text: format!(
                "the script held its thread for {longest_ms:.0} ms in one call, while every other user of the thread \
                 waited"
            ),
            hint: "give every user a thread of its own (--lua-threads), or take sleeping and computing out of the event"
                .into(),
        };
        if let Some(warn) = &self.warn {
            warn(warning);
        }
    }
}

/// Time for which a thread may be in a call without a fault: it waited for a CPU, or with `allow_cpu` had one.
fn explained(allow_cpu: bool) -> Duration {
    let computed = if allow_cpu { thread_cpu() } else { Duration::ZERO };
    thread_run_queue_wait() + computed
}

/// Waits for an event of `worker` on a thread that a script blocks.
pub(super) fn wait_for<T>(worker: &WorkerState, due: impl Future<Output = T>) -> T {
    let mut due = pin!(tokio::task::unconstrained(due));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = due.as_mut().poll(&mut context) {
            return result;
        }
        std::thread::sleep(PAUSE);
        worker.keep_time(None);
    }
}
