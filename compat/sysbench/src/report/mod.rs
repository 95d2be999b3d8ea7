//! What is printed of a run, from its records alone: the same for native workloads, scripts and built-in tests.
//!
//! ```text
//!  Record ──▶ Reader ──▶ News ──┬─▶ Text ──▶ lines of the log
//!                               ├─▶ json, csv
//!                               └─▶ a script's own reports
//! ```
//! - [`reader`]: what a record means to those who report. [`tally`]: figures of a stretch of a run.
//! - [`text`]: sysbench's text. [`cumulative`]: its full report. [`failure`]: how a failure reads.
//! - [`generator`]: warnings about the load generator. [`loading`]: the lines of prepare, prewarm and cleanup.
//! - [`json`], [`csv`]: reports for programs.

pub mod csv;
pub mod cumulative;
pub mod failure;
pub mod generator;
pub mod json;
pub mod loading;
pub mod reader;
pub mod tally;
pub mod text;

pub use reader::{News, Outcome, Reader, Stretch};
pub use text::Text;

/// What a built-in test adds to the reports.
pub trait Extra {
    /// An interval's figures in place of the usual ones, without the time before them.
    fn interval(&self, stretch: &Stretch) -> Option<String> {
        let _ = stretch;
        None
    }

    /// Lines before the general part of a full report.
    fn total(&self, stretch: &Stretch) -> Vec<String> {
        let _ = stretch;
        Vec::new()
    }

    /// Whether what it tells stands in place of the general part and of the threads' fairness.
    fn stands_for_general(&self) -> bool {
        false
    }

    /// The same figures by name, for reports that programs read: always the same names in the same order.
    fn figures(&self, stretch: &Stretch) -> Vec<(String, f64)> {
        let _ = stretch;
        Vec::new()
    }
}

/// A run that adds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Extra for Nothing {}
