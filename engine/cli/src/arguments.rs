//! The command line of dbdyno-engine.

use clap::{Parser, Subcommand, ValueEnum};

/// Measures one run of a database workload.
///
/// The plan is the first line on standard input, in JSON (see `dbdyno-engine schema plan`). Records are written
/// to standard output as JSON Lines (see `dbdyno-engine schema events`).
///
/// Exit codes: 0 done, 2 invalid plan, 3 the server cannot be reached, 4 aborted, 130 interrupted.
#[derive(Parser)]
#[command(name = "dbdyno-engine", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Creates and fills the plan's tables.
    Prepare,
    /// Reads the plan's tables.
    Prewarm,
    /// Runs the plan's load on the server and measures it.
    Run,
    /// Drops the plan's tables that dbdyno created.
    Cleanup,
    /// Describes the plan without connecting: statements, prepared statements, tables, limits, error classes.
    Describe,
    /// Merges the records of several engines that run the segments of one plan.
    ///
    /// Standard input has their records, each line with the number of its engine before it, from 0: `1 {"type":…}`. The
    /// records of the whole run are written to standard output. Ends with the last record, with the exit code of the run.
    Merge {
        /// Names of the engines in messages, such as their hosts, in the order of their segments.
        #[arg(required = true)]
        engines: Vec<String>,
    },
    /// Prints a JSON Schema, or the limits of a plan.
    Schema {
        /// The document to print.
        name: SchemaName,
    },
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SchemaName {
    /// The plan on standard input.
    Plan,
    /// The records on standard output.
    Events,
    /// The output of `describe`.
    Describe,
    /// No schema: the limits of every plan, by name.
    Limits,
}
