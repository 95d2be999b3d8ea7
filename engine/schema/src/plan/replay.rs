//! Options of the plan for replaying recorded statements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Statements from a file, instead of transactions in the plan. The engine sends them as text.
///
/// The statements that one recorded connection sent from BEGIN to COMMIT form a transaction; every other statement is a
/// transaction by itself. In weighted order, the weight of a transaction is the number of times that its text was recorded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The file, which the engine reads before the run.
    pub file: String,
    /// Format of the file.
    pub format: LogFormat,
    /// Replays only statements recorded in this database. Statements without a known database are replayed too. None:
    /// replays all statements.
    #[serde(default)]
    pub database: Option<String>,
    /// Number of times that the list of transactions is executed before the run ends: by all users together in order
    /// `in-order`, by each user in order `each-in-order`. None: the list is repeated until the phases end.
    #[serde(default)]
    pub times: Option<u32>,
    /// Leaves out statements that may write.
    #[serde(default)]
    pub skip_writes: bool,
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
