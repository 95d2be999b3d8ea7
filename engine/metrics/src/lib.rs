//! Counters and latency histograms.
//!
//! A [`Recorder`] belongs to one worker thread and is never shared, so the hot path needs no lock. It counts by spans:
//! ticks, intervals, windows of statement statistics and phases. The caller passes the time with every call, and this
//! time closes spans, not a timer: an event that ends at `t` always counts in the interval that contains `t`, even if the
//! thread wakes up late.
//!
//! # Layout
//! - [`Recorder`]: the counters of one worker.
//! - [`spans`]: closed spans, merged over workers; [`phases`]: their records and totals.
//! - [`fleet`]: the records of several engines, merged.
//! - `gaps`: spans of time without a completed event.
//! - [`ExtraCounts`]: additional counters for programs that embed the engine.
//! - [`OutstandingEvents`]: events that are due and have not ended.
//! - [`histogram`]: latency histograms; [`mod@percentiles`]: percentiles with censored values.

pub mod fleet;
pub mod histogram;
pub mod percentiles;
pub mod phases;
pub mod spans;

mod completed;
mod extras;
mod gaps;
mod outstanding;
mod recorder;

pub use completed::{Event, Statement};
pub use extras::ExtraCounts;
pub use outstanding::OutstandingEvents;
pub use percentiles::percentiles;
pub use recorder::Recorder;
pub use spans::ClosedSpans;
