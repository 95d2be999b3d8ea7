//! Marks in table comments, which show whether a table contains the rows of the plan.
//!
//! The table's comment belongs to the user, so dbdyno appends the mark to it. dbdyno marks only empty tables as
//! unfinished. All rows of an unfinished table were therefore loaded by dbdyno, which may delete them.

use dbdyno_schema::plan::{ColumnSource, GeneratedTable};

use super::GeneratedTables;
use crate::kind::Dialect;
use crate::table_marks::{LOADING, MARK, SETUP, table_hash};
use crate::tables::Tables;

/// State of a table according to its comment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableState {
    /// No mark: `prepare` may fill the table if it is empty.
    Unmarked,
    /// A load was interrupted; dbdyno may delete the table's rows.
    Unfinished,
    /// The table contains the rows of this plan.
    Complete,
    /// The table contains the rows of another plan, which has this mark.
    Other(String),
}

impl GeneratedTables {
    /// What the mark of a complete table says of its content. It depends on everything that the content depends on.
    pub fn specification(&self, table: u32) -> String {
        let spec = &self.table(table).spec;
        let mut described = serde_json::to_string(spec).expect("a specification is JSON");
        for column in &spec.columns {
            self.describe_parent(column.values.clone(), &mut described);
        }
        if let Some(parent) = &spec.parent {
            let parent = self.tables.iter().map(|table| &table.spec).find(|spec| spec.name == parent.table);
            described.push_str(&serde_json::to_string(&parent).expect("a specification is JSON"));
        }
        let sum = crc32fast::hash(described.as_bytes());
        format!("{MARK} v1 generated seed={} rows={} columns={sum:08x}", self.seed, spec.rows)
    }

    /// Appends to `described` everything that the values of a foreign key depend on.
    fn describe_parent(&self, source: ColumnSource, described: &mut String) {
        let mut next = Some(source);
        while let Some(ColumnSource::ForeignKey { table, column, .. }) = next {
            let parent = self.tables.iter().map(|table| &table.spec).find(|spec| spec.name == table);
            next = parent.and_then(|spec: &GeneratedTable| {
                let parent = spec.columns.iter().find(|one| one.name == column)?;
                described.push_str(&format!("{} {}", spec.rows, serde_json::to_string(parent).ok()?));
                Some(parent.values.clone())
            });
        }
    }

    /// A mark that names its table.
    fn full_mark(&self, table: u32, mark: &str) -> String {
        format!("{mark}{}", table_hash(&self.database, &self.name(table)))
    }

    /// The state of a table with this comment.
    pub fn state(&self, table: u32, comment: &str) -> TableState {
        let (_, mark) = split(comment);
        match mark {
            None => TableState::Unmarked,
            // Statements of setup created the table, and may have filled it.
            Some(mark) if mark.starts_with(SETUP) => TableState::Unmarked,
            Some(mark) if mark == self.full_mark(table, LOADING) => TableState::Unfinished,
            // Marks of earlier versions do not name the table.
            Some(mark)
                if mark == self.specification(table)
                    || mark == self.full_mark(table, &self.specification(table)) =>
            {
                TableState::Complete
            }
            Some(mark) => TableState::Other(mark.to_owned()),
        }
    }

    /// The statement that marks the table as complete, or as being loaded, at the end of its comment.
    pub fn set_mark(&self, table: u32, comment: &str, complete: bool) -> String {
        let text = if complete { self.specification(table) } else { LOADING.to_owned() };
        let mark = self.full_mark(table, &text);
        let (user_comment, _) = split(comment);
        let separator = if user_comment.is_empty() { "" } else { " " };
        let text = format!("{user_comment}{separator}{mark}").replace('\'', "''");
        let name = self.quote(&self.name(table));
        match self.dialect {
            Dialect::Mysql => format!("ALTER TABLE {name} COMMENT = '{}'", text.replace('\\', "\\\\")),
            Dialect::Postgresql => format!("COMMENT ON TABLE {name} IS '{text}'"),
        }
    }

    /// Selects the comment of a table, and whether concurrent streams that load it block each other. No row if the
    /// table does not exist.
    ///
    /// MariaDB writes the AUTO_INCREMENT counter into the table's root page for every row, even if the row has an
    /// explicit value (MDEV-6076). Two streams wait for each other at that page: together they loaded half as fast as
    /// one stream.
    pub fn comment_sql(&self, table: u32) -> String {
        let name = self.name(table);
        match self.dialect {
            Dialect::Mysql => format!(
                "SELECT table_comment, auto_increment IS NOT NULL AND VERSION() LIKE '%MariaDB%' \
                 FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = '{name}' AND table_type = 'BASE TABLE'"
            ),
            Dialect::Postgresql => format!(
                "SELECT obj_description(c.oid, 'pg_class'), 0 FROM pg_class c \
                 WHERE c.oid = to_regclass('\"{name}\"') AND c.relkind IN ('r', 'p')"
            ),
        }
    }

    /// Selects at most one row of a table, to check whether it is empty.
    pub fn any_row_sql(&self, table: u32) -> String {
        format!("SELECT 1 FROM {} LIMIT 1", self.quote(&self.name(table)))
    }

    /// Two statements, each of which removes all rows of a table: a fast one, and one that also works if foreign keys
    /// refer to the table.
    pub fn delete_rows_sql(&self, table: u32) -> [String; 2] {
        let name = self.quote(&self.name(table));
        [format!("TRUNCATE TABLE {name}"), format!("DELETE FROM {name}")]
    }
}

/// Splits a comment into the user's text and the mark.
fn split(comment: &str) -> (&str, Option<&str>) {
    let begins = [LOADING.to_owned(), SETUP.to_owned(), format!("{MARK} v1 generated ")];
    match begins.iter().filter_map(|begin| comment.rfind(begin)).max() {
        Some(at) => (comment[..at].trim_end(), Some(comment[at..].trim_end())),
        None => (comment, None),
    }
}
