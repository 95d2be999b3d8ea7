//! Counters and latency histograms.
//!
//! A [`Recorder`] belongs to one worker thread and is never shared, so the hot path takes no lock. The caller passes the
//! time with every call, and the recorder closes a span by that time, not by a timer: an event that ends at `t` is always
//! counted in the interval that contains `t`, however late the thread wakes up.
//!
//! # Layout
//! - [`Recorder`]: the counters of one worker.
//! - [`spans`]: closed spans, merged over workers; [`phases`]: their records and totals.
//! - [`ExtraCounts`]: additional counters for programs that embed the engine.
//! - [`Outstanding`]: events that are due and have not ended.
//! - [`histogram`]: recording, taking, merging; [`mod@percentiles`]: percentiles with censored values.

pub mod histogram;
pub mod percentiles;
pub mod phases;
pub mod spans;

mod completed;
mod extras;
mod outstanding;
mod recorder;

pub use completed::{Event, Statement};
pub use extras::ExtraCounts;
pub use outstanding::Outstanding;
pub use percentiles::percentiles;
pub use recorder::Recorder;
pub use spans::ClosedSpans;
