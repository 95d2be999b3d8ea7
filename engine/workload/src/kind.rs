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
    pub fn of(target: &Target) -> Self {
        if target.is_postgresql() { Dialect::Postgresql } else { Dialect::Mysql }
    }
}

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
    /// Inserts the deleted row again.
    Insert,
    /// Adds a row; always sent as text.
    NewRow,
    /// The rows with some values of k.
    RandomPoints,
    /// The count over some ranges of k.
    RandomRanges,
    /// Inserts many rows with one statement, into the connection's own table; always sent as text.
    BulkInsert,
    /// Ends the transaction.
    Commit,
}

/// Which tables a statement kind uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// None.
    None,
    /// The first one only.
    First,
    /// Any of them.
    Any,
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
            Kind::NewRow => "new_row",
            Kind::RandomPoints => "random_points",
            Kind::RandomRanges => "random_ranges",
            Kind::BulkInsert => "bulk_insert",
            Kind::Commit => "commit",
        }
    }

    /// The tables that it uses.
    pub fn tables(self) -> Tables {
        match self {
            // The table of a bulk insert is one of its parameters.
            Kind::Begin | Kind::Commit | Kind::BulkInsert => Tables::None,
            Kind::RandomPoints | Kind::RandomRanges => Tables::First,
            _ => Tables::Any,
        }
    }

    /// Types of its parameters, if it can be prepared.
    pub fn types(self, options: &OltpOptions) -> Vec<Type> {
        use Type::{Int, Text};
        match self {
            // The last two are never prepared.
            Kind::Begin | Kind::Commit | Kind::NewRow | Kind::BulkInsert => vec![],
            Kind::Point | Kind::IndexUpdate | Kind::Delete => vec![Int],
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => vec![Int; 2],
            Kind::NonIndexUpdate => vec![Text, Int],
            Kind::Insert => vec![Int, Int, Text, Text],
            Kind::RandomPoints => vec![Int; options.random_points as usize],
            Kind::RandomRanges => vec![Int; 2 * options.number_of_ranges as usize],
        }
    }

    /// Rows that each execution returns or changes, if known. A range near the end of the table returns fewer.
    /// table.
    pub(crate) fn rows(self, workload: WorkloadName, options: &OltpOptions) -> Option<u64> {
        match self {
            Kind::Begin | Kind::Commit => Some(0),
            Kind::SimpleRange | Kind::OrderRange | Kind::DistinctRange => {
                Some(options.range_size.min(options.table_size))
            }
            // Without inserts, deletes run out of rows.
            Kind::Delete if workload == WorkloadName::OltpDelete => None,
            // Depends on the values of k, and on the number of collected rows.
            Kind::RandomPoints | Kind::BulkInsert => None,
            _ => Some(1),
        }
    }

    /// The statement for table number `table`, from 1, with a `?` for each parameter.
    pub fn sql(self, table: u32, options: &OltpOptions, dialect: Dialect) -> String {
        let range = "WHERE id BETWEEN ? AND ?";
        match self {
            Kind::Begin => "BEGIN".into(),
            Kind::Point => format!("SELECT c FROM sbtest{table} WHERE id=?"),
            Kind::SimpleRange => format!("SELECT c FROM sbtest{table} {range}"),
            Kind::SumRange => format!("SELECT SUM(k) FROM sbtest{table} {range}"),
            Kind::OrderRange => format!("SELECT c FROM sbtest{table} {range} ORDER BY c"),
            Kind::DistinctRange => format!("SELECT DISTINCT c FROM sbtest{table} {range} ORDER BY c"),
            Kind::IndexUpdate => format!("UPDATE sbtest{table} SET k=k+1 WHERE id=?"),
            Kind::NonIndexUpdate => format!("UPDATE sbtest{table} SET c=? WHERE id=?"),
            Kind::Delete => format!("DELETE FROM sbtest{table} WHERE id=?"),
            // The sequence of the table provides the id; MySQL requests that by a 0.
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
