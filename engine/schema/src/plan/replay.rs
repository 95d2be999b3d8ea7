//! Replaying statements that a server or a file has recorded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statements from a file, in place of transactions that the plan lists. The engine sends them as text.
/// What belongs together stays together: the statements of one recorded connection from BEGIN to COMMIT are a
/// transaction, and every other statement is one of its own. In a weighted order the same text is one transaction, which
/// weighs as often as it was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The file, which the engine reads before the run.
    pub file: String,
    /// Format of the file.
    pub format: LogFormat,
    /// Only what was recorded in this database, as far as the log tells. None: everything.
    #[serde(default)]
    pub database: Option<String>,
    /// How often the list is played, in one of the orders; after that users have no more to do, and the run ends.
    /// `in-order`: so often by all users together; `each-in-order`: by each of them. None: until the phases end.
    #[serde(default)]
    pub times: Option<u32>,
}

/// What kind of file statements are recorded in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Statements that end with a semicolon, or with the file.
    Queries,
    /// The general query log of MySQL or MariaDB. It holds each execution of a prepared statement whole, which counts; the
    /// preparation does not.
    GeneralLog,
    /// The slow query log of MySQL or MariaDB.
    SlowLog,
    /// PostgreSQL's log as text, with `log_statement = all` or `log_min_duration_statement = 0`. Its `log_line_prefix`
    /// holds `%p` in brackets, as by default.
    PostgresqlLog,
    /// PostgreSQL's log as CSV, under the same settings.
    PostgresqlCsv,
}
