//! The statement kinds of the OLTP family, with sysbench's SQL.

use dbdyno_schema::plan::{OltpOptions, Target, WorkloadName};
use dbdyno_wire::scripted::Type;

/// SQL dialect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// MySQL's and MariaDB's.
    #[default]
    Mysql,
    /// PostgreSQL's.
    Postgresql,
}

impl Dialect {
    /// The dialect of a target.
    pub fn from_target(target: &Target) -> Self {
        if target.is_postgresql() { Dialect::Postgresql } else { Dialect::Mysql }
    }
}

/// A kind of statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// BEGIN: starts the transaction.
    Begin,
    /// SELECT of one row by id.
    PointSelect,
    /// SELECT of a range of rows.
    SimpleRange,
    /// Sum over a range of rows.
    SumRange,
    /// SELECT of a range of rows, sorted.
    OrderRange,
    /// SELECT of a range of rows, sorted and without duplicates.
    DistinctRange,
    /// UPDATE of an indexed column.
    IndexUpdate,
    /// UPDATE of a column without an index.
    NonIndexUpdate,
    /// DELETE of a row.
    Delete,
    /// INSERT of the deleted row.
    Insert,
    /// INSERT of a new row; always sent as text.
    NewRow,
    /// SELECT of the rows with some values of column k.
    RandomPoints,
    /// Count of the rows in some ranges of column k.
    RandomRanges,
    /// INSERT of many rows into the connection's own table; always sent as text.
    BulkInsert,
    /// COMMIT: ends the transaction.
    Commit,
}

/// The tables from which a statement of a kind chooses its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableChoice {
    /// No table, or a table that is a parameter.
    None,
    /// Only the first table.
    First,
    /// Any table.
    Any,
}

impl Kind {
    /// Name in records and reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Begin => "begin",
            Kind::PointSelect => "point_select",
            Kind::SimpleRange => "simple_range",
            Kind::SumRange => "sum_range",
            Kind::OrderRange => "order_range",
            Kind::DistinctRange => "distinct_range",
            Kind::IndexUpdate => "index_update",
            Kind::NonIndexUpdate => "non_index_update",
            Kind::Delete => "delete",
            Kind::Insert => "insert",
            Kind::NewRow => "new_row",
            Kind::RandomPoints => "random_points",
            Kind::RandomRanges => "random_ranges",
            Kind::BulkInsert => "bulk_insert",
            Kind::Commit => "commit",
        }
    }

    /// The tables that statements of this kind use.
    pub fn tables(self) -> TableChoice {
        match self {
            // The table of a bulk insert is one of its parameters.
            Kind::Begin | Kind::Commit | Kind::BulkInsert => TableChoice::None,
            Kind::RandomPoints | Kind::RandomRanges => TableChoice::First,
            _ => TableChoice::Any,
        }
    }

    /// Types of the parameters, if statements of this kind can be prepared.
    pub fn types(self, options: &OltpOptions) -> Vec<Type> {
        use Type::{Int, Text};
        match self {
            // The last two kinds are never prepared.
            Kind::Begin | Kind::Commit | Kind::NewRow | Kind::BulkInsert => vec![],
            Kind::PointSelect | Kind::IndexUpdate | Kind::Delete => vec![Int],
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => vec![Int; 2],
            Kind::NonIndexUpdate => vec![Text, Int],
            Kind::Insert => vec![Int, Int, Text, Text],
            Kind::RandomPoints => vec![Int; options.random_points as usize],
            Kind::RandomRanges => vec![Int; 2 * options.number_of_ranges as usize],
        }
    }

    /// Number of rows that each execution returns or changes, if known. A range near the end of the table returns fewer
    /// rows.
    pub(crate) fn rows(self, workload: WorkloadName, options: &OltpOptions) -> Option<u64> {
        match self {
            Kind::Begin | Kind::Commit => Some(0),
            Kind::SimpleRange | Kind::OrderRange | Kind::DistinctRange => {
                Some(options.range_size.min(options.table_size))
            }
            // Without inserts, the deleted rows are not replaced, so the number is unknown.
            Kind::Delete if workload == WorkloadName::OltpDelete => None,
            // The number depends on the values of k, or on the number of collected rows.
            Kind::RandomPoints | Kind::BulkInsert => None,
            _ => Some(1),
        }
    }

    /// The statement for table number `table`, from 1, with a `?` for each parameter.
    pub fn sql(self, table: u32, options: &OltpOptions, dialect: Dialect) -> String {
        let range = "WHERE id BETWEEN ? AND ?";
        match self {
            Kind::Begin => "BEGIN".into(),
            Kind::PointSelect => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            Kind::SimpleRange => format!("SELECT c FROM sbtest{table} {range}"),
            Kind::SumRange => format!("SELECT SUM(k) FROM sbtest{table} {range}"),
            Kind::OrderRange => format!("SELECT c FROM sbtest{table} {range} ORDER BY c"),
            Kind::DistinctRange => format!("SELECT DISTINCT c FROM sbtest{table} {range} ORDER BY c"),
            Kind::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            Kind::NonIndexUpdate => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Kind::Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            // The table's sequence provides the id; MySQL generates the id if the statement contains a 0.
            Kind::NewRow if dialect == Dialect::Postgresql && options.auto_inc => {
                format!("INSERT INTO sbtest{table} (k, c, pad) VALUES (?, ?, ?)")
            }
            Kind::Insert | Kind::NewRow => {
                format!("INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)")
            }
            Kind::RandomPoints => {
                let points = repeated("?", ", ", options.random_points);
                format!("SELECT id, k, c, pad FROM sbtest{table} WHERE k IN ({points})")
            }
            Kind::RandomRanges => {
                let ranges = repeated("k BETWEEN ? AND ?", " OR ", options.number_of_ranges);
                format!("SELECT count(k) FROM sbtest{table} WHERE {ranges}")
            }
            Kind::BulkInsert => "INSERT INTO ? VALUES?".into(),
            Kind::Commit => "COMMIT".into(),
        }
    }
}

fn repeated(text: &str, between: &str, times: u32) -> String {
    vec![text; times as usize].join(between)
}
