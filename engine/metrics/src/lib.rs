//! How much: counters and latency histograms of one worker.
//!
//! A [`Recorder`] belongs to one worker thread and is never shared, so the hot path takes no lock. The caller passes the
//! time with every call, and the recorder closes a span by that time, not by a timer: an event that ends at `t` is always
//! counted in the interval that holds `t`, however late the thread wakes up.
//!
//! # Layout
//! - [`Recorder`]: what a worker counts into.
//! - [`spans`]: closed spans, and how those of several workers are added up; [`phases`]: their records and totals.
//! - [`ExtraCounts`]: what the recorder counts only where a program that embeds the engine asks for it.
//! - [`Outstanding`]: events that are due and have not ended.
//! - [`histogram`]: recording, taking, merging; [`mod@percentiles`]: what is certain about values that are cut off.

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
