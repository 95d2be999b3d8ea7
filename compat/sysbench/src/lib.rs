//! sysbench's command line and its reports.
//!
//! ```text
//!  argv ──▶ commandline ──▶ Registry ──▶ settings ──▶ plan ──▶ (runner) ──▶ records ──▶ report::Text ──▶ text
//! ```
//! # Layout
//! - [`options`]: every option as data. [`option_definition`]: options of scripts and built-in tests. [`registry`]: the values.
//! - [`commandline`], [`config_file`]: parse values. [`help`]: lists the options.
//! - [`settings`]: the validated general options. [`oltp`]: the options of the bundled workloads.
//! - [`driver`], [`pgsql`]: the database and its servers. [`error`]: errors in the command line.
//! - [`plan`]: a native workload as the engine's plan and options. [`problems`]: errors in a plan, in terms of options.
//! - [`tables`]: the statements that create, fill, read and drop tables. [`latency`]: the buckets of sysbench's percentiles.
//! - [`log`]: filters lines by level and collapses repeated ones.
//! - [`report`]: the reports of a run.

// Only dbdyno-compat uses this crate, so items with a clear name need no doc comment.
#![allow(missing_docs)]

pub mod commandline;
pub mod config_file;
pub mod driver;
pub mod error;
pub mod help;
pub mod latency;
pub mod log;
pub mod oltp;
pub mod option_definition;
pub mod options;
pub mod pgsql;
pub mod plan;
pub mod problems;
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
    V1_0,
    /// 1.1, the development branch.
    V1_1,
}

impl Compat {
    /// The number that `--version` prints.
    pub fn version(self) -> &'static str {
        match self {
            Compat::V1_0 => "1.0.20",
            Compat::V1_1 => "1.1.0",
        }
    }
}

/// The first line of the output of every command except `--help` and `--version`, and the blank line after it.
pub fn header(compat: Compat) -> String {
    format!("sysbench {} (using bundled LuaJIT 2.1)\n\n", compat.version())
}
