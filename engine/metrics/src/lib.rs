//! How much: counters and latency histograms of one worker.
//!
//! A [`Recorder`] belongs to one worker thread and is never shared, so the hot path takes no lock. It is handed the
//! time with every call and closes a span by that time, not by a timer: an event that ends at `t` is always
//! counted in the interval that holds `t`, however late the thread wakes up.
//!
//! # Layout
//! - [`Recorder`]: what a worker counts into.
//! - [`closed`]: the spans it hands over, and how those of several workers are added up; [`phases`]: and told.
//! - [`ExtraCounts`]: what is counted beside the usual, where a program that embeds the engine asks for it.
//! - [`Outstanding`]: events that are due and have not ended.
//! - [`histogram`]: recording, taking, merging; [`mod@percentiles`]: what can be said of values that are cut off.

pub mod closed;
pub mod histogram;
pub mod percentiles;
pub mod phases;

mod ended;
mod extras;
mod recorder;
mod outstanding;

pub use closed::ClosedSpans;
pub use ended::{Event, Statement};
pub use extras::ExtraCounts;
pub use recorder::Recorder;
pub use outstanding::Outstanding;
pub use percentiles::percentiles;
