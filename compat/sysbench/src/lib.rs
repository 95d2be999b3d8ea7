//! sysbench's command line and its reports.
//!
//! ```text
//!  argv ──▶ commandline ──▶ Registry ──▶ settings ──▶ plan ──▶ (runner) ──▶ records ──▶ report::Text ──▶ text
//! ```
//! # Layout
//! - [`options`]: every option as data. [`declaration`]: its type, for scripts and built-in tests too. [`registry`]: the values.
//! - [`commandline`], [`config_file`]: the sources of values. [`help`]: the texts that list the options.
//! - [`settings`]: the general options, checked. [`oltp`]: the options of the bundled workloads.
//! - [`driver`], [`pgsql`]: the database and its servers. [`error`]: why a command line cannot be used.
//! - [`plan`]: a native workload as the engine's plan and options. [`faults`]: a plan's faults by option.
//! - [`tables`]: the statements that create, fill, read and drop tables. [`latency`]: the buckets of sysbench's percentiles.
//! - [`log`]: the log with its level, which collapses repeated lines.
//! - [`report`]: what is printed of a run.

// Only dbdyno-compat uses this crate: names that explain themselves have no comment.
#![allow(missing_docs)]

pub mod commandline;
pub mod config_file;
pub mod declaration;
pub mod driver;
pub mod error;
pub mod faults;
pub mod help;
pub mod latency;
pub mod log;
pub mod oltp;
pub mod options;
pub mod pgsql;
pub mod plan;
pub mod registry;
pub mod report;
pub mod settings;
pub mod tables;
#[cfg(test)]
mod testing;

/// The program that this crate emulates.
pub const NAME: &str = "sysbench";

/// The version to emulate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compat {
    /// 1.0.20, which the distributions ship.
    #[default]
    V10,
    /// 1.1, the development branch.
    V11,
}

impl Compat {
    /// The number that `--version` prints.
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
