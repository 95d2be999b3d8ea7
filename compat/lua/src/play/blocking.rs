//! Who holds a thread for too long.
//!
//! A script that sleeps, computes or waits inside one call of Lua keeps everybody else on its thread waiting, and their
//! latencies are its doing, not the server's. The wall clock alone cannot tell: a thread that shares its CPU is also
//! put aside. So long calls are added up for a second, and told only where the time that the thread has waited for a CPU
//! in that second does not explain them.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use dbdyno_schema::record::Warning;

use dbdyno_runner::external::Desk;
use dbdyno_runner::external::{thread_cpu, thread_run_queue_wait};

/// Code of the warning that a script held its thread.
pub const SCRIPT_BLOCKS: &str = "script-blocks";

/// A call of Lua longer than this keeps the others waiting.
const LONG: Duration = Duration::from_millis(5);
/// One of this length is no matter of CPUs.
const SURE: Duration = Duration::from_millis(100);

/// Between two looks at whether an event is due, for a script that cannot be left.
const PAUSE: Duration = Duration::from_micros(100);

/// How long calls are added up.
const WINDOW: Duration = Duration::from_secs(1);

/// Told of a script that holds its thread.
pub(super) type Teller = Box<dyn Fn(Warning)>;

/// Watches the calls on one thread.
pub(super) struct Watch {
    tell: Option<Teller>,
    /// Whether a call that computes is none of its matter.
    idle_alone: bool,
    /// Nothing is watched any more, or there is nobody to tell.
    told: Cell<bool>,
    window: Cell<Window>,
}

#[derive(Clone, Copy)]
struct Window {
    start: Instant,
    /// Time by then that explains long calls.
    explained: Duration,
    /// Time spent in long calls since.
    long: Duration,
    longest: Duration,
}

impl Window {
    fn starting(start: Instant, explained: Duration) -> Self {
        Self { start, explained, long: Duration::ZERO, longest: Duration::ZERO }
    }
}

impl Watch {
    /// For a thread with more than one user; otherwise there is nobody to keep waiting.
    pub(super) fn new(tell: Teller, users: usize) -> Self {
        Self::telling(Some(tell), users, false)
    }

    /// The same for a command that has no events, and makes rows on every CPU: who computes there keeps nobody waiting who
    /// would not wait for the CPU anyway.
    pub(super) fn of_command(tell: Teller, users: usize) -> Self {
        Self::telling(Some(tell), users, true)
    }

    /// For one state alone.
    pub(super) fn nobody() -> Self {
        Self::telling(None, 1, false)
    }

    fn telling(tell: Option<Teller>, users: usize, idle_alone: bool) -> Self {
        let told = Cell::new(users < 2 || tell.is_none());
        let window = Cell::new(Window::starting(Instant::now(), explained(idle_alone)));
        Self { tell, idle_alone, told, window }
    }

    /// Runs `call`, which goes into Lua.
    #[inline]
    pub(super) fn over<T>(&self, call: impl FnOnce() -> T) -> T {
        if self.told.get() {
            return call();
        }
        let before = Instant::now();
        let done = call();
        let after = Instant::now();
        if after - before > LONG {
            self.long(after, after - before);
        } else if after.saturating_duration_since(self.window.get().start) > WINDOW {
            self.look(after);
        }
        done
    }

    #[cold]
    fn long(&self, now: Instant, took: Duration) {
        let mut window = self.window.get();
        window.long += took;
        window.longest = window.longest.max(took);
        self.window.set(window);
        if took > SURE || now - window.start > WINDOW {
            self.look(now);
        }
    }

    /// Tells of the long calls since the last look, unless waiting for a CPU explains them.
    #[cold]
    pub(super) fn look(&self, now: Instant) {
        let Window { explained: before, long, longest, .. } = self.window.get();
        let next = Window::starting(now, explained(self.idle_alone));
        self.window.set(next);
        let unexplained = long.saturating_sub(next.explained.saturating_sub(before));
        if unexplained <= LONG || self.told.replace(true) {
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
        if let Some(tell) = &self.tell {
            tell(warning);
        }
    }
}

/// Time for which a call was long without being held: the thread waited for a CPU, or, where that is no fault, had one.
fn explained(idle_alone: bool) -> Duration {
    let computed = if idle_alone { thread_cpu() } else { Duration::ZERO };
    thread_run_queue_wait() + computed
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
