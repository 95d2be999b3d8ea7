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
//! When an interval or a phase ends, the conductor closes a span: it takes the counts of every meter. A thread locks
//! its meter only when an event ends, so a long event does not delay an interval.
//!
//! # Layout
//! - [`RunSpec`], [`run()`], `conductor`: start the threads and write the records.
//! - `thread`: runs events. `meter`: counts them. `queue`: arrivals at a rate.
//! - `records`: merges the threads' spans. [`IntervalWork`]: read and written bytes, which records do not distinguish.

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
    /// A run ends when every thread has ended, so events that are unfinished at the time limit still count.
    pub phases: Phases,
    pub report: Report,
    pub extra_counts: ExtraCounts,
    /// Arrivals per second with exponentially distributed gaps (open loop); 0 for a closed loop.
    pub rate_per_s: f64,
    /// Maximum number of events that may wait for a thread; one more ends the run.
    pub queue_limit: usize,
    pub seed: u64,
}

/// Time since the start of the run. Threads read it twice per event, so it avoids the conversions of `Instant`.
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
