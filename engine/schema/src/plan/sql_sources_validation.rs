//! Checks what the columns of generated tables take from other columns of the row, and from the parent's row.

use super::{ColumnSource, GeneratedTable};

impl GeneratedTable {
    /// The problem of the parent table, if any; `earlier` are the tables listed before this one.
    pub(super) fn parent_problem(&self, earlier: &[GeneratedTable]) -> Option<String> {
        let parent = self.parent.as_ref()?;
        let Some(table) = earlier.iter().find(|table| table.name == parent.table) else {
            return Some(format!(
                "has rows for each row of {}, which is not listed before it; put that table first",
                parent.table
            ));
        };
        if table.parent.is_some() {
            return Some(format!(
                "has rows for each row of {}, which itself has rows for each row of a table; use that table",
                parent.table
            ));
        }
        let is_count = |column: &&super::GeneratedColumn| {
            let low = match column.values {
                ColumnSource::Integer { low, .. }
                | ColumnSource::Cycle { low, .. }
                | ColumnSource::Shuffle { low, .. } => low,
                _ => -1,
            };
            column.name == parent.rows && column.nulls == 0.0 && low >= 0
        };
        table.columns.iter().find(is_count).is_none().then(|| {
            format!(
                "has {}.{} rows for each row of {}; that must be a column with integers from 0 and without nulls",
                parent.table, parent.rows, parent.table
            )
        })
    }

    /// Adds the problems of a source that takes values from other columns.
    pub(super) fn reference_problems(
        &self,
        source: &ColumnSource,
        key: &str,
        earlier: &[GeneratedTable],
        problems: &mut Vec<String>,
    ) {
        let parent = self.parent.as_ref();
        match source {
            ColumnSource::ChildNumber {} | ColumnSource::Parent { .. } if parent.is_none() => {
                problems
                    .push(format!("{key} needs the parent's row, but {} has no parent; set it", self.name));
            }
            ColumnSource::Parent { column } => {
                let table =
                    earlier.iter().find(|table| parent.is_some_and(|parent| parent.table == table.name));
                if table.is_some_and(|table| !table.columns.iter().any(|one| one.name == *column)) {
                    problems.push(format!(
                        "{key} takes the column {column} of the parent, which it does not have; add it"
                    ));
                }
            }
            ColumnSource::Below { column, then, otherwise, .. } => {
                if !self.has_integers(column, earlier) {
                    problems.push(format!(
                        "{key} depends on {column}, which is no other column of the table with integers and without nulls; \
                         use a sequence, integer, cycle, shuffle, child_number, or one of these of the parent"
                    ));
                }
                for source in [then, otherwise] {
                    let is_nested =
                        matches!(**source, ColumnSource::Below { .. } | ColumnSource::ForeignKey { .. });
                    if is_nested {
                        problems.push(format!(
                            "{key} has a foreign_key or another below inside below; use other sources"
                        ));
                    }
                    self.reference_problems(source, key, earlier, problems);
                }
            }
            _ => {}
        }
    }

    /// Whether the values of a column are integers in every row.
    fn has_integers(&self, name: &str, earlier: &[GeneratedTable]) -> bool {
        let Some(column) = self.columns.iter().find(|column| column.name == name) else { return false };
        match &column.values {
            _ if column.nulls > 0.0 => false,
            ColumnSource::Sequence { .. }
            | ColumnSource::Integer { .. }
            | ColumnSource::Cycle { .. }
            | ColumnSource::Shuffle { .. }
            | ColumnSource::ChildNumber {} => true,
            ColumnSource::Parent { column } => {
                let parent = self.parent.as_ref();
                let table =
                    earlier.iter().find(|table| parent.is_some_and(|parent| parent.table == table.name));
                // A table with a parent is not a parent, so this ends.
                table.is_some_and(|table| table.parent.is_none() && table.has_integers(column, &[]))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::SqlWorkload;

    fn problems(tables: Value) -> Vec<String> {
        let sql: SqlWorkload = serde_json::from_value(json!({"tables": tables, "transactions": []})).unwrap();
        sql.table_problems()
    }

    fn orders() -> Value {
        json!({"name": "orders", "rows": 10, "columns": [
            {"name": "id", "values": {"cycle": {"high": 5, "every": 2}}},
            {"name": "customer", "values": {"shuffle": {"high": 5, "of": 5}}},
            {"name": "lines", "values": {"integer": {"low": 0, "high": 2}}},
            {"name": "carrier", "values": {"below": {"column": "id", "bound": 4, "then": {"integer": {"high": 9}},
                "otherwise": {"one_of": {"values": [null]}}}}},
            {"name": "last", "values": {"words": {"words": ["A", "B"], "numbers": {"cycle": {"low": 0, "high": 3}}}}},
            {"name": "data", "values": {"text": {"length": {"low": 9, "high": 12}, "word": {"text": "WORD", "share": 0.1},
                "suffix": "11"}}}]})
    }

    #[test]
    fn columns_may_depend_on_others() {
        let lines = json!({"name": "line", "rows": 10, "parent": {"table": "orders", "rows": "lines"}, "columns": [
            {"name": "id", "values": {"parent": {"column": "id"}}},
            {"name": "number", "values": {"child_number": {}}},
            {"name": "amount", "values": {"below": {"column": "id", "bound": 4, "then": {"constant": {"value": 0}},
                "otherwise": {"decimal": {"low": 0, "high": 1}}}}}]});
        assert_eq!(problems(json!([orders(), lines])), [""; 0]);
    }

    #[test]
    fn wrong_references_are_reported() {
        let found = problems(json!([
            orders(),
            {"name": "a", "rows": 1, "parent": {"table": "orders", "rows": "carrier"}, "columns": [
                {"name": "x", "values": {"parent": {"column": "nothing"}}},
                {"name": "y", "values": {"below": {"column": "x", "bound": 1, "then": {"sequence": {}},
                    "otherwise": {"foreign_key": {"table": "orders", "column": "id"}}}}}]},
            {"name": "b", "rows": 1, "parent": {"table": "later", "rows": "n"}, "columns": [
                {"name": "x", "values": {"words": {"words": ["A"], "numbers": {"sequence": {}}}}}]},
            {"name": "c", "rows": 1, "parent": {"table": "a", "rows": "x"}, "columns": [
                {"name": "x", "values": {"cycle": {"low": 2, "high": 1, "every": 0}}},
                {"name": "t", "values": {"text": {"length": 2, "word": {"text": "LONG", "share": 2}}}}]},
            {"name": "d", "rows": 1, "columns": [{"name": "x", "values": {"child_number": {}}}]}
        ]));
        for part in [
            "a has orders.carrier rows for",
            "x of a takes the column nothing",
            "y of a depends on x,",
            "y of a has a foreign_key or another below",
            "b has rows for each row of later,",
            "x of b needs 2 to 256 words",
            "c has rows for each row of a,",
            "x of c goes from 2 to 1;",
            "x of c has runs of 0 rows;",
            "t of c has an invalid word or suffix;",
            "x of d needs the parent's row,",
        ] {
            assert_eq!(found.iter().filter(|one| one.contains(part)).count(), 1, "{part}: {found:#?}");
        }
        assert_eq!(found.len(), 11, "{found:#?}");
    }
}
