//! The statement kinds of the OLTP family, with sysbench's SQL.

/// A kind of statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Starts the transaction.
    Begin,
    /// One row by key.
    Point,
    /// A range of rows.
    SimpleRange,
    /// The sum over a range.
    SumRange,
    /// A range, sorted.
    OrderRange,
    /// A range, sorted and without duplicates.
    DistinctRange,
    /// Changes an indexed column.
    IndexUpdate,
    /// Changes a column without index.
    NonIndexUpdate,
    /// Removes a row.
    Delete,
    /// Puts the row back.
    Insert,
    /// Ends the transaction.
    Commit,
}

impl Kind {
    /// Name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Begin => "begin",
            Kind::Point => "point_select",
            Kind::SimpleRange => "simple_range",
            Kind::SumRange => "sum_range",
            Kind::OrderRange => "order_range",
            Kind::DistinctRange => "distinct_range",
            Kind::IndexUpdate => "index_update",
            Kind::NonIndexUpdate => "non_index_update",
            Kind::Delete => "delete",
            Kind::Insert => "insert",
            Kind::Commit => "commit",
        }
    }

    /// Whether the statement names a table.
    pub fn has_table(self) -> bool {
        !matches!(self, Kind::Begin | Kind::Commit)
    }

    /// The statement for table number `table`, from 1.
    pub fn sql(self, table: u32) -> String {
        match self {
            Kind::Begin => "BEGIN".into(),
            Kind::Point => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            Kind::SimpleRange => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            Kind::SumRange => format!("SELECT SUM(k) FROM sbtest{table} WHERE id BETWEEN ? AND ?"),
            Kind::OrderRange => format!("SELECT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c"),
            Kind::DistinctRange => {
                format!("SELECT DISTINCT c FROM sbtest{table} WHERE id BETWEEN ? AND ? ORDER BY c")
            }
            Kind::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            Kind::NonIndexUpdate => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Kind::Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            Kind::Insert => format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)"),
            Kind::Commit => "COMMIT".into(),
        }
    }
}
