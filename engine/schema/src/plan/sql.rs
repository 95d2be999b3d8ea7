//! User-defined transactions in SQL, and the sources of their parameters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::sql_tables::letters_and_digits;
use super::{Distribution, GeneratedTable, Literal, Replay, StatementMode, TextLength};

/// The statements of the workload named `sql`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlWorkload {
    /// Sources of the parameter values, by the name that follows the colon in a statement.
    #[serde(default)]
    pub parameters: BTreeMap<String, ParameterSource>,
    /// The transactions; each event executes one of them. Empty with `replay`.
    #[serde(default)]
    pub transactions: Vec<SqlTransaction>,
    /// Recorded statements instead of transactions.
    #[serde(default)]
    pub replay: Option<Replay>,
    /// Order of the transactions.
    #[serde(default)]
    pub order: TransactionOrder,
    /// Statements by which `prepare` creates the tables and other objects that the transactions need, in order, on one
    /// connection. A second `prepare` sends them again, so they must be repeatable, such as CREATE TABLE IF NOT EXISTS.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Tables that `prepare` fills after `setup`, in this order. It fills a table only if it is empty, or if an earlier
    /// `prepare` left it unfinished; it keeps a table that was completed with the same plan.
    #[serde(default)]
    pub tables: Vec<GeneratedTable>,
    /// Statements that `prepare` sends after it has filled the tables, in order, on one connection: to create indexes and
    /// keys, or to collect optimiser statistics.
    #[serde(default)]
    pub after: Vec<String>,
    /// Statements by which `cleanup` removes what `setup` created.
    #[serde(default)]
    pub cleanup: Vec<String>,
    /// Statements sent once on every new connection, before anything is prepared on it; not counted.
    #[serde(default)]
    pub session: Vec<String>,
    /// Statements that each user sends before it closes its connection at the end; not counted.
    #[serde(default)]
    pub teardown: Vec<String>,
    /// Transactions per user; the run ends when every user has completed this number. Null: only the phases end the run.
    #[serde(default)]
    pub each: Option<u64>,
}

/// Which transaction a user runs next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionOrder {
    /// At random, in proportion to the weights.
    #[default]
    Weighted,
    /// The next transaction of a list that all users of all engines share; the last one is followed by the first. A replay
    /// with as many events as transactions executes each transaction once.
    InOrder,
    /// Every user repeats the complete list independently.
    EachInOrder,
}

/// Statements that one event executes in order. A database transaction needs `BEGIN` and `COMMIT` among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlTransaction {
    /// Name in error messages, and prefix of the names of unnamed statements; by default `transactionN`.
    #[serde(default)]
    pub name: Option<String>,
    /// Relative frequency of this transaction.
    #[serde(default = "one")]
    pub weight: f64,
    /// In the order in which they are sent.
    pub statements: Vec<SqlStatement>,
    /// Groups of statements that are repeated together, in their order and without common statements.
    #[serde(default)]
    pub loops: Vec<StatementLoop>,
    /// Closed loops: how long a user waits before the transaction, in microseconds. No latency includes it.
    #[serde(default)]
    pub keying_us: u64,
    /// Closed loops: mean of the exponentially distributed time that a user waits after the transaction, in microseconds;
    /// at most ten times the mean. No latency includes it.
    #[serde(default)]
    pub think_us: u64,
}

/// Consecutive statements of a transaction that are repeated together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatementLoop {
    /// Number of the first statement, from 1.
    pub first: u32,
    /// Number of the last statement.
    pub last: u32,
    /// How often the statements are executed.
    pub times: LoopTimes,
}

/// How often the statements of a loop are executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LoopTimes {
    /// Always equally often.
    Number(u32),
    /// As often as the value of the parameter with this name, which must have integers; not at all below 1.
    Parameter(String),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlStatement {
    /// The SQL text, with `:name` for each parameter (not inside quotes or comments). A parameter keeps its value for the
    /// whole transaction, unless `draw` lists it.
    pub sql: String,
    /// Name in the records; statements of the same name are counted together. The default is the transaction's name and
    /// the statement's number in it: `transaction1.2`.
    #[serde(default)]
    pub name: Option<String>,
    /// Expected number of rows returned or changed by each execution. Null: not checked.
    #[serde(default)]
    pub rows: Option<u64>,
    /// Instead of `rows`: a parameter of the statement whose value is the expected number of rows, such as that of a LIMIT.
    #[serde(default)]
    pub rows_parameter: Option<String>,
    /// How the statement is sent, if not as `workload.statements` says. A statement whose result is the source of a
    /// parameter is always sent as text.
    #[serde(default)]
    pub mode: Option<StatementMode>,
    /// Parameters that get a new value before each execution of the statement. Parameters from the same CSV file change
    /// together.
    #[serde(default)]
    pub draw: Vec<String>,
    /// Number of consecutive executions.
    #[serde(default = "once")]
    pub repeat: u32,
}

/// The source of a parameter's values. Every user has an independent random stream, seeded by the plan's seed and the
/// user's number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ParameterSource {
    /// A random integer.
    Integer {
        /// Minimum.
        #[serde(default = "one_i64")]
        low: i64,
        /// Maximum.
        high: i64,
        /// Distribution; with `zipfian` and `pareto` the smallest values are the hottest.
        #[serde(default)]
        distribution: Distribution,
        /// Name of a parameter of the kind `integer` or `connection` within the same range, whose value is left out. If it
        /// is the only value of the range, it is used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        other_than: Option<String>,
    },
    /// An integer that is constant on each connection: the first `every` connections have `low`, the next ones `low` + 1,
    /// and so on; after `high` follows `low`.
    Connection {
        /// First value.
        #[serde(default = "one_i64")]
        low: i64,
        /// Last value.
        high: i64,
        /// Number of consecutive connections with the same value.
        #[serde(default = "one_u64")]
        every: u64,
    },
    /// The number of the current repetition of a loop, from 1.
    Repetition {},
    /// The value of one of several parameters with integer values.
    Choice {
        /// Their names.
        parameters: Vec<String>,
        /// Relative frequencies. Null: all equal.
        #[serde(default)]
        weights: Option<Vec<f64>>,
    },
    /// A text of several words: each digit of a random number selects one. The base of the digits is the number of words,
    /// and every text has as many words as `high` has digits.
    Words {
        /// The words, in the order of the digits.
        words: Vec<String>,
        /// Smallest number, at least 0.
        #[serde(default)]
        low: i64,
        /// Largest number.
        high: i64,
        /// Distribution of the numbers.
        #[serde(default)]
        distribution: Distribution,
    },
    /// Consecutive integers, which the users of all engines share: user n of u takes the n-th, the (n+u)-th, … A
    /// transaction that restarts after an error takes the user's next one.
    Sequence {
        /// First number.
        #[serde(default = "one_i64")]
        first: i64,
        /// Last number, after which the sequence restarts. Null: it never restarts.
        #[serde(default)]
        last: Option<i64>,
        /// Order of the numbers.
        #[serde(default)]
        order: SequenceOrder,
    },
    /// The number of a row that this user inserted recently. Number n of the distribution, from 0, is the n-th latest
    /// number that the user has taken from a sequence in an earlier transaction which ended; after the first of these
    /// follow `high`, `high` - 1 and so on, the latest loaded rows. So every number is that of a row.
    Latest {
        /// The parameter that numbers the inserted rows: a `sequence` without `last`.
        sequence: String,
        /// The first loaded row.
        #[serde(default = "one_i64")]
        low: i64,
        /// The last loaded row.
        high: i64,
        /// Distribution of n, from 0 to `high` - `low`.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A string of random characters.
    Text {
        /// Number of characters.
        length: TextLength,
        /// The characters, all equally frequent; a character that is listed twice is twice as frequent.
        #[serde(default = "letters_and_digits")]
        alphabet: String,
    },
    /// A random element of a list.
    OneOf {
        /// The list. A list of only integers is sent as integers; any other list is sent as strings, with `null` as NULL.
        values: Vec<Option<Literal>>,
        /// Relative frequencies. Null: all equal.
        #[serde(default)]
        weights: Option<Vec<f64>>,
    },
    /// A column of a CSV file whose first line names the columns. Parameters with the same file and order get their
    /// values from the same line. Columns of only integers are sent as integers, others as strings.
    Csv {
        /// The file.
        from: CsvSource,
        /// Name of the column.
        column: String,
        /// How the next line is chosen.
        #[serde(default)]
        order: LineOrder,
    },
    /// A column of the first row that an earlier statement of the transaction returned, sent as a string unless `type`
    /// is set; NULL if the statement returned no row.
    Result {
        /// Name of the statement.
        statement: String,
        /// Number of the column, from 1.
        #[serde(default = "once")]
        column: u32,
        /// Type of the value.
        #[serde(default)]
        r#type: ResultType,
    },
}

/// In which order a sequence takes its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SequenceOrder {
    /// From the first to the last.
    #[default]
    Rising,
    /// Scattered evenly over the range; each number comes once before any comes again. Needs `last`.
    Random,
}

/// Type of a value that a statement returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResultType {
    /// A string.
    #[default]
    Text,
    /// A 64-bit integer; NULL if the value is not one.
    Integer,
}

/// Source of the lines of a CSV file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CsvSource {
    /// Path of a file, which the engine reads before the run.
    Path(String),
    /// The content of the file.
    Text(String),
}

/// How the next line of a CSV file is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineOrder {
    /// At random, with equal probabilities.
    #[default]
    Random,
    /// Consecutive lines, distributed among the users like a `sequence`; the last line is followed by the first.
    InOrder,
}

impl SqlTransaction {
    /// How often the loop around a statement repeats it; `None` if that depends on a parameter. `index` is from 0.
    pub fn repetitions(&self, index: usize) -> Option<u32> {
        let number = index as u32 + 1;
        match self.loops.iter().find(|one| (one.first..=one.last).contains(&number)).map(|one| &one.times) {
            None => Some(1),
            Some(LoopTimes::Number(times)) => Some(*times),
            Some(LoopTimes::Parameter(_)) => None,
        }
    }
}

impl SqlWorkload {
    /// Name of a transaction in errors and records.
    pub fn transaction_name(&self, index: usize) -> String {
        let name = self.transactions.get(index).and_then(|transaction| transaction.name.clone());
        name.unwrap_or_else(|| format!("transaction{}", index + 1))
    }

    /// Name of a statement in errors and records.
    pub fn statement_name(&self, transaction: usize, index: usize) -> String {
        let transaction_of = self.transactions.get(transaction);
        transaction_of
            .and_then(|transaction| transaction.statements.get(index))
            .and_then(|statement| statement.name.clone())
            .unwrap_or_else(|| format!("{}.{}", self.transaction_name(transaction), index + 1))
    }
}

fn one_u64() -> u64 {
    1
}

fn one() -> f64 {
    1.0
}

fn one_i64() -> i64 {
    1
}

fn once() -> u32 {
    1
}
