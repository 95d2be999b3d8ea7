//! User-defined tables that `prepare` fills with generated rows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Distribution, Literal};

/// A table that the statements of `setup` create and `prepare` fills. A value depends only on the plan's seed, the names
/// of table and column, and the row number (from 1), so it is the same on every server and with any number of streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedTable {
    /// Name, without the schema.
    pub name: String,
    /// Rows to generate.
    pub rows: u64,
    /// Columns with generated values; the table's other columns get their defaults.
    pub columns: Vec<GeneratedColumn>,
    /// If the table has a number of rows for each row of an earlier table. `rows` must be their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<ParentTable>,
}

/// The table whose rows have rows of another table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ParentTable {
    /// An earlier table of the list, without a parent.
    pub table: String,
    /// Its column with the number of rows: of the kind `integer`, `cycle` or `shuffle`, without NULLs.
    pub rows: String,
}

/// One column of a generated table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratedColumn {
    /// Name of the column.
    pub name: String,
    /// Source of the column's values.
    pub values: ColumnSource,
    /// Share of rows that get NULL instead of a value, 0 to 1.
    #[serde(default)]
    pub nulls: f64,
}

/// Source of a column's values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ColumnSource {
    /// An arithmetic sequence: row n gets `first` + (n - 1) × `step`. With `last` it continues at `first` after `last`.
    Sequence {
        /// Value of the first row.
        #[serde(default = "one")]
        first: i64,
        /// Difference between two rows.
        #[serde(default = "one")]
        step: i64,
        /// Largest value. Each of `first` to `last` comes once before any comes again if `step` has no common divisor
        /// with their number: a large prime scatters them. Null: the sequence has no end.
        #[serde(default)]
        last: Option<i64>,
    },
    /// A random integer.
    Integer {
        /// Minimum.
        #[serde(default = "one")]
        low: i64,
        /// Maximum.
        high: i64,
        /// Distribution; with `zipfian` and `pareto` the smallest values are the hottest.
        #[serde(default)]
        distribution: Distribution,
    },
    /// An integer that repeats: the first `every` rows get `low`, the next ones `low` + 1, and so on; after `high` follows
    /// `low`.
    Cycle {
        /// First value.
        #[serde(default = "one")]
        low: i64,
        /// Last value.
        high: i64,
        /// Number of consecutive rows with the same value.
        #[serde(default = "one_u64")]
        every: u64,
    },
    /// An integer, equally often in each run of rows, in random order: a permutation if a run has as many rows as the range
    /// has values. If the values do not divide the run, some at equal distances from the
    /// middle of the range occur once more, so that each run has the same sum.
    Shuffle {
        /// Minimum.
        #[serde(default = "one")]
        low: i64,
        /// Maximum.
        high: i64,
        /// Number of rows of a run.
        of: u64,
    },
    /// The value of a column of the parent's row, in a table with a parent.
    Parent {
        /// Name of the parent's column.
        column: String,
    },
    /// The number of the row among the rows of its parent's row, from 1.
    ChildNumber {},
    /// One of two sources, depending on the value of another column of the row.
    Below {
        /// A column of the kind `sequence`, `integer`, `cycle`, `shuffle`, `child_number`, or `parent` with one of them.
        column: String,
        /// The limit.
        bound: i64,
        /// The source in rows whose value is below the limit.
        then: Box<ColumnSource>,
        /// The source in all other rows.
        otherwise: Box<ColumnSource>,
    },
    /// A text of several words: each digit of a number selects one. The base of the digits is the number of words, and every
    /// text has as many words as the largest number has digits.
    Words {
        /// The words, in the order of the digits.
        words: Vec<String>,
        /// The numbers: `integer`, `cycle` or `shuffle`, not below 0.
        numbers: Box<ColumnSource>,
    },
    /// A random number with a fixed number of decimals.
    Decimal {
        /// Minimum.
        low: f64,
        /// Maximum.
        high: f64,
        /// Decimals.
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
        /// Whether values increase from row to row.
        #[serde(default)]
        order: TimeOrder,
        /// Distribution of the values, if their order is random.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A day, written as `2024-06-30`.
    Date {
        /// The first.
        from: String,
        /// The last.
        to: String,
        /// Whether values increase from row to row.
        #[serde(default)]
        order: TimeOrder,
        /// Distribution of the values, if their order is random.
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
        /// A word at a random place of some of the strings, which does not change their length.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        word: Option<TextWord>,
        /// Characters after the random ones, which `length` does not count.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        suffix: String,
    },
    /// The value of a column in a random row of a generated table.
    ForeignKey {
        /// The referenced table: an earlier one of the list, or this one.
        table: String,
        /// The referenced column: without NULLs, and not a foreign key of the same table.
        column: String,
        /// Distribution of the rows; with `zipfian` and `pareto` the first rows are the hottest.
        #[serde(default)]
        distribution: Distribution,
    },
    /// A random element of a list.
    OneOf {
        /// The list; `null` is NULL.
        values: Vec<Option<Literal>>,
        /// Relative frequencies. Null: all equal.
        #[serde(default)]
        weights: Option<Vec<f64>>,
    },
    /// The same value in every row.
    Constant {
        /// The value.
        value: Literal,
    },
}

/// A word within random strings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextWord {
    /// The word: ASCII characters, not more than the shortest string has.
    pub text: String,
    /// Share of the strings that contain it, 0 to 1.
    pub share: f64,
}

/// How long a generated string is, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields, expecting = "a length is a number, or {low, high}")]
pub enum TextLength {
    /// Every string has this length.
    Exactly(u32),
    /// Every length in a range is equally frequent.
    Between {
        /// Minimum.
        low: u32,
        /// Maximum.
        high: u32,
    },
}

impl TextLength {
    /// Minimum and maximum.
    pub fn bounds(self) -> (u32, u32) {
        match self {
            TextLength::Exactly(length) => (length, length),
            TextLength::Between { low, high } => (low, high),
        }
    }
}

/// Order of times from row to row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeOrder {
    /// Random.
    #[default]
    Random,
    /// Rows are at equal distances from the first time to the last, as in a table that grows over time.
    Rising,
}

fn one() -> i64 {
    1
}

fn one_u64() -> u64 {
    1
}

fn two() -> u32 {
    2
}

pub(super) fn letters_and_digits() -> String {
    "abcdefghijklmnopqrstuvwxyz0123456789".into()
}
