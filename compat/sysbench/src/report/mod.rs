//! What is printed of a run, from its records alone: the same for native workloads, scripts and built-in tests.
//!
//! ```text
//!  Record ──▶ Reader ──▶ Progress ──┬─▶ Text ──▶ lines of the log
//!                                   ├─▶ json, csv
//!                                   └─▶ a script's own reports
//! ```
//! - [`reader`]: records into progress. [`tally`]: figures of a part of a run.
//! - [`text`]: sysbench's text. [`cumulative`]: its full report. [`failure`]: its messages for a failure.
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

pub use reader::{Outcome, Progress, Reader};
pub use tally::Tally;
pub use text::Text;

/// What a built-in test adds to the reports; nothing by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestReport {
    /// Replaces an interval's usual figures; without the time before them.
    pub interval: Option<String>,
    /// Lines before the general part of a full report.
    pub total: Vec<String>,
    /// Whether `total` replaces the general part and the threads' fairness.
    pub replaces_general: bool,
    /// The same figures for reports that programs read: always the same names in the same order.
    pub figures: Vec<(&'static str, f64)>,
}

/// Reports on what was counted in a part of a run.
pub type TestReporter<'a> = &'a dyn Fn(&Tally) -> TestReport;

/// The reporter of workloads and scripts, which add nothing.
pub fn no_test(_: &Tally) -> TestReport {
    TestReport::default()
}
