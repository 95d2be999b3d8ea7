//! The tables as sysbench's own `prepare` makes them, to the letter: either tool's `prepare` serves the other's run, and
//! an error shows the statement that somebody looks for who knows sysbench.

use dbdyno_door::plan::LoadingForm;

use crate::schema::Schema;
use crate::tables::Tables;

/// What sysbench sets before it reads tables: results that are sorted or grouped stay in memory.
const BEFORE_SCANS: [&str; 2] =
    ["SET tmp_table_size=2*1024*1024*1024", "SET max_heap_table_size=2*1024*1024*1024"];

impl Schema {
    pub(crate) fn create_as_sysbench(&self, table: u32) -> String {
        if self.bulk {
            return format!(
                "        CREATE TABLE IF NOT EXISTS sbtest{table} (\n          id INTEGER NOT NULL,\n          \
                 k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
            );
        }
        let options = &self.options;
        let (integer, engine) = (self.integer(), &options.mysql_storage_engine);
        let auto_inc = if options.auto_inc { " AUTO_INCREMENT" } else { "" };
        let key = if options.secondary { "KEY xid" } else { "PRIMARY KEY" };
        format!(
            "CREATE TABLE sbtest{table}(\n  id {integer} NOT NULL{auto_inc},\n  k {integer} DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) \
             /*! ENGINE = {engine} */ {more}",
            more = self.table_options
        )
    }

    /// The statements of `prewarm`.
    pub(crate) fn scans_as_sysbench(&self, table: u32) -> Vec<String> {
        let (name, rows) = (self.name(table), self.rows());
        vec![
            self.analyze(table),
            format!("SELECT AVG(id) FROM (SELECT * FROM {name} FORCE KEY (PRIMARY) LIMIT {rows}) t"),
            format!("SELECT COUNT(*) FROM (SELECT * FROM {name} WHERE k LIKE '%0%' LIMIT {rows}) t"),
        ]
    }

    /// The beginning of an INSERT up to its values, and whether those have ids.
    pub(crate) fn insert_words(&self, table: u32) -> (String, bool) {
        let name = self.name(table);
        match self.form {
            LoadingForm::Marked => (format!("INSERT INTO {name} (id, k, c, pad) VALUES"), true),
            LoadingForm::Sysbench if self.options.auto_inc => {
                (format!("INSERT INTO {name}(k, c, pad) VALUES"), false)
            }
            LoadingForm::Sysbench => (format!("INSERT INTO {name}(id, k, c, pad) VALUES"), true),
        }
    }

    /// Drops a table, whoever made it.
    pub fn drop_if_there(&self, table: u32) -> String {
        format!("DROP TABLE IF EXISTS {}", self.name(table))
    }

    /// Statements that sysbench sends once before those of [`Schema::scans`].
    pub fn before_scans(&self) -> &'static [&'static str] {
        match self.form {
            LoadingForm::Sysbench if self.speaks_mysql() => &BEFORE_SCANS,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str, options: serde_json::Value) -> Schema {
        let plan = serde_json::json!({
            "schema": 1, "target": {"protocol": "null"}, "workload": {"name": name, "options": options},
            "load": {"connections": 3}, "phases": {"measure_us": 0}, "seed": 1, "loading": {"form": "sysbench"}
        });
        Schema::of(&serde_json::from_value(plan).unwrap())
    }

    #[test]
    fn tables_are_written_line_by_line() {
        let schema = schema("oltp_read_only", serde_json::json!({"secondary": true, "auto_inc": false}));
        let create = schema.create(7);
        let lines: Vec<&str> = create.split('\n').collect();
        assert_eq!(lines[..2], ["CREATE TABLE sbtest7(", "  id INTEGER NOT NULL,"]);
        assert_eq!(lines[5..], ["  KEY xid (id)", ") /*! ENGINE = innodb */ "]);
        assert_eq!(schema.insert(7), ("INSERT INTO sbtest7(id, k, c, pad) VALUES".into(), true));
        assert!(!create.contains("dbdyno"), "no mark");
    }

    #[test]
    fn more_options_stand_at_the_end() {
        for (protocol, end) in [
            (serde_json::json!({"protocol": "null"}), "\n) /*! ENGINE = innodb */ ROW_FORMAT=dynamic"),
            (
                serde_json::json!({"protocol": "postgresql", "endpoints": [], "user": "u", "database": "d"}),
                "\n)  ROW_FORMAT=dynamic",
            ),
        ] {
            let plan = serde_json::json!({
                "schema": 1, "target": protocol, "workload": {"name": "oltp_read_only"}, "seed": 1,
                "load": {"connections": 1}, "phases": {"measure_us": 0},
                "loading": {"form": "sysbench", "create_table_options": "ROW_FORMAT=dynamic"}
            });
            let created = Schema::of(&serde_json::from_value(plan).unwrap()).create(1);
            assert!(created.ends_with(end), "{created}");
        }
    }

    #[test]
    fn rows_without_ids_go_into_tables_that_number_them() {
        let schema = schema("oltp_read_only", serde_json::json!({"table_size": 10}));
        assert_eq!(schema.insert(1), ("INSERT INTO sbtest1(k, c, pad) VALUES".into(), false));
        assert_eq!(schema.scans(1).len(), 3);
        assert!(schema.scans(1)[1].ends_with("FORCE KEY (PRIMARY) LIMIT 10) t"), "{:?}", schema.scans(1));
    }

    #[test]
    fn oltp_insert_begins_with_empty_tables_where_it_numbers_the_rows() {
        assert_eq!(schema("oltp_insert", serde_json::json!({"auto_inc": false})).rows(), 0);
        assert_eq!(schema("oltp_insert", serde_json::json!({})).rows(), 10_000);
    }

    #[test]
    fn bulk_insert_has_a_table_for_each_connection() {
        let schema = schema("bulk_insert", serde_json::json!({}));
        assert_eq!((schema.tables(), schema.rows(), schema.create_index(1)), (3, 0, None));
        assert!(
            schema
                .create(3)
                .starts_with("        CREATE TABLE IF NOT EXISTS sbtest3 (\n          id INTEGER")
        );
    }
}
