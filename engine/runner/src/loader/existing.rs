//! Decides whether to keep, replace or refuse the tables that exist before loading.
//!
//! The loader marks every table that it creates by a table comment. It keeps complete tables with the plan's
//! specification, and replaces incomplete tables that have the mark. Any other table with the same name is a conflict: the
//! loader never drops a table without the mark.

use std::collections::BTreeMap;

use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Failure, LoadingStep, Warning};
use dbdyno_wire::Connection;
use dbdyno_workload::table_marks::{MARK, is_own, is_without_table};
use dbdyno_workload::tables::Tables;

use super::stream::{StepResult, execute};
use super::{LoadConnector, Loader};
use crate::failure::{self, RunFailure};

impl<C: LoadConnector> Loader<'_, C> {
    /// Creates the missing tables and returns their numbers.
    pub(super) async fn create_missing(
        &self,
        connection: &mut impl Connection,
    ) -> Result<Vec<u32>, RunFailure> {
        let schema = &self.schema;
        let existing = self.existing_tables(connection).await?;
        self.refuse_conflicts(&existing)?;
        let missing: Vec<u32> = (1..=schema.tables())
            .filter(|&table| {
                existing.get(&schema.name(table)).is_none_or(|comment| *comment == schema.loading_mark(table))
            })
            .collect();
        self.rows_planned.set(missing.len() as u64 * schema.rows());
        for table in 1..=schema.tables() {
            let name = schema.name(table);
            if missing.binary_search(&table).is_err() {
                self.report(LoadingStep::Kept, name)?;
                continue;
            }
            if existing.contains_key(&name) {
                execute(connection, &schema.drop_table(table)).await?; // Has the mark of an unfinished load.
            }
            execute(connection, &schema.create(table)).await?;
            self.report(LoadingStep::Created, name)?;
        }
        Ok(missing)
    }

    /// The tables that were created and have not been completed.
    pub(super) async fn find_unfinished(
        &self,
        connection: &mut impl Connection,
    ) -> Result<Vec<u32>, RunFailure> {
        let existing = self.existing_tables(connection).await?;
        let is_unfinished = |table: &u32| {
            let comment = existing.get(&self.schema.name(*table));
            comment.is_some_and(|comment| *comment == self.schema.loading_mark(*table))
        };
        Ok((1..=self.schema.tables()).filter(is_unfinished).collect())
    }

    /// Drops the tables that have dbdyno's mark.
    pub(super) async fn drop_marked(&self, connection: &mut impl Connection) -> StepResult {
        let existing = self.existing_tables(connection).await?;
        for table in 1..=self.schema.tables() {
            let name = self.schema.name(table);
            match existing.get(&name) {
                Some(comment) if comment.starts_with(MARK) && is_own(comment, &self.schema.hash(table)) => {
                    execute(connection, &self.schema.drop_table(table)).await?;
                    self.report(LoadingStep::Dropped, name)?;
                }
                Some(comment) => self.warn_kept(&name, comment),
                None => {}
            }
        }
        Ok(())
    }

    /// The comments of the existing tables, by name. Without tables of its own the workload does not need the server's
    /// catalogue, which some servers lack.
    async fn existing_tables(
        &self,
        connection: &mut impl Connection,
    ) -> Result<BTreeMap<String, String>, RunFailure> {
        if self.schema.tables() == 0 {
            return Ok(BTreeMap::new());
        }
        let sql = self.schema.existing_tables_sql();
        let rows =
            connection.query_rows(&sql).await.map_err(|error| failure::from_query_error(&error, &sql))?;
        let pair = |row: Vec<Option<String>>| {
            let mut columns = row.into_iter().map(Option::unwrap_or_default);
            Some((columns.next()?, columns.next()?))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }

    fn refuse_conflicts(&self, existing: &BTreeMap<String, String>) -> StepResult {
        let schema = &self.schema;
        let mark = schema.specification();
        let conflicts: Vec<String> = (1..=schema.tables())
            .filter_map(|table| {
                let name = schema.name(table);
                let comment = existing.get(&name)?;
                // Marks of earlier versions do not name the table. Its rows are used, but it is never dropped.
                let fits = [&mark, &schema.mark(table), &schema.loading_mark(table)].contains(&comment);
                let is_known = is_own(comment, &schema.hash(table)) || is_without_table(comment);
                let origin = if is_known { comment.as_str() } else { "not made by dbdyno" };
                (!fits).then(|| format!("{name} ({origin})"))
            })
            .collect();
        if conflicts.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{} {} already contains {}; the plan needs: {mark}",
            if self.target.is_postgresql() { "database" } else { "schema" },
            self.connector.database(),
            conflicts.join(", ")
        );
        let fix = "use another schema or database, or drop these tables yourself; cleanup, with the options of their \
                    prepare, drops tables that dbdyno created";
        Err((EndReason::DataConflict, Failure { text, fix: Some(fix.into()), ..Failure::default() }))
    }

    fn warn_kept(&self, name: &str, comment: &str) {
        let why = if is_without_table(comment) {
            "has a mark of an earlier version of dbdyno, which does not name the table,"
        } else {
            "was not created by dbdyno"
        };
        self.sink.borrow_mut().record(&Record::Warning(Warning {
            code: "table-kept".into(),
            text: format!("{name} {why} and is kept"),
            fix: "drop it yourself if it is not needed".into(),
        }));
    }
}
