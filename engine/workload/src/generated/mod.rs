//! User-defined tables, filled with generated rows.
//!
//! The user's statements create the tables; this module generates their rows and the statements that load them.
//! PostgreSQL loads them by COPY in text format, because the binary format requires the type of each column, which only
//! the user's statements define.
//!
//! # Layout
//! - this file: the tables and their rows.
//! - `column`: the values of one column.
//! - `children`: tables with a number of rows for each row of another table.
//! - `encode`: the encodings of values in LOAD DATA, COPY and INSERT.
//! - `marks`: marks in table comments, which show whether a table is complete.

mod children;
mod column;
mod encode;
mod marks;

use std::sync::Arc;

use dbdyno_schema::description::{ColumnDescription, TableGroup};
use dbdyno_schema::plan::{ColumnSource, GeneratedColumn, GeneratedTable, Plan};

use self::children::{Children, RowPlace};
use self::column::Column;
use self::encode::Encoding;
use crate::kind::Dialect;
use crate::tables::{BulkRows, Tables};

pub use self::marks::TableState;

/// Maximum bytes of one INSERT, unless a single row is longer.
const INSERT_BYTES: usize = 512 * 1024;
/// Approximate bytes of one LOAD DATA or COPY.
const STATEMENT_BYTES: u64 = 10 << 20;
/// Number of rows in the sample that estimates the length of a row.
const SAMPLE: u64 = 64;

/// The tables of a plan.
#[derive(Clone, Debug)]
pub struct GeneratedTables {
    seed: u64,
    dialect: Dialect,
    /// The database that contains the tables.
    database: String,
    tables: Vec<Table>,
}

#[derive(Clone, Debug)]
struct Table {
    spec: GeneratedTable,
    columns: Arc<[Arc<Column>]>,
    children: Option<Arc<Children>>,
    /// Number of rows in one LOAD DATA or COPY.
    statement_rows: u64,
}

impl GeneratedTables {
    /// The generated tables of a plan that has no errors.
    pub fn from_plan(plan: &Plan) -> Self {
        let specs = plan.workload.custom_sql().map(|custom| custom.tables.as_slice()).unwrap_or_default();
        let mut tables: Vec<Table> = Vec::with_capacity(specs.len());
        for spec in specs {
            let table = Table::new(plan.seed, spec, &tables);
            tables.push(table);
        }
        let (dialect, database) = (Dialect::from_target(&plan.target), plan.target.database().to_owned());
        Self { seed: plan.seed, dialect, database, tables }
    }

    /// Problems of the tables that only their values show, one sentence each.
    pub fn problems(&self) -> Vec<String> {
        let problem = |table: &Table| {
            let (sum, parent) = (table.children.as_ref()?.rows(), table.spec.parent.as_ref()?);
            (sum != table.spec.rows).then(|| {
                format!(
                    "workload.sql.tables: {} has {} rows, but {}.{} adds up to {sum}; set rows to {sum}",
                    table.spec.name, table.spec.rows, parent.table, parent.rows
                )
            })
        };
        self.tables.iter().filter_map(problem).collect()
    }

    /// The tables, for the output of `describe`. Types and indexes are unknown, because the user's statements define them.
    pub(crate) fn describe(&self) -> Vec<TableGroup> {
        let column = |column: &GeneratedColumn| ColumnDescription {
            name: self.fold_case(&column.name),
            r#type: None,
            length: None,
            nullable: column.nulls > 0.0,
            auto_increment: false,
        };
        let describe = |table: u32| TableGroup {
            names: vec![self.name(table)],
            engine: None,
            columns: self.table(table).spec.columns.iter().map(column).collect(),
            indexes: None,
            rows: self.rows(table),
        };
        self.table_numbers().map(describe).collect()
    }

    /// Whether the plan has no generated tables.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Numbers of all tables, from 1.
    pub fn table_numbers(&self) -> std::ops::RangeInclusive<u32> {
        1..=self.tables.len() as u32
    }

    /// Rows of a table.
    pub fn rows(&self, table: u32) -> u64 {
        self.table(table).spec.rows
    }

    fn table(&self, table: u32) -> &Table {
        &self.tables[table as usize - 1]
    }

    /// Settings of the sessions that load rows, as name and value. A fixed time zone makes times equal on every server.
    pub fn session_settings(&self) -> [(&'static str, &'static str); 1] {
        match self.dialect {
            Dialect::Mysql => [("time_zone", "+00:00")],
            Dialect::Postgresql => [("timezone", "UTC")],
        }
    }

    /// Refreshes the optimiser's statistics.
    pub fn analyze(&self, table: u32) -> String {
        let name = self.quote(&self.name(table));
        match self.dialect {
            Dialect::Mysql => format!("ANALYZE TABLE {name}"),
            // As in pgbench: without VACUUM, the first statements that read the table would do its work.
            Dialect::Postgresql => format!("VACUUM (ANALYZE) {name}"),
        }
    }

    /// Quotes a name.
    fn quote(&self, name: &str) -> String {
        match self.dialect {
            Dialect::Mysql => format!("`{name}`"),
            Dialect::Postgresql => format!("\"{name}\""),
        }
    }

    fn column_list(&self, table: u32) -> String {
        let columns = self.table(table).spec.columns.iter();
        columns.map(|column| self.quote(&self.fold_case(&column.name))).collect::<Vec<_>>().join(", ")
    }

    /// A name in lower case for PostgreSQL, which folds unquoted names to lower case.
    fn fold_case(&self, name: &str) -> String {
        match self.dialect {
            Dialect::Mysql => name.to_owned(),
            Dialect::Postgresql => name.to_lowercase(),
        }
    }
}

impl Table {
    fn new(seed: u64, spec: &GeneratedTable, before: &[Table]) -> Self {
        let parent = spec.parent.as_ref().map(|parent| find(before, &parent.table));
        let children = spec
            .parent
            .as_ref()
            .zip(parent)
            .map(|(keys, parent)| Arc::new(Children::new(parent.column(&keys.rows), parent.spec.rows)));
        let mut columns = Siblings {
            spec,
            before,
            parent,
            children: children.clone(),
            built: vec![None; spec.columns.len()],
        };
        // Columns that depend on others of their table follow them.
        let rank = |index: &usize| match spec.columns[*index].values {
            ColumnSource::ForeignKey { .. } => 2,
            ColumnSource::Below { .. } => 1,
            _ => 0,
        };
        let mut order: Vec<usize> = (0..spec.columns.len()).collect();
        order.sort_by_key(rank);
        for index in order {
            let column = Column::new(seed, (&spec.name, spec.rows), &spec.columns[index], &columns);
            columns.built[index] = Some(Arc::new(column));
        }
        let columns: Arc<[_]> = columns.built.into_iter().flatten().collect();
        let mut table = Self { spec: spec.clone(), columns, children, statement_rows: 1 };
        let rows = table.sampled_rows();
        let (mut sample, mut out) = (table.rows_from(Encoding::Line, 1, rows), Vec::new());
        while sample.write_bulk(&mut out, STATEMENT_BYTES as usize) {}
        let row_bytes = (out.len() as u64).div_ceil(rows.max(1)).max(1);
        table.statement_rows = (STATEMENT_BYTES / row_bytes).clamp(1, STATEMENT_BYTES / 50);
        table
    }

    /// Number of rows in the sample that estimates the length of a row.
    fn sampled_rows(&self) -> u64 {
        let rows = self.children.as_ref().map_or(self.spec.rows, |children| children.rows());
        rows.min(self.spec.rows).min(SAMPLE)
    }

    fn column(&self, name: &str) -> Arc<Column> {
        let index = self.spec.columns.iter().position(|column| column.name == name);
        Arc::clone(&self.columns[index.expect("Plan::problems rejects unknown columns")])
    }

    fn rows_from(&self, encoding: Encoding, first: u64, last: u64) -> GeneratedRows {
        GeneratedRows {
            columns: Arc::clone(&self.columns),
            children: self.children.clone(),
            encoding,
            next: first,
            last,
        }
    }
}

fn find<'a>(tables: &'a [Table], name: &str) -> &'a Table {
    let table = tables.iter().find(|table| table.spec.name == name);
    table.expect("Plan::problems rejects unknown tables")
}

/// The columns of a table that is being built.
struct Siblings<'a> {
    spec: &'a GeneratedTable,
    before: &'a [Table],
    parent: Option<&'a Table>,
    children: Option<Arc<Children>>,
    built: Vec<Option<Arc<Column>>>,
}

impl column::Columns for Siblings<'_> {
    fn foreign(&self, table: &str, column: &str) -> (Arc<Column>, u64, Option<Arc<Children>>) {
        if table == self.spec.name {
            return (self.sibling(column), self.spec.rows, self.children.clone());
        }
        let table = find(self.before, table);
        (table.column(column), table.spec.rows, table.children.clone())
    }

    fn parent(&self, column: &str) -> Arc<Column> {
        self.parent.expect("Plan::problems rejects a missing parent").column(column)
    }

    fn sibling(&self, column: &str) -> Arc<Column> {
        let index = self.spec.columns.iter().position(|found| found.name == column);
        let column = index.and_then(|index| self.built[index].clone());
        column.expect("Plan::problems rejects keys of unknown columns")
    }
}

impl Tables for GeneratedTables {
    type Rows = GeneratedRows;

    fn name(&self, table: u32) -> String {
        self.fold_case(&self.table(table).spec.name)
    }

    /// The statement that loads rows. It writes separators in hexadecimal, which mean the same in every SQL mode, and
    /// uses `ascii` where possible, because it loads faster than `utf8mb4`.
    fn load_sql(&self, table: u32) -> String {
        let (name, columns) = (self.quote(&self.name(table)), self.column_list(table));
        let is_ascii = self.table(table).columns.iter().all(|column| column.is_ascii());
        let characters = if is_ascii { "ascii" } else { "utf8mb4" };
        match self.dialect {
            Dialect::Mysql => format!(
                "LOAD DATA LOCAL INFILE 'dbdyno' INTO TABLE {name} CHARACTER SET {characters} \
                 FIELDS TERMINATED BY 0x09 ESCAPED BY 0x5c LINES TERMINATED BY 0x0a ({columns})"
            ),
            Dialect::Postgresql => format!("COPY {name} ({columns}) FROM STDIN"),
        }
    }

    fn insert_sql(&self, table: u32) -> (String, bool) {
        let (name, columns) = (self.quote(&self.name(table)), self.column_list(table));
        (format!("INSERT INTO {name} ({columns}) VALUES"), true)
    }

    fn rows_from(&self, table: u32, first: u64, last: u64) -> GeneratedRows {
        let encoding = match self.dialect {
            Dialect::Mysql => Encoding::Mysql,
            Dialect::Postgresql => Encoding::Postgresql,
        };
        self.table(table).rows_from(encoding, first, last)
    }

    fn has_index(&self) -> bool {
        false
    }

    fn statement_rows(&self, table: u32) -> u64 {
        self.table(table).statement_rows
    }

    /// Whether the server may report an invalid value only as a warning: MySQL does for LOAD DATA LOCAL, and for INSERT
    /// without strict SQL mode.
    fn can_warn(&self) -> bool {
        self.dialect == Dialect::Mysql
    }
}

/// A range of a generated table's rows.
#[derive(Clone, Debug)]
pub struct GeneratedRows {
    columns: Arc<[Arc<Column>]>,
    children: Option<Arc<Children>>,
    /// Encoding of literals.
    encoding: Encoding,
    next: u64,
    last: u64,
}

impl GeneratedRows {
    #[inline]
    fn write(&mut self, out: &mut Vec<u8>, encoding: Encoding, between: u8) {
        let row = RowPlace::new(self.next, self.children.as_deref());
        for (index, column) in self.columns.iter().enumerate() {
            if index > 0 {
                out.push(between);
            }
            column.write(row, out, encoding);
        }
        self.next += 1;
    }
}

impl BulkRows for GeneratedRows {
    fn write_bulk(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        let enough = out.len() + bytes - bytes / 16;
        while self.next <= self.last && out.len() < enough {
            self.write(out, Encoding::Line, b'\t');
            out.push(b'\n');
        }
        self.next <= self.last
    }

    fn write_values(&mut self, out: &mut Vec<u8>, _ids: bool) -> u64 {
        let first = self.next;
        while self.next <= self.last && (self.next == first || out.len() < INSERT_BYTES) {
            out.extend_from_slice(if self.next == first { b"(" } else { b",(" });
            self.write(out, self.encoding, b',');
            out.push(b')');
        }
        self.next - first
    }
}

#[cfg(test)]
mod tests;
