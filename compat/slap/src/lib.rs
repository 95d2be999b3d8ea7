//! Reads the command lines of mysqlslap and mariadb-slap, and writes their reports.
//!
//! ```text
//!  argv, option files ──▶ commandline ──▶ OptionValues ──▶ settings ──▶ rounds ──▶ Step … ──▶ (cli, runner) ──▶ report ──▶ text
//! ```
//! # Layout
//! - [`options`]: the definitions of all options. [`commandline`], [`option_files`]: parse the values. [`help`]: lists the
//!   options.
//! - [`settings`]: validates the options. [`target`]: the server.
//! - [`statements`]: splits a text into statements. [`generate`], [`random`]: generate the SQL of `--auto-generate-sql`.
//! - [`rounds`]: the steps of a benchmark. [`plan`]: the engine's plan for one round of clients.
//! - [`report`]: formats the measured times.

// Only dbdyno-compat uses this crate, so items with a clear name need no doc comment.
#![allow(missing_docs)]

pub mod commandline;
pub mod generate;
pub mod help;
pub mod option_files;
pub mod options;
pub mod plan;
mod random;
pub mod report;
pub mod rounds;
pub mod settings;
pub mod statements;
pub mod target;

/// The client to emulate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// mysqlslap of MySQL 8.0 and later.
    Mysql,
    /// mariadb-slap, which some distributions install as mysqlslap.
    Mariadb,
}

/// An error that ends the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageError {
    /// Lines for standard error.
    pub text: String,
    /// The exit code.
    pub code: u8,
}

impl UsageError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }
}
