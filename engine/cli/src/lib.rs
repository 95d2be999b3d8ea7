//! Common code of dbdyno-engine and dbdyno-compat: plan, secrets, signals, exit codes, and records on standard output.

// Besides `compat/cli`, this is the only crate that touches arguments, environment, files and the terminal (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

pub mod command;
pub mod exit;
pub mod input;
pub mod output;
pub mod signals;
