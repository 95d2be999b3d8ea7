//! Prints a run from its records, which have the same form for native workloads, scripts and built-in tests.
//!
//! ```text
//!  Record ──▶ Reader ──▶ Progress ──┬─▶ Text ──▶ lines of the log
//!                                   ├─▶ json, csv
//!                                   └─▶ a script's own reports
//! ```
//! - [`reader`]: turns records into progress. [`totals`]: the counts of a part of a run.
//! - [`text`]: sysbench's output. [`cumulative`]: its full report. [`failure`]: its error messages.
//! - [`generator`]: warnings about the load generator. [`loading`]: the lines of prepare, prewarm and cleanup.
//! - [`json`], [`csv`]: machine-readable reports.

pub mod csv;
pub mod cumulative;
pub mod failure;
pub mod generator;
pub mod json;
pub mod loading;
pub mod reader;
pub mod text;
pub mod totals;

pub use reader::{Outcome, Progress, Reader};
pub use text::Text;
pub use totals::Totals;

/// The part of the reports that a built-in test provides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TestReport {
    /// The text that replaces the default figures in an interval line, after the time.
    pub interval: Option<String>,
    /// Lines that precede the general part of a full report.
    pub total: Vec<String>,
    /// Whether `total` replaces the general part and the threads' fairness.
    pub replaces_general: bool,
    /// Figures for JSON and CSV. Their names and their order never change.
    pub figures: Vec<(&'static str, f64)>,
}

/// Computes a test's part from the counts.
pub type TestReporter<'a> = &'a dyn Fn(&Totals) -> TestReport;

/// The reporter for database workloads and scripts, which add nothing.
pub fn no_test(_: &Totals) -> TestReport {
    TestReport::default()
}
