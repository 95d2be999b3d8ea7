//! What is printed of a run, made from its records alone.
//!
//! - [`tally`]: figures of a stretch of a run. [`text`]: sysbench's text. [`cumulative`]: its full report.
//! - [`loading`]: the lines of prepare, prewarm and cleanup. [`failure`]: how a failure reads.

pub mod cumulative;
pub mod failure;
pub mod loading;
pub mod tally;
pub mod text;

pub use text::Text;

/// What to print after a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// For standard output.
    pub out: String,
    /// For standard error.
    pub err: String,
}
