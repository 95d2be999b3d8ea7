//! Tables of the user's own that `prepare` fills with generated rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, Literal};

/// A table that the statements of `setup` make and `prepare` fills. A value depends on the plan's seed, the names of table
/// and column, and the row's number, which counts from 1: it is the same on every server and with any number of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedTable {
    /// Its name, without that of the schema.
    pub name: String,
    /// Rows to make.
    pub rows: u64,
    /// Columns that get values; the others get their defaults.
    pub columns: Vec<GeneratedColumn>,
}

/// One column of a generated table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedColumn {
    /// Its name.
    pub name: String,
    /// Where its values come from.
    pub values: ColumnSource,
    /// Share of rows that get NULL in place of a value, 0 to 1.
    #[serde(default)]
    pub nulls: f64,
}

/// Where the values of a column come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ColumnSource {
    /// Integers one after the other: row n gets the n-th.
    Sequence {
        /// Value of the first row.
        #[serde(default = "one")]
        first: i64,
        /// Difference between two rows.
        #[serde(default = "one")]
        step: i64,
    },
    /// A random integer.
    Integer {
        /// The least.
        #[serde(default = "one")]
        low: i64,
        /// The greatest.
        high: i64,
        /// Distribution; the hot ones of `zipfian` and `pareto` are the least.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A random number with a fixed number of decimals.
    Decimal {
        /// The least.
        low: f64,
        /// The greatest.
        high: f64,
        /// Digits after the point.
        #[serde(default = "two")]
        scale: u32,
        /// Distribution of the values.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A date and time, written as `2024-06-30 12:00:00`. The loading sessions' time zone is UTC.
    Timestamp {
        /// The first.
        from: String,
        /// The last.
        to: String,
        /// Digits of the fraction of a second, 0 to 6.
        #[serde(default)]
        digits: u32,
        /// Whether they rise from row to row.
        #[serde(default)]
        order: TimeOrder,
        /// Distribution of the values, where their order is random.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A day, written as `2024-06-30`.
    Date {
        /// The first.
        from: String,
        /// The last.
        to: String,
        /// Whether they rise from row to row.
        #[serde(default)]
        order: TimeOrder,
        /// Distribution of the values, where their order is random.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A string of random characters.
    Text {
        /// How many characters.
        length: TextLength,
        /// The characters, each as often as the others; one that the alphabet holds twice comes twice as often.
        #[serde(default = "letters_and_digits")]
        alphabet: String,
    },
    /// The value that a column has in some row of a generated table.
    ForeignKey {
        /// That table: one that the list names before, or this one.
        table: String,
        /// Its column; no foreign key of the same table, and one without NULL.
        column: String,
        /// Distribution of the rows; the hot ones of `zipfian` and `pareto` are the first.
        #[serde(default)]
        distribution: Distribution,
    },
    /// One of some values.
    OneOf {
        /// The values; `null` is NULL.
        values: Vec<Option<Literal>>,
        /// How often each comes, relative to the others. None: equally often.
        #[serde(default)]
        weights: Option<Vec<f64>>,
    },
    /// The same in every row.
    Constant {
        /// The value.
        value: Literal,
    },
}

/// How long a generated string is, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields, expecting = "a length is a number, or {low, high}")]
pub enum TextLength {
    /// Every string has this length.
    Exactly(u32),
    /// Every length in a range equally often.
    Between {
        /// The least.
        low: u32,
        /// The greatest.
        high: u32,
    },
}

impl TextLength {
    /// The least and the greatest.
    pub fn bounds(self) -> (u32, u32) {
        match self {
            TextLength::Exactly(length) => (length, length),
            TextLength::Between { low, high } => (low, high),
        }
    }
}

/// How instants follow each other from row to row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeOrder {
    /// Random.
    #[default]
    Random,
    /// At equal distances from the first to the last, as in a table that is written to over time.
    Rising,
}

fn one() -> i64 {
    1
}

fn two() -> u32 {
    2
}

fn letters_and_digits() -> String {
    "abcdefghijklmnopqrstuvwxyz0123456789".into()
}
