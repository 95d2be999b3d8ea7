//! Runs a test: starts its threads, applies phases, intervals, rate and limits, and writes the records.
//!
//! ```text
//!  Control ──▶ Inbox ◀──messages── thread 0: Runner, Meter
//!                │                 thread 1: Runner, Meter
//!           coordinator ──closes every Meter when an interval ends──┘
//!                │
//!                ▼
//!             records, IntervalIoCounts
//! ```
//! A span is an interval, or the part of an interval that lies in one phase. When a span ends, the coordinator takes the
//! counts of every meter. A thread locks its meter only when an event ends, so a long event does not delay an interval.
//!
//! # Layout
//! - [`RunSpec`], [`run()`], `coordinator`: start the threads and write the records.
//! - `thread`: executes events. `meter`: counts them. `arrival_queue`: events that arrive at a rate.
//! - `record_builder`: merges the spans of all threads into records. [`IntervalIoCounts`]: reads, writes and their bytes
//!   for each interval.

mod arrival_queue;
mod control;
mod coordinator;
mod interval_io_counts;
mod meter;
mod record_builder;
mod thread;

pub use control::{Control, Inbox, channel};
pub use coordinator::run;
pub use interval_io_counts::IntervalIoCounts;

use dbdyno_load::Nanos;
use dbdyno_metrics::ExtraCounts;
use dbdyno_schema::plan::{Phases, Report};
use rustix::time::{ClockId, clock_gettime};

#[derive(Clone, Debug)]
pub struct RunSpec {
    pub threads: u32,
    /// The run ends when every thread has ended, so events that are in progress at the time limit still count.
    pub phases: Phases,
    pub report: Report,
    pub extra_counts: ExtraCounts,
    /// Arrivals per second with exponentially distributed gaps (open loop); 0 for a closed loop.
    pub rate_per_s: f64,
    /// Maximum number of events that wait for a thread. If more events wait, the run ends.
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
