//! The transaction that is repeated, and its data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ScriptWorkload, SqlWorkload};

/// The transaction that is repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Which member of the OLTP family, or `sql`, or `lua`.
    pub name: WorkloadName,
    /// Tables, rows and the make-up of a transaction.
    #[serde(default)]
    pub options: OltpOptions,
    /// Which rows are asked for.
    #[serde(default)]
    pub keys: Distribution,
    /// How statements travel.
    #[serde(default)]
    pub statements: StatementMode,
    /// How `oltp_insert` and `bulk_insert` number the rows they add.
    #[serde(default)]
    pub new_rows: NewRows,
    /// The transactions of the workload named `sql`; no other has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<Box<SqlWorkload>>,
    /// The script of the workload named `lua`; no other has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptWorkload>>,
}

/// Distribution of row ids, under sysbench's names and with its defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Every row equally often.
    #[default]
    Uniform,
    /// A bell over all rows: the mean of some uniform numbers.
    Gaussian {
        /// How many.
        #[serde(default = "defaults::iterations")]
        iterations: u32,
    },
    /// A hot band in the middle, and a bell over all rows for the rest.
    Special {
        /// Uniform numbers of the bell.
        #[serde(default = "defaults::iterations")]
        iterations: u32,
        /// Width of the band in percent of the rows.
        #[serde(default = "defaults::special_percent")]
        percent: u32,
        /// Share of draws that fall into the band, in percent.
        #[serde(default = "defaults::special_hot_percent")]
        hot_percent: u32,
    },
    /// The lowest ids hottest: a share h of the rows gets a share 1 - h of the draws.
    Pareto {
        /// Above 0 and below 1.
        #[serde(default = "defaults::pareto_h")]
        h: f64,
    },
    /// The lowest ids hottest, by Zipf's law.
    Zipfian {
        /// At least 0; 0 is uniform.
        #[serde(default = "defaults::zipfian_exponent")]
        exponent: f64,
    },
}

/// How statements travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StatementMode {
    /// Prepared on the server, once per connection and table.
    #[default]
    Prepared,
    /// As text, with the parameters put in by the client.
    Text,
}

/// How rows are numbered that a run adds, where the table does not number them by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NewRows {
    /// So that they meet no other row: `oltp_insert` below 0, where no loaded row is, and `bulk_insert` after the last
    /// row that is there.
    #[default]
    Apart,
    /// As sysbench does it: `oltp_insert` all over the range of the column, each number once, and `bulk_insert` from 1
    /// on, so that a second run meets the rows of the first.
    Sysbench,
}

/// The native workloads, under sysbench's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WorkloadName {
    /// BEGIN, ten point selects, four ranges, COMMIT.
    OltpReadOnly,
    /// The reads of `oltp_read_only`, two updates, a delete and an insert.
    OltpReadWrite,
    /// BEGIN, two updates, a delete and an insert, COMMIT.
    OltpWriteOnly,
    /// One point select.
    OltpPointSelect,
    /// One update of an indexed column, outside a transaction.
    OltpUpdateIndex,
    /// One update of a column without index, outside a transaction.
    OltpUpdateNonIndex,
    /// One delete, outside a transaction. Rows run out: a delete that finds none counts as `other`.
    OltpDelete,
    /// One insert as text, outside a transaction.
    OltpInsert,
    /// One select of some rows by equal values of k, over the first table.
    SelectRandomPoints,
    /// One count of some short ranges of k, over the first table.
    SelectRandomRanges,
    /// One row appended to a buffer, which is inserted when half a MiB is full. Every connection has a table of its
    /// own, sbtest1 and on, with id and k alone, empty after `prepare`; the options of tables and rows mean nothing.
    BulkInsert,
    /// SQL of the user's own, in `sql`; `options` and `keys` mean nothing.
    Sql,
    /// A script, in `script`, which `dbdyno-compat` plays; `options` mean nothing, and `keys` are what the script draws by
    /// where it names no distribution.
    Lua,
}

impl Workload {
    /// The transactions, where they are the user's own.
    pub fn own_sql(&self) -> Option<&SqlWorkload> {
        self.sql.as_deref().filter(|_| self.name == WorkloadName::Sql)
    }
}

/// Options of the OLTP family with sysbench's names and defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OltpOptions {
    /// Number of tables, sbtest1 to sbtestN.
    pub tables: u32,
    /// Rows per table; ids are 1 to `table_size`.
    pub table_size: u64,
    /// Rows a range statement asks for.
    pub range_size: u64,
    /// Point selects per transaction.
    pub point_selects: u32,
    /// Plain range selects per transaction.
    pub simple_ranges: u32,
    /// SUM range selects per transaction.
    pub sum_ranges: u32,
    /// ORDER BY range selects per transaction.
    pub order_ranges: u32,
    /// DISTINCT range selects per transaction.
    pub distinct_ranges: u32,
    /// Updates of an indexed column per transaction.
    pub index_updates: u32,
    /// Updates of a column without index per transaction.
    pub non_index_updates: u32,
    /// Pairs of delete and insert of the same id per transaction.
    pub delete_inserts: u32,
    /// Values of k that `select_random_points` asks for.
    pub random_points: u32,
    /// Ranges that `select_random_ranges` asks for.
    pub number_of_ranges: u32,
    /// Width of each of those ranges, less one.
    pub delta: u32,
    /// Whether the four range kinds run at all.
    pub range_selects: bool,
    /// Whether the id column is AUTO_INCREMENT.
    pub auto_inc: bool,
    /// Whether BEGIN and COMMIT are left out.
    pub skip_trx: bool,
    /// Whether id has a secondary index in place of the primary key.
    pub secondary: bool,
    /// Whether the index on k is made after loading.
    pub create_secondary: bool,
    /// Storage engine named in CREATE TABLE.
    pub mysql_storage_engine: String,
}

impl Default for OltpOptions {
    fn default() -> Self {
        Self {
            tables: 1,
            table_size: 10_000,
            range_size: 100,
            point_selects: 10,
            simple_ranges: 1,
            sum_ranges: 1,
            order_ranges: 1,
            distinct_ranges: 1,
            index_updates: 1,
            non_index_updates: 1,
            delete_inserts: 1,
            random_points: 10,
            number_of_ranges: 10,
            delta: 5,
            range_selects: true,
            auto_inc: true,
            skip_trx: false,
            secondary: false,
            create_secondary: true,
            mysql_storage_engine: "innodb".into(),
        }
    }
}

mod defaults {
    pub fn iterations() -> u32 {
        12
    }
    pub fn special_percent() -> u32 {
        1
    }
    pub fn special_hot_percent() -> u32 {
        75
    }
    pub fn pareto_h() -> f64 {
        0.2
    }
    pub fn zipfian_exponent() -> f64 {
        0.8
    }
}
