//! Tables of another form than the engine's marked ones, for programs that embed it and create, read and drop tables as another
//! tool does.

use std::fmt::Debug;

use dbdyno_schema::plan::Distribution;

/// The statements of a form of the OLTP family's tables, sbtest1 and on. A table of such a form has no mark: it is created
/// where it does not exist, and dropped even if another program created it.
pub trait TableStatements: Debug + Send + Sync {
    /// Rows that each table is filled with.
    fn rows(&self) -> u64;

    /// Of column k.
    fn keys(&self) -> &Distribution;

    /// Makes a table.
    fn create(&self, table: u32) -> String;

    /// The beginning of an INSERT up to its values, and whether those have ids.
    fn insert(&self, table: u32) -> (String, bool);

    /// Makes what index has to wait for the rows.
    fn create_index(&self, table: u32) -> Option<String>;

    /// What each connection sends before it reads tables.
    fn before_scans(&self) -> &'static [&'static str];

    /// Reads a table from end to end.
    fn scans(&self, table: u32) -> Vec<String>;

    /// Drops a table, whether it is there or not.
    fn drop_table(&self, table: u32) -> String;
}
