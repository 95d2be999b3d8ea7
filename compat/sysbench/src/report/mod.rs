//! Formats the reports of a run from its records. Native workloads, scripts and built-in tests write the same records.
//!
//! ```text
//!  Record ──▶ Reader ──▶ Progress ──┬─▶ Text ──▶ lines of the log
//!                                   ├─▶ json, csv
//!                                   └─▶ a script's own reports
//! ```
//! - [`reader`]: when a report is due. [`totals`]: the counts of a part of a run.
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
    /// Lines that precede the general statistics of a full report.
    pub total: Vec<String>,
    /// Whether `total` replaces the general statistics and the thread fairness.
    pub replaces_general_statistics: bool,
    /// Values for JSON and CSV reports. Their names and order are the same in every report.
    pub figures: Vec<(&'static str, f64)>,
}

/// Computes a built-in test's part of the report from the totals.
pub type TestReporter<'a> = &'a dyn Fn(&Totals) -> TestReport;

/// The [`TestReporter`] for database workloads and scripts, which add nothing.
pub fn no_test(_: &Totals) -> TestReport {
    TestReport::default()
}
