//! A run of any test: threads, phases, intervals, rate and limits.
//!
//! ```text
//!  Control ──▶ Inbox ◀──messages── thread 0: Runner, Meter
//!                │                 thread 1: Runner, Meter
//!            conductor ──closes every Meter when an interval ends──┘
//!                │
//!                ▼
//!             Records, IntervalWork
//! ```
//! A thread locks its meter once an event, and the conductor when a span ends: a thread with a long event delays no interval.
//!
//! # Layout
//! - [`RunSpec`], [`run()`], `conductor`: from the start to the last record.
//! - `thread`: plays events. `meter`: counts them. `queue`: arrivals at a rate.
//! - `records`: merges the threads' spans. [`IntervalWork`]: the work that the records do not distinguish.

mod conductor;
mod control;
mod interval_work;
mod meter;
mod queue;
mod records;
mod thread;

pub use conductor::run;
pub use control::{Control, Inbox, channel};
pub use interval_work::IntervalWork;

use dbdyno_load::Nanos;
use dbdyno_metrics::ExtraCounts;
use dbdyno_schema::plan::{Phases, Report};
use rustix::time::{ClockId, clock_gettime};

#[derive(Clone, Debug)]
pub struct RunSpec {
    pub threads: u32,
    /// The last events are counted: a run ends when every thread has ended.
    pub phases: Phases,
    pub report: Report,
    pub extra_counts: ExtraCounts,
    /// Events per second at exponential gaps; 0 for no limit.
    pub rate_per_s: f64,
    /// Events that may wait for a thread; one more ends the run.
    pub queue_limit: usize,
    pub seed: u64,
}

/// Time since the start of the run. Read twice an event, so it does not convert through `Instant`.
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
