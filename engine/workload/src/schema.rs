//! Statements that create and drop the OLTP tables. Their rows are in [`crate::rows`].
//!
//! The schema is sysbench's. dbdyno marks its tables in the table comment ([`crate::table_marks`]): with [`LOADING`] while
//! it loads a table, and with the table's specification when the table is complete. It drops only marked tables, unless a program that embeds
//! the engine provides [`TableStatements`].

use std::sync::Arc;

use dbdyno_schema::description::{ColumnDescription, IndexDescription, TableGroup};
use dbdyno_schema::plan::{Distribution, OltpOptions, Plan, WorkloadName};

use crate::kind::Dialect;
use crate::rows::{BulkFormat, Rows};
use crate::table_marks::{LOADING, MARK, table_hash};
use crate::table_statements::TableStatements;
use crate::tables::Tables;

/// Number of rows in one LOAD DATA or COPY: about 10 MB.
const STATEMENT_ROWS: u64 = 50_000;

/// The tables of one workload with one seed.
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) options: OltpOptions,
    seed: u64,
    /// Whether these are the tables of bulk_insert: empty, with only id and k, one per connection.
    pub(crate) bulk: bool,
    /// Statements for tables without a mark; `None` for marked tables.
    statements: Option<Arc<dyn TableStatements>>,
    /// Distribution of column k. It is always uniform in marked tables, because the stored data must not depend on the
    /// load.
    keys: Distribution,
    dialect: Dialect,
    /// The database that contains the tables.
    database: String,
}

impl Schema {
    /// The tables that `options` describe, with rows from `seed`.
    pub fn new(options: &OltpOptions, seed: u64) -> Self {
        Self {
            options: options.clone(),
            seed,
            bulk: false,
            statements: None,
            keys: Distribution::Uniform,
            dialect: Dialect::default(),
            database: String::new(),
        }
    }

    /// The tables of a plan.
    pub fn from_plan(plan: &Plan) -> Self {
        let mut schema = Self::new(&plan.workload.options, plan.seed);
        schema.dialect = Dialect::from_target(&plan.target);
        schema.database = plan.target.database().to_owned();
        if plan.workload.name == WorkloadName::Sql {
            schema.options.tables = 0; // User-defined tables are not part of this schema.
        }
        if plan.workload.name == WorkloadName::BulkInsert {
            schema.bulk = true;
            schema.options.tables = plan.load.connections;
            schema.options.table_size = 0;
            schema.options.secondary = false;
            schema.options.create_secondary = false;
        }
        schema
    }

    /// Replaces the statements for marked tables by `statements`, if there are any.
    pub fn with_statements(mut self, statements: Option<&Arc<dyn TableStatements>>) -> Self {
        if let Some(statements) = statements {
            self.options.table_size = statements.rows();
            self.keys = statements.keys().clone();
        }
        self.statements = statements.cloned();
        self
    }

    /// Number of tables.
    pub fn tables(&self) -> u32 {
        self.options.tables
    }

    /// Rows of each table.
    pub fn rows(&self) -> u64 {
        self.options.table_size
    }

    /// The end of a table's marks, which names the table.
    pub fn hash(&self, table: u32) -> String {
        table_hash(&self.database, &self.name(table))
    }

    /// The mark of a table that is not complete.
    pub fn loading_mark(&self, table: u32) -> String {
        format!("{LOADING}{}", self.hash(table))
    }

    /// The mark of a complete table.
    pub fn mark(&self, table: u32) -> String {
        format!("{}{}", self.specification(), self.hash(table))
    }

    /// Every option on which the content or structure of the tables depends, as their marks name it.
    pub fn specification(&self) -> String {
        let OltpOptions {
            table_size,
            auto_inc,
            secondary,
            create_secondary,
            mysql_storage_engine: engine,
            ..
        } = &self.options;
        let engine = if self.is_pg() { String::new() } else { format!(" engine={engine}") };
        if self.bulk {
            return format!("{MARK} v1 bulk_insert{engine}");
        }
        format!(
            "{MARK} v1 seed={} rows={table_size} auto_inc={auto_inc} secondary={secondary} k_index={create_secondary}{engine}",
            self.seed
        )
    }

    /// The tables for `describe`, as they are after `prepare`.
    pub(crate) fn describe(&self) -> TableGroup {
        let index = |column: &str, primary| IndexDescription { columns: vec![column.into()], primary };
        let on_k = self.options.create_secondary.then(|| index("k", false));
        TableGroup {
            names: (1..=self.tables()).map(|table| self.name(table)).collect(),
            engine: (!self.is_pg()).then(|| self.options.mysql_storage_engine.to_lowercase()),
            columns: self.columns(),
            indexes: Some([index("id", !self.options.secondary)].into_iter().chain(on_k).collect()),
            rows: self.rows(),
        }
    }

    /// The columns of each table. Column k contains ids, so it has the type of id.
    fn columns(&self) -> Vec<ColumnDescription> {
        let number = if self.is_wide() { "bigint" } else { "int" };
        let columns =
            [("id", number, None), ("k", number, None), ("c", "char", Some(120)), ("pad", "char", Some(60))];
        let describe = |(name, kind, length): (&str, &str, Option<u32>)| ColumnDescription {
            name: name.into(),
            r#type: Some(kind.into()),
            length,
            nullable: false,
            auto_increment: name == "id" && self.options.auto_inc && !self.bulk,
        };
        columns.into_iter().take(if self.bulk { 2 } else { 4 }).map(describe).collect()
    }

    /// CREATE TABLE, with the mark of a table that is being loaded.
    pub fn create(&self, table: u32) -> String {
        if let Some(statements) = &self.statements {
            return statements.create(table);
        }
        let mut parts: Vec<String> =
            self.columns().iter().map(|column| self.column_definition(column)).collect();
        if !self.options.secondary {
            parts.push("PRIMARY KEY (id)".into());
        } else if !self.is_pg() {
            parts.push("KEY xid (id)".into());
        }
        let (name, parts) = (self.name(table), parts.join(", "));
        if self.is_pg() {
            return format!(
                "CREATE TABLE {name}({parts}); {}",
                self.pg_comment(table, &self.loading_mark(table))
            );
        }
        let engine = &self.options.mysql_storage_engine;
        format!("CREATE TABLE {name}({parts}) ENGINE = {engine} COMMENT = '{}'", self.loading_mark(table))
    }

    fn column_definition(&self, column: &ColumnDescription) -> String {
        let kind = match (column.length, self.is_wide()) {
            (Some(length), _) => format!("CHAR({length})"),
            (None, true) => "BIGINT".into(),
            (None, false) => "INTEGER".into(),
        };
        match (column.name.as_str(), column.auto_increment) {
            ("id", true) if self.is_pg() => if self.is_wide() { "id BIGSERIAL" } else { "id SERIAL" }.into(),
            ("id", true) => format!("id {kind} NOT NULL AUTO_INCREMENT"),
            ("id", false) => format!("id {kind} NOT NULL"),
            ("k", _) => format!("k {kind} DEFAULT '0' NOT NULL"),
            (name, _) => format!("{name} {kind} DEFAULT '' NOT NULL"),
        }
    }

    /// Whether ids need 64 bits.
    pub(crate) fn is_wide(&self) -> bool {
        self.options.table_size > i32::MAX as u64
    }

    fn is_pg(&self) -> bool {
        self.dialect == Dialect::Postgresql
    }

    /// Whether `prepare` creates the tables empty, because the workload itself fills them.
    pub fn has_empty_tables(&self) -> bool {
        self.bulk
    }

    /// The statement that creates the index on k, if the options request it, or another index that is created after
    /// loading.
    pub fn create_index(&self, table: u32) -> Option<String> {
        if let Some(statements) = &self.statements {
            return statements.create_index(table);
        }
        if self.is_pg() {
            return self.pg_create_index(table);
        }
        let name = self.name(table);
        self.options.create_secondary.then(|| format!("CREATE INDEX k_{table} ON {name}(k)"))
    }

    /// The statement that marks a table as complete.
    pub fn set_mark(&self, table: u32) -> String {
        if self.is_pg() {
            return self.pg_set_mark(table);
        }
        format!("ALTER TABLE {} COMMENT = '{}'", self.name(table), self.mark(table))
    }

    /// The statement that sets a table's sequence after rows with explicit ids were loaded. [`Schema::set_mark`]
    /// includes it.
    pub fn set_sequence(&self, table: u32) -> Option<String> {
        if self.is_pg() { self.pg_set_sequence(table) } else { None }
    }

    /// Drops a table. A marked table must exist; [`TableStatements::drop_table`] accepts a missing table.
    pub fn drop_table(&self, table: u32) -> String {
        match &self.statements {
            Some(statements) => statements.drop_table(table),
            None => format!("DROP TABLE {}", self.name(table)),
        }
    }

    /// Refreshes the optimiser's statistics.
    pub fn analyze(&self, table: u32) -> String {
        if self.is_pg() {
            // As in pgbench: without VACUUM, the first statements that read the table would do its work.
            return format!("VACUUM (ANALYZE) {}", self.name(table));
        }
        format!("ANALYZE TABLE {}", self.name(table))
    }

    /// Statements that read a table and its indexes completely, for `prewarm`.
    pub fn scans(&self, table: u32) -> Vec<String> {
        let name = self.name(table);
        let column = if self.bulk { "k" } else { "LENGTH(pad)" };
        if let Some(statements) = &self.statements {
            return statements.scans(table);
        }
        if self.is_pg() {
            return self.pg_scans(table);
        }
        let mut scans = vec![format!("SELECT SUM({column}) FROM {name}")];
        if self.options.secondary {
            scans.push(format!("SELECT SUM(id) FROM {name} FORCE INDEX (xid)"));
        }
        if self.options.create_secondary {
            scans.push(format!("SELECT SUM(k) FROM {name} FORCE INDEX (k_{table})"));
        }
        scans
    }

    /// Statements that each connection sends before the statements of [`Schema::scans`].
    pub fn before_scans(&self) -> &'static [&'static str] {
        self.statements.as_ref().map_or(&[], |statements| statements.before_scans())
    }

    /// Selects name and comment of the existing tables with these names.
    pub fn existing_tables_sql(&self) -> String {
        if self.is_pg() {
            return self.pg_existing_tables_sql();
        }
        "SELECT table_name, table_comment FROM information_schema.tables \
         WHERE table_schema = DATABASE() AND table_name LIKE 'sbtest%'"
            .into()
    }
}

impl Tables for Schema {
    type Rows = Rows;

    fn name(&self, table: u32) -> String {
        format!("sbtest{table}")
    }

    /// The statement that loads rows. The file name appears only in MySQL's logs; no file is opened. The separators are
    /// plain characters, which mean the same in every SQL mode, and digits are the same in every character set.
    fn load_sql(&self, table: u32) -> String {
        if self.is_pg() {
            return self.pg_copy(table);
        }
        format!(
            "LOAD DATA LOCAL INFILE 'dbdyno' INTO TABLE {} CHARACTER SET binary \
             FIELDS TERMINATED BY ',' ESCAPED BY '' LINES TERMINATED BY ';' (id, k, c, pad)",
            self.name(table)
        )
    }

    fn insert_sql(&self, table: u32) -> (String, bool) {
        match &self.statements {
            Some(statements) => statements.insert(table),
            None => (format!("INSERT INTO {} (id, k, c, pad) VALUES", self.name(table)), true),
        }
    }

    fn rows_from(&self, table: u32, first: u64, last: u64) -> Rows {
        let format = match (self.dialect, self.is_wide()) {
            (Dialect::Mysql, _) => BulkFormat::Lines,
            (Dialect::Postgresql, false) => BulkFormat::Binary,
            (Dialect::Postgresql, true) => BulkFormat::WideBinary,
        };
        Rows::new(self.seed, table, (self.rows(), &self.keys), first, last).with_format(format)
    }

    fn has_index(&self) -> bool {
        self.options.create_secondary
    }

    fn statement_rows(&self, _table: u32) -> u64 {
        STATEMENT_ROWS
    }

    fn can_warn(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bulk_insert_has_an_empty_table_for_each_connection() {
        let plan = serde_json::json!({
            "schema": 1, "target": {"protocol": "null"}, "workload": {"name": "bulk_insert"},
            "load": {"connections": 7}, "phases": {"measure_us": 1_000_000}, "seed": 1
        });
        let schema = Schema::from_plan(&serde_json::from_value(plan).unwrap());
        assert_eq!((schema.tables(), schema.rows(), schema.has_index()), (7, 0, false));
        assert!(schema.create(7).starts_with("CREATE TABLE sbtest7(id INTEGER NOT NULL, k INTEGER"));
        assert_eq!(schema.create_index(7), None);
        assert_eq!(schema.specification(), "dbdyno v1 bulk_insert engine=innodb");
    }

    #[test]
    fn ids_have_64_bits_if_32_are_too_few() {
        let create = |table_size| Schema::new(&OltpOptions { table_size, ..Default::default() }, 1).create(1);
        assert!(create(i32::MAX as u64).contains("id INTEGER NOT NULL AUTO_INCREMENT"));
        assert!(create(i32::MAX as u64 + 1).contains("id BIGINT NOT NULL AUTO_INCREMENT"));
    }

    #[test]
    fn the_mark_contains_seed_and_size() {
        let mark =
            |size, seed| Schema::new(&OltpOptions { table_size: size, ..Default::default() }, seed).mark(1);
        assert_ne!(mark(10, 1), mark(11, 1));
        assert_ne!(mark(10, 1), mark(10, 2));
        assert!(mark(10, 1).starts_with(MARK));
    }
}
