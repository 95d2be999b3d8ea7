//! sysbench's command line and its reports.
//!
//! ```text
//!  argv ──▶ commandline ──▶ Registry ──▶ settings ──▶ plan ──▶ (drive) ──▶ records ──▶ report::Text ──▶ text
//! ```
//! # Layout
//! - [`options`]: every option as data. [`declaration`]: the type of one, for scripts and built-in tests too. [`registry`]: their values, and how each type is read.
//! - [`commandline`], [`config_file`]: where values come from. [`help`]: the texts that list them.
//! - [`settings`]: what the values mean together, and what is refused. [`oltp`]: the options of the bundled workloads.
//! - [`driver`], [`pgsql`]: which database, and where its servers are. [`refused`]: why a command line cannot be used.
//! - [`plan`]: a native workload as the engine's plan, and what is asked of the engine beyond it. [`faults`]: what is wrong
//!   with one.
//! - [`tables`]: the statements that make, fill, read and drop tables. [`latency`]: the buckets of sysbench's percentiles.
//! - [`log`]: the log with its verbosity, where a line that repeats is told once.
//! - [`report`]: what is printed of a run.

pub mod commandline;
pub mod config_file;
pub mod declaration;
pub mod driver;
pub mod faults;
pub mod help;
pub mod latency;
pub mod log;
pub mod oltp;
pub mod options;
pub mod pgsql;
pub mod plan;
pub mod refused;
pub mod registry;
pub mod report;
pub mod settings;
pub mod tables;

/// The name of the program whose place it takes.
pub const NAME: &str = "sysbench";

/// Which sysbench is taken for a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// 1.0.20, which the distributions ship.
    #[default]
    V10,
    /// 1.1, as its development branch stands.
    V11,
}

impl Compat {
    /// What `--version` says.
    pub fn version(self) -> &'static str {
        match self {
            Compat::V10 => "1.0.20",
            Compat::V11 => "1.1.0",
        }
    }
}

/// The first line of every command but `--help` and `--version`, and the blank one after it.
pub fn header(compat: Compat) -> String {
    format!("sysbench {} (using bundled LuaJIT 2.1)\n\n", compat.version())
}
