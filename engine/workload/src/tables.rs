//! Interface between the loader and the tables of a workload. Rows are generated while the server receives them.

/// Tables, numbered from 1.
pub trait Tables {
    /// A range of a table's rows.
    type Rows: BulkRows;

    /// Name of a table.
    fn name(&self, table: u32) -> String;

    /// The statement that loads the rows that [`BulkRows::write_bulk`] writes: LOAD DATA LOCAL or COPY.
    fn load_sql(&self, table: u32) -> String;

    /// The beginning of an INSERT up to its values, and whether the values must include ids.
    fn insert_sql(&self, table: u32) -> (String, bool);

    /// The rows `first` to `last` of a table, inclusive.
    fn rows_from(&self, table: u32, first: u64, last: u64) -> Self::Rows;

    /// Whether the loader creates indexes after loading the rows.
    fn has_index(&self) -> bool;

    /// Number of rows for one LOAD DATA or COPY; they have about 10 MB.
    fn statement_rows(&self, table: u32) -> u64;

    /// Whether the server may report invalid values only as warnings.
    fn can_warn(&self) -> bool;
}

/// A range of a table's rows, generated one by one.
pub trait BulkRows {
    /// Appends about `bytes` bytes of rows in the format of the server's bulk statement. Returns whether there are more
    /// rows.
    fn write_bulk(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool;

    /// Appends the values of one INSERT, with ids or without. Returns the number of rows.
    fn write_values(&mut self, out: &mut Vec<u8>, ids: bool) -> u64;
}
