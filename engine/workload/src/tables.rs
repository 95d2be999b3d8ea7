//! What a loader fills: tables whose rows are made while the server takes them.

/// Some tables, numbered from 1.
pub trait Tables {
    /// A range of a table's rows.
    type Rows: BulkRows;

    /// Name of a table.
    fn name(&self, table: u32) -> String;

    /// The statement that loads the rows of [`BulkRows::bulk`]: LOAD DATA LOCAL, or COPY.
    fn load(&self, table: u32) -> String;

    /// The beginning of an INSERT up to its values, and whether those have ids.
    fn insert(&self, table: u32) -> (String, bool);

    /// The rows `first` to `last` of a table, both included.
    fn rows_from(&self, table: u32, first: u64, last: u64) -> Self::Rows;

    /// Whether the loader makes indexes itself.
    fn has_index(&self) -> bool;

    /// Rows of one LOAD DATA or COPY, so that it has some 10 MB.
    fn statement_rows(&self, table: u32) -> u64;

    /// Whether a server's warnings tell that rows do not fit their table.
    fn warns(&self) -> bool;
}

/// A range of a table's rows, written down one after the other.
pub trait BulkRows {
    /// Appends rows in the form of the server's bulk statement, about as many `bytes` of them. Returns whether there are
    /// more.
    fn bulk(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool;

    /// Appends values of an INSERT, as many as one statement holds, with their ids or without. Returns how many rows.
    fn values(&mut self, out: &mut Vec<u8>, ids: bool) -> u64;
}
