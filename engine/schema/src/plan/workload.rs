//! The transaction that is repeated, and its data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use super::script::ScriptWorkload;
use super::sql::SqlWorkload;
use super::statement_mode::StatementMode;

/// The transaction that is repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Which member of the OLTP family, or `sql`, or `lua`.
    pub name: WorkloadName,
    /// Tables, rows and the make-up of a transaction.
    #[serde(default)]
    pub options: OltpOptions,
    /// How often the load asks for which row.
    #[serde(default)]
    pub keys: Distribution,
    /// How statements are sent.
    #[serde(default)]
    pub statements: StatementMode,
    /// The transactions of the workload named `sql`; no other has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<Box<SqlWorkload>>,
    /// The script of the workload named `lua`; no other has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptWorkload>>,
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
    /// One insert as text, outside a transaction. Where the table numbers no rows, new ones are numbered below 0: they
    /// meet no other row.
    OltpInsert,
    /// One select of some rows by equal values of k, over the first table.
    SelectRandomPoints,
    /// One count of some short ranges of k, over the first table.
    SelectRandomRanges,
    /// One row appended to a buffer, which is inserted when half a MiB is full. Every connection has a table of its
    /// own, sbtest1 and on, with id and k alone, empty after `prepare`; rows are numbered after the last that is there. The options of tables
    /// and rows mean nothing.
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

    /// The script, where the workload is one.
    pub fn own_script(&self) -> Option<&ScriptWorkload> {
        self.script.as_deref().filter(|_| self.name == WorkloadName::Lua)
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
