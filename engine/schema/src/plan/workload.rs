//! The repeated transaction and its data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Distribution;
use super::script::ScriptWorkload;
use super::sql::SqlWorkload;
use super::statement_mode::StatementMode;

/// The repeated transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// A workload of the OLTP family, `sql`, or `lua`.
    pub name: WorkloadName,
    /// Tables, rows and composition of a transaction.
    #[serde(default)]
    pub options: OltpOptions,
    /// Distribution of the rows that statements access.
    #[serde(default)]
    pub keys: Distribution,
    /// How statements are sent.
    #[serde(default)]
    pub statements: StatementMode,
    /// The transactions of the workload named `sql`; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<Box<SqlWorkload>>,
    /// The script of the workload named `lua`; absent for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptWorkload>>,
}

/// The workloads, under sysbench's names.
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
    /// One delete, outside a transaction. The table becomes empty in time: a delete that finds no row counts as `other`.
    OltpDelete,
    /// One insert as text, outside a transaction. Without `auto_inc`, new rows get ids below 0, which do not collide with
    /// loaded rows.
    OltpInsert,
    /// One select of the rows with `random_points` values of k, on the first table.
    SelectRandomPoints,
    /// One count over `number_of_ranges` short ranges of k, on the first table.
    SelectRandomRanges,
    /// One row appended to a buffer of the client, which inserts all rows when the buffer reaches 0.5 MiB. Every connection
    /// has its own table (sbtest1, sbtest2, …) with only the columns id and k, which `prepare` creates empty; new ids
    /// continue after the last stored row. The options of tables and rows are ignored.
    BulkInsert,
    /// User-defined SQL, in `sql`; `options` and `keys` are ignored.
    Sql,
    /// A script, in `script`, which `dbdyno-compat` runs; `options` are ignored, and `keys` is the distribution that the
    /// script uses by default.
    Lua,
}

impl Workload {
    /// The user-defined transactions, if any.
    pub fn custom_sql(&self) -> Option<&SqlWorkload> {
        self.sql.as_deref().filter(|_| self.name == WorkloadName::Sql)
    }

    /// The script, if the workload is one.
    pub fn lua_script(&self) -> Option<&ScriptWorkload> {
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
    /// Rows per range statement.
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
    /// Values of k in `select_random_points`.
    pub random_points: u32,
    /// Ranges in `select_random_ranges`.
    pub number_of_ranges: u32,
    /// Width of each range in `select_random_ranges`, less one.
    pub delta: u32,
    /// Whether transactions contain range selects.
    pub range_selects: bool,
    /// Whether the id column is AUTO_INCREMENT.
    pub auto_inc: bool,
    /// Whether BEGIN and COMMIT are left out.
    pub skip_trx: bool,
    /// Whether id has a secondary index instead of the primary key.
    pub secondary: bool,
    /// Whether to create the index on k, after loading.
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
