//! SQL of the OLTP tables for PostgreSQL. As in MySQL, the marks are in the tables' comments.

use crate::schema::Schema;
use crate::tables::Tables;

/// Forces index scans, so that pages stay in shared buffers; a sequential scan of a large table uses only a small ring
/// buffer.
const THROUGH_INDEX: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off; \
                             SET LOCAL max_parallel_workers_per_gather = 0;";

impl Schema {
    pub(crate) fn pg_comment(&self, table: u32, mark: &str) -> String {
        format!("COMMENT ON TABLE {} IS '{mark}'", self.name(table))
    }

    /// Marks a table as complete, and sets its sequence to continue after the last row.
    pub(crate) fn pg_set_mark(&self, table: u32) -> String {
        let comment = self.pg_comment(table, &self.mark(table));
        match self.set_sequence(table) {
            Some(sequence) => format!("{sequence}; {comment}"),
            None => comment,
        }
    }

    pub(crate) fn pg_set_sequence(&self, table: u32) -> Option<String> {
        let (name, rows) = (self.name(table), self.rows());
        let numbers_rows = self.options.auto_inc && !self.bulk && rows > 0;
        numbers_rows.then(|| format!("SELECT setval(pg_get_serial_sequence('{name}', 'id'), {rows})"))
    }

    pub(crate) fn pg_create_index(&self, table: u32) -> Option<String> {
        let name = self.name(table);
        let indexes = [
            self.options.secondary.then(|| format!("CREATE INDEX xid_{table} ON {name}(id)")),
            self.options.create_secondary.then(|| format!("CREATE INDEX k_{table} ON {name}(k)")),
        ];
        let indexes: Vec<String> = indexes.into_iter().flatten().collect();
        (!indexes.is_empty()).then(|| indexes.join("; "))
    }

    /// Selects name and comment of the existing tables, views and foreign tables with these names.
    pub(crate) fn pg_existing_tables_sql(&self) -> String {
        "SELECT c.relname, obj_description(c.oid, 'pg_class') FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = current_schema() AND c.relname LIKE 'sbtest%' AND c.relkind IN ('r', 'p', 'v', 'm', 'f')"
            .into()
    }

    pub(crate) fn pg_scans(&self, table: u32) -> Vec<String> {
        let name = self.name(table);
        let column = if self.bulk { "k" } else { "pad" };
        let value = if self.bulk { "k" } else { "LENGTH(pad)" };
        let scan = |value: &str, column: &str, order: &str| {
            format!(
                "{THROUGH_INDEX} SELECT SUM({value}) FROM (SELECT {column} FROM {name} ORDER BY {order}) rows"
            )
        };
        let mut scans = vec![scan(value, column, "id")];
        if self.options.create_secondary {
            scans.push(scan("k", "k", "k"));
        }
        scans
    }

    /// COPY for the rows that [`crate::rows::Rows::write_binary`] writes.
    pub(crate) fn pg_copy(&self, table: u32) -> String {
        format!("COPY {} (id, k, c, pad) FROM STDIN (FORMAT binary)", self.name(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str, options: serde_json::Value) -> Schema {
        let plan = serde_json::json!({
            "schema": 1, "target": {"protocol": "postgresql", "endpoints": [], "user": "u", "database": "d"},
            "workload": {"name": name, "options": options}, "load": {"connections": 3},
            "phases": {"measure_us": 0}, "seed": 1
        });
        Schema::from_plan(&serde_json::from_value(plan).unwrap())
    }

    #[test]
    fn tables_are_marked_by_their_comment() {
        let schema = schema("oltp_read_only", serde_json::json!({"table_size": 10}));
        let create = schema.create(2);
        assert!(
            create.starts_with("CREATE TABLE sbtest2(id SERIAL, k INTEGER DEFAULT '0' NOT NULL, "),
            "{create}"
        );
        assert!(
            create.contains("PRIMARY KEY (id)); COMMENT ON TABLE sbtest2 IS 'dbdyno loading table="),
            "{create}"
        );
        let mark = schema.set_mark(2);
        assert!(
            mark.starts_with("SELECT setval(pg_get_serial_sequence('sbtest2', 'id'), 10); COMMENT ON"),
            "{mark}"
        );
        assert!(!mark.contains("engine"), "{mark}");
    }

    #[test]
    fn a_secondary_index_takes_the_place_of_the_primary_key() {
        let schema = schema("oltp_read_only", serde_json::json!({"secondary": true, "auto_inc": false}));
        assert!(!schema.create(1).contains("PRIMARY KEY"));
        assert!(schema.create(1).contains("id INTEGER NOT NULL,"));
        let index = schema.create_index(1).unwrap();
        assert_eq!(index, "CREATE INDEX xid_1 ON sbtest1(id); CREATE INDEX k_1 ON sbtest1(k)");
        assert_eq!(schema.set_sequence(1), None);
    }

    #[test]
    fn ids_get_wider_when_rows_need_it() {
        let schema = schema("oltp_read_only", serde_json::json!({"table_size": 3_000_000_000u64}));
        assert!(schema.create(1).contains("id BIGSERIAL, k BIGINT"), "{}", schema.create(1));
    }

    #[test]
    fn bulk_insert_has_a_table_for_each_connection() {
        let schema = schema("bulk_insert", serde_json::json!({}));
        assert_eq!((schema.tables(), schema.create_index(1)), (3, None));
        assert_eq!(schema.specification(), "dbdyno v1 bulk_insert");
    }
}
