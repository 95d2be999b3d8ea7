//! Statements for tables without dbdyno's marks. Programs that embed the engine provide them to create the same tables
//! as another tool.

use std::fmt::Debug;

use dbdyno_schema::plan::Distribution;

/// Statements for the tables of the OLTP family (sbtest1, sbtest2, …) without marks. `prepare` creates missing tables,
/// and `cleanup` drops every table, even if another program created it.
pub trait TableStatements: Debug + Send + Sync {
    /// Rows of each table.
    fn rows(&self) -> u64;

    /// Distribution of column k.
    fn keys(&self) -> &Distribution;

    /// Creates a table.
    fn create(&self, table: u32) -> String;

    /// The beginning of an INSERT up to its values, and whether the values must include ids.
    fn insert(&self, table: u32) -> (String, bool);

    /// The statement for the index that is created after loading, if there is one.
    fn create_index(&self, table: u32) -> Option<String>;

    /// Statements that each connection sends before it reads tables.
    fn before_scans(&self) -> &'static [&'static str];

    /// Statements that read a table completely.
    fn scans(&self, table: u32) -> Vec<String>;

    /// Drops a table, if it exists.
    fn drop_table(&self, table: u32) -> String;
}
