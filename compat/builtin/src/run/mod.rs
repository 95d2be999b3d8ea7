//! A run: threads, phases, intervals, rate and limits; the same for all tests.
//!
//! ```text
//!  Control ──▶ Inbox ◀──messages── thread 0: Runner, Meter
//!                │                 thread 1: Runner, Meter
//!            conductor ──looks at every Meter when an interval ends──┘
//!                │
//!                ▼
//!             Records, and the Ledger beside them
//! ```
//! A meter is locked by its own thread once an event, and by the conductor when a span ends: a thread that is long at
//! an event keeps nobody's interval open.
//!
//! # Layout
//! - [`Order`], [`run()`], `conductor`: from the start to the last record.
//! - `thread`: what a thread does. `meter`: what is counted of it. `queue`: events that are due by a rate.
//! - `records`: spans of all threads as records. [`Ledger`]: what the records have no word for.

mod conductor;
mod control;
mod ledger;
mod meter;
mod queue;
mod records;
mod thread;

pub use conductor::{Stopped, run};
pub use control::{Control, Inbox, channel};
pub use ledger::Ledger;

use dbdyno_load::Nanos;
use dbdyno_metrics::ExtraCounts;
use dbdyno_schema::plan::{Phases, Report};
use rustix::time::{ClockId, clock_gettime};

/// What a run is asked to do.
#[derive(Clone, Debug)]
pub struct Order {
    /// Threads.
    pub threads: u32,
    /// For how long, and for how many events. The last events are counted: a run ends when every thread has ended.
    pub phases: Phases,
    /// When intervals end.
    pub report: Report,
    /// What is counted of every event beside the usual.
    pub extra_counts: ExtraCounts,
    /// Mean events per second, due at exponential gaps; 0 for as many as the threads can do.
    pub rate_per_s: f64,
    /// Events that may be due and wait for a thread; with one more the run is over.
    pub queue_limit: usize,
    /// Seeds everything that is drawn.
    pub seed: u64,
}

/// Time since the start of the run, the same for all threads. Read twice an event, so it is the kernel's bare numbers.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Nanos,
}

impl Clock {
    fn starting_now() -> Self {
        Self { start: monotonic() }
    }

    #[inline]
    fn now(self) -> Nanos {
        monotonic() - self.start
    }
}

#[inline]
fn monotonic() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as Nanos * 1_000_000_000 + time.tv_nsec as Nanos
}
