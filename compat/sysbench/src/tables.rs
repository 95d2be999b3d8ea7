//! The statements of `prepare`, `prewarm` and `cleanup`, which are exactly sysbench's. Tables prepared by dbdyno therefore
//! work with sysbench and vice versa, and error messages show sysbench's statements.

use dbdyno_runner::TableStatements;
use dbdyno_schema::Plan;
use dbdyno_schema::plan::{Distribution, OltpOptions, WorkloadName};

/// sysbench's session settings before it scans tables. They keep temporary tables in memory.
const BEFORE_SCANS: [&str; 2] =
    ["SET tmp_table_size=2*1024*1024*1024", "SET max_heap_table_size=2*1024*1024*1024"];

#[derive(Debug)]
pub struct Tables {
    workload: WorkloadName,
    options: OltpOptions,
    keys: Distribution,
    postgresql: bool,
    /// Text to append to CREATE TABLE, after the storage engine.
    create_options: String,
}

impl Tables {
    pub fn new(plan: &Plan, create_options: &str) -> Self {
        Self {
            workload: plan.workload.name,
            options: plan.workload.options.clone(),
            keys: plan.workload.keys.clone(),
            postgresql: plan.target.is_postgresql(),
            create_options: create_options.into(),
        }
    }

    /// The SQL type of the columns id and k.
    fn integer_type(&self) -> &'static str {
        if self.rows() > i32::MAX as u64 { "BIGINT" } else { "INTEGER" }
    }

    /// The type and the constraints of the column id.
    fn id_column(&self) -> String {
        match (self.postgresql, self.options.auto_inc, self.integer_type()) {
            (true, true, "BIGINT") => "BIGSERIAL".into(),
            (true, true, _) => "SERIAL".into(),
            (false, true, integer) => format!("{integer} NOT NULL AUTO_INCREMENT"),
            (_, false, integer) => format!("{integer} NOT NULL"),
        }
    }
}

impl TableStatements for Tables {
    fn rows(&self) -> u64 {
        match self.workload {
            WorkloadName::BulkInsert => 0,
            // Loaded ids could collide with those that the run inserts, so no rows are loaded.
            WorkloadName::OltpInsert if !self.options.auto_inc => 0,
            _ => self.options.table_size,
        }
    }

    fn keys(&self) -> &Distribution {
        &self.keys
    }

    fn create(&self, table: u32) -> String {
        if self.workload == WorkloadName::BulkInsert {
            return format!(
                "        CREATE TABLE IF NOT EXISTS sbtest{table} (\n          id INTEGER NOT NULL,\n          \
                 k INTEGER DEFAULT '0' NOT NULL,\n          PRIMARY KEY (id))"
            );
        }
        let options = &self.options;
        let (id, integer, create_options) = (self.id_column(), self.integer_type(), &self.create_options);
        let engine = match self.postgresql {
            true => String::new(),
            false => format!("/*! ENGINE = {} */", options.mysql_storage_engine),
        };
        let key = if options.secondary { "KEY xid" } else { "PRIMARY KEY" };
        format!(
            "CREATE TABLE sbtest{table}(\n  id {id},\n  k {integer} DEFAULT '0' NOT NULL,\n  \
             c CHAR(120) DEFAULT '' NOT NULL,\n  pad CHAR(60) DEFAULT '' NOT NULL,\n  {key} (id)\n) {engine} {create_options}"
        )
    }

    fn insert(&self, table: u32) -> (String, bool) {
        if self.options.auto_inc {
            (format!("INSERT INTO sbtest{table}(k, c, pad) VALUES"), false)
        } else {
            (format!("INSERT INTO sbtest{table}(id, k, c, pad) VALUES"), true)
        }
    }

    fn create_index(&self, table: u32) -> Option<String> {
        let has_index = self.options.create_secondary && self.workload != WorkloadName::BulkInsert;
        has_index.then(|| format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))
    }

    fn before_scans(&self) -> &'static [&'static str] {
        &BEFORE_SCANS
    }

    /// The statements of `prewarm`, which supports only MySQL.
    fn scans(&self, table: u32) -> Vec<String> {
        let rows = self.rows();
        vec![
            format!("ANALYZE TABLE sbtest{table}"),
            format!("SELECT AVG(id) FROM (SELECT * FROM sbtest{table} FORCE KEY (PRIMARY) LIMIT {rows}) t"),
            format!("SELECT COUNT(*) FROM (SELECT * FROM sbtest{table} WHERE k LIKE '%0%' LIMIT {rows}) t"),
        ]
    }

    fn drop_table(&self, table: u32) -> String {
        format!("DROP TABLE IF EXISTS sbtest{table}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mysql(name: &str, options: serde_json::Value) -> Tables {
        tables(serde_json::json!({"protocol": "null"}), name, options, "")
    }

    fn tables(target: serde_json::Value, name: &str, options: serde_json::Value, create: &str) -> Tables {
        let plan = serde_json::json!({
            "schema": 1, "target": target, "workload": {"name": name, "options": options},
            "load": {"connections": 3}, "phases": {"measure_us": 0}, "seed": 1
        });
        Tables::new(&serde_json::from_value(plan).unwrap(), create)
    }

    fn postgresql() -> serde_json::Value {
        serde_json::json!({"protocol": "postgresql", "endpoints": [], "user": "u", "database": "d"})
    }

    #[test]
    fn mysql_create_table_matches_sysbench() {
        let tables = mysql("oltp_read_only", serde_json::json!({"secondary": true, "auto_inc": false}));
        let create = tables.create(7);
        let lines: Vec<&str> = create.split('\n').collect();
        assert_eq!(lines[..2], ["CREATE TABLE sbtest7(", "  id INTEGER NOT NULL,"]);
        assert_eq!(lines[5..], ["  KEY xid (id)", ") /*! ENGINE = innodb */ "]);
        assert_eq!(tables.insert(7), ("INSERT INTO sbtest7(id, k, c, pad) VALUES".into(), true));
        assert!(!create.contains("dbdyno"), "no comment of dbdyno");
    }

    #[test]
    fn postgresql_create_table_matches_sysbench() {
        let options = serde_json::json!({"secondary": true});
        let create = tables(postgresql(), "oltp_read_only", options.clone(), "").create(7);
        let lines: Vec<&str> = create.split('\n').collect();
        assert_eq!(lines[..2], ["CREATE TABLE sbtest7(", "  id SERIAL,"]);
        assert_eq!(lines[5..], ["  KEY xid (id)", ")  "]);
        let index = tables(postgresql(), "oltp_read_only", options, "").create_index(7);
        assert_eq!(index.as_deref(), Some("CREATE INDEX k_7 ON sbtest7(k)"));
    }

    #[test]
    fn ids_are_bigint_for_many_rows() {
        let many = serde_json::json!({"table_size": 3_000_000_000_u64});
        let create = mysql("oltp_read_only", many.clone()).create(1);
        assert!(create.contains("  id BIGINT NOT NULL AUTO_INCREMENT,\n  k BIGINT DEFAULT"), "{create}");
        let create = tables(postgresql(), "oltp_read_only", many, "").create(1);
        assert!(create.contains("  id BIGSERIAL,\n  k BIGINT DEFAULT"), "{create}");
    }

    #[test]
    fn create_table_options_are_appended() {
        for (target, end) in [
            (serde_json::json!({"protocol": "null"}), "\n) /*! ENGINE = innodb */ ROW_FORMAT=dynamic"),
            (postgresql(), "\n)  ROW_FORMAT=dynamic"),
        ] {
            let created =
                tables(target, "oltp_read_only", serde_json::json!({}), "ROW_FORMAT=dynamic").create(1);
            assert!(created.ends_with(end), "{created}");
        }
    }

    #[test]
    fn tables_with_auto_inc_get_rows_without_ids() {
        let tables = mysql("oltp_read_only", serde_json::json!({"table_size": 10}));
        assert_eq!(tables.insert(1), ("INSERT INTO sbtest1(k, c, pad) VALUES".into(), false));
        assert_eq!(tables.scans(1).len(), 3);
        assert!(tables.scans(1)[1].ends_with("FORCE KEY (PRIMARY) LIMIT 10) t"), "{:?}", tables.scans(1));
    }

    #[test]
    fn oltp_insert_without_auto_inc_loads_no_rows() {
        assert_eq!(mysql("oltp_insert", serde_json::json!({"auto_inc": false})).rows(), 0);
        assert_eq!(mysql("oltp_insert", serde_json::json!({})).rows(), 10_000);
    }

    #[test]
    fn bulk_insert_loads_no_rows_and_creates_no_index() {
        let tables = mysql("bulk_insert", serde_json::json!({}));
        assert_eq!((tables.rows(), tables.create_index(1)), (0, None));
        let begin = "        CREATE TABLE IF NOT EXISTS sbtest3 (\n          id INTEGER";
        assert!(tables.create(3).starts_with(begin), "{}", tables.create(3));
    }
}
