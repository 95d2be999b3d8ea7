//! Replaying statements that a server or a file has recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statements from a file, instead of transactions in the plan. The engine sends them as text.
/// The statements of one recorded connection from BEGIN to COMMIT are a
/// transaction, and every other statement is a separate one. In weighted order, transactions with the same text are one,
/// weighted by the number of times it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The file, which the engine reads before the run.
    pub file: String,
    /// Format of the file.
    pub format: LogFormat,
    /// Only statements recorded in this database, as far as the log names it. None: all statements.
    #[serde(default)]
    pub database: Option<String>,
    /// How often the list runs, in order `in-order` or `each-in-order`; then the run ends.
    /// `in-order`: by all users together; `each-in-order`: by each of them. None: until the phases end.
    #[serde(default)]
    pub times: Option<u32>,
}

/// Format of a file of recorded statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Statements that end with a semicolon, or with the file.
    Queries,
    /// The general query log of MySQL or MariaDB. Executions of prepared statements are replayed with their values;
    /// preparations are ignored.
    GeneralLog,
    /// The slow query log of MySQL or MariaDB.
    SlowLog,
    /// PostgreSQL's log as text, with `log_statement = all` or `log_min_duration_statement = 0`. Its `log_line_prefix`
    /// holds `%p` in brackets, as by default.
    PostgresqlLog,
    /// PostgreSQL's log as CSV, under the same settings.
    PostgresqlCsv,
}
