//! Transactions in SQL of the user's own, and where their parameters come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, GeneratedTable, Literal, Replay, StatementMode};

/// The statements of the workload named `sql`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlWorkload {
    /// Where the values of the parameters come from, by the name that follows the colon in a statement.
    #[serde(default)]
    pub parameters: BTreeMap<String, ParameterSource>,
    /// The transactions; an event is one of them. None where `replay` has them.
    #[serde(default)]
    pub transactions: Vec<SqlTransaction>,
    /// Recorded statements in place of transactions.
    #[serde(default)]
    pub replay: Option<Replay>,
    /// Order of the transactions.
    #[serde(default)]
    pub order: TransactionOrder,
    /// Statements by which `prepare` makes what the transactions need, in order, on one connection. A second `prepare`
    /// sends them again: they must allow that, as CREATE TABLE IF NOT EXISTS does.
    #[serde(default)]
    pub setup: Vec<String>,
    /// Tables that `prepare` fills after `setup`, in this order. Only an empty one is filled, or one that an earlier
    /// `prepare` left unfinished; one that it completed with the same plan is kept.
    #[serde(default)]
    pub tables: Vec<GeneratedTable>,
    /// Statements that `prepare` sends after it has filled tables, in order, on one connection; for indexes, keys and the
    /// optimiser's statistics.
    #[serde(default)]
    pub after: Vec<String>,
    /// Statements by which `cleanup` removes what `setup` made.
    #[serde(default)]
    pub cleanup: Vec<String>,
    /// Statements sent once on every new connection, before anything is prepared on it; not counted.
    #[serde(default)]
    pub session: Vec<String>,
    /// Statements that each user sends before it closes its connection at the end; not counted.
    #[serde(default)]
    pub teardown: Vec<String>,
    /// Transactions of each user; the run ends when every user has played that many. None: the phases alone end it.
    #[serde(default)]
    pub each: Option<u64>,
}

/// Which transaction a user plays next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TransactionOrder {
    /// By chance, each as often as its weight says.
    #[default]
    Weighted,
    /// The next of the list, from which all users take; after the last one the first. For replays: with as many events
    /// as transactions each is played once. The engines of a fleet share the list out, number by number.
    InOrder,
    /// Every user goes through the whole list by itself, again and again.
    EachInOrder,
}

/// Statements that belong together. `BEGIN` and `COMMIT` are statements like others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlTransaction {
    /// Name in errors, and the prefix of unnamed statements; `transactionN` without one.
    #[serde(default)]
    pub name: Option<String>,
    /// How often it is played, relative to the others.
    #[serde(default = "one")]
    pub weight: f64,
    /// In the order in which they are sent.
    pub statements: Vec<SqlStatement>,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqlStatement {
    /// With `:name` for each parameter; quotes and comments stay as they are. A parameter keeps its value
    /// for the whole transaction, unless `draw` names it.
    pub sql: String,
    /// Name in the records; statements of the same name are counted together. Without one, that of the transaction and
    /// the number of the statement in it: `transaction1.2`.
    #[serde(default)]
    pub name: Option<String>,
    /// Expected rows, returned or changed each time. None: not checked.
    #[serde(default)]
    pub rows: Option<u64>,
    /// How it is sent, where that differs from the workload's `statements`. One whose result is kept is sent as text.
    #[serde(default)]
    pub mode: Option<StatementMode>,
    /// Parameters that get a new value just before it is sent. Those that read the same CSV file change together.
    #[serde(default)]
    pub draw: Vec<String>,
    /// Times it is sent, one after the other.
    #[serde(default = "once")]
    pub repeat: u32,
}

/// Where the values of a parameter come from. Every user draws by itself, from the plan's seed and its own number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ParameterSource {
    /// A random integer.
    Integer {
        /// The least.
        #[serde(default = "one_i64")]
        low: i64,
        /// The greatest.
        high: i64,
        /// Distribution; the hot ones of `zipfian` and `pareto` are the least.
        #[serde(default)]
        distribution: Distribution,
    },
    /// Integers one after the other, each to one user of the fleet alone: the n-th of u users takes the n-th, the n+u-th,
    /// … A transaction that starts again after an error takes the next one.
    Sequence {
        /// First number.
        #[serde(default = "one_i64")]
        first: i64,
        /// Last number, after which the sequence starts again. None: it never ends.
        #[serde(default)]
        last: Option<i64>,
    },
    /// One of some values.
    OneOf {
        /// The values: integers, or strings; other numbers are sent as strings, and `null` as NULL. In a list with a string
        /// or NULL integers are sent as strings too.
        values: Vec<Option<Literal>>,
        /// How often each comes, relative to the others. None: equally often.
        #[serde(default)]
        weights: Option<Vec<f64>>,
    },
    /// A column of a CSV file whose first line names the columns. Parameters with the same file and order take their
    /// values from the same line. Columns that hold integers alone are sent as integers, others as strings.
    Csv {
        /// The file.
        from: CsvSource,
        /// Name of the column.
        column: String,
        /// Which line is next.
        #[serde(default)]
        order: LineOrder,
    },
    /// What an earlier statement of the transaction returned in its first row, sent as a string; NULL without a row.
    Result {
        /// Name of the statement.
        statement: String,
        /// Number of the column, from 1.
        #[serde(default = "once")]
        column: u32,
    },
}

/// Where the lines of a CSV file are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CsvSource {
    /// Path of a file, which the engine reads before the run.
    Path(String),
    /// The text itself.
    Text(String),
}

/// Which line of a CSV file is next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LineOrder {
    /// Any, each as often as the others.
    #[default]
    Random,
    /// One after the other, shared out among the users as a sequence is; after the last the first.
    InOrder,
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

fn one() -> f64 {
    1.0
}

fn one_i64() -> i64 {
    1
}

fn once() -> u32 {
    1
}
