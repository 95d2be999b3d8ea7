//! The command lines of mysqlslap and mariadb-slap, and their reports.
//!
//! ```text
//!  argv, option files ──▶ commandline ──▶ Given ──▶ settings ──▶ rounds ──▶ Step … ──▶ (cli, drive) ──▶ report ──▶ text
//! ```
//! # Layout
//! - [`options`]: every option as data. [`commandline`], [`option_files`]: where their values come from. [`help`]: the list.
//! - [`settings`]: what the values mean together, and what is refused. [`target`]: where the server is.
//! - [`statements`]: texts and files taken apart; [`generate`], [`random`]: the SQL that `--auto-generate-sql` makes.
//! - [`rounds`]: what is done, in order. [`plan`]: the clients of one round as the engine's plan.
//! - [`report`]: what is printed of the times that were measured.

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

/// Which client is taken for a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// mysqlslap of MySQL 8.0 and later.
    Mysql,
    /// mariadb-slap, which some distributions call mysqlslap as well.
    Mariadb,
}

/// What ends the program before it has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Lines for standard error.
    pub text: String,
    /// Exit code.
    pub code: u8,
}

impl Refused {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }
}
