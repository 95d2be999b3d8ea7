//! What is there before loading, and what may be done with it.
//!
//! Complete tables of the same specification are kept, ours that were never completed are made anew, and anything
//! else in their place is a conflict: nothing without our mark is ever dropped.

use std::collections::BTreeMap;

use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Failure, LoadingStep, Warning};
use dbdyno_wire::Connection;
use dbdyno_workload::schema::{LOADING, MARK};
use dbdyno_workload::tables::Tables;

use super::queries::{Outcome, query};
use super::{Job, Loads};
use crate::failure;

impl<C: Loads> Job<'_, C> {
    /// Makes the tables that are missing, and tells which those were.
    pub(super) async fn create_missing(
        &self,
        connection: &mut impl Connection,
    ) -> Result<Vec<u32>, (EndReason, Failure)> {
        let schema = &self.schema;
        let there = self.existing(connection).await?;
        self.refuse_conflicts(&there)?;
        let missing: Vec<u32> = (1..=schema.tables())
            .filter(|&table| there.get(&schema.name(table)).is_none_or(|comment| *comment == LOADING))
            .collect();
        self.rows_planned.set(missing.len() as u64 * schema.rows());
        for table in 1..=schema.tables() {
            if missing.binary_search(&table).is_err() {
                self.report(LoadingStep::Kept, table);
                continue;
            }
            if there.contains_key(&schema.name(table)) {
                query(connection, &schema.drop_table(table)).await?; // Ours, and never completed.
            }
            query(connection, &schema.create(table)).await?;
            self.report(LoadingStep::Created, table);
        }
        Ok(missing)
    }

    /// Drops the tables that dbdyno made.
    pub(super) async fn drop_ours(&self, connection: &mut impl Connection) -> Outcome {
        let there = self.existing(connection).await?;
        for table in 1..=self.schema.tables() {
            let name = self.schema.name(table);
            match there.get(&name) {
                Some(comment) if comment.starts_with(MARK) => {
                    query(connection, &self.schema.drop_table(table)).await?;
                    self.report(LoadingStep::Dropped, table);
                }
                Some(_) => self.warn_kept(&name),
                None => {}
            }
        }
        Ok(())
    }

    /// Comments of the tables that are there, by name.
    async fn existing(
        &self,
        connection: &mut impl Connection,
    ) -> Result<BTreeMap<String, String>, (EndReason, Failure)> {
        let sql = self.schema.existing();
        let rows = connection.rows(&sql).await.map_err(|error| failure::working(&error, &sql))?;
        let pair = |row: Vec<Option<String>>| {
            let mut columns = row.into_iter().map(Option::unwrap_or_default);
            Some((columns.next()?, columns.next()?))
        };
        Ok(rows.into_iter().filter_map(pair).collect())
    }

    fn refuse_conflicts(&self, there: &BTreeMap<String, String>) -> Outcome {
        let mark = self.schema.mark();
        let ours = (1..=self.schema.tables()).map(|table| self.schema.name(table));
        let conflicts: Vec<String> = ours
            .filter_map(|name| {
                let comment = there.get(&name)?;
                let fits = *comment == mark || *comment == LOADING;
                let made = if comment.starts_with(MARK) { comment.as_str() } else { "not made by dbdyno" };
                (!fits).then(|| format!("{name} ({made})"))
            })
            .collect();
        if conflicts.is_empty() {
            return Ok(());
        }
        let text = format!(
            "{} {} already holds {}; wanted: {mark}",
            if self.target.is_postgresql() { "database" } else { "schema" },
            self.connector.database(),
            conflicts.join(", ")
        );
        let hint = "name another one, or drop these tables yourself; dbdyno drops only what it made, \
                    with cleanup and the options they were made with";
        Err((EndReason::DataConflict, Failure { text, hint: Some(hint.into()), ..Failure::default() }))
    }

    fn warn_kept(&self, name: &str) {
        self.sink.borrow_mut().record(&Record::Warning(Warning {
            code: "table-kept".into(),
            text: format!("{name} was not made by dbdyno and stays"),
            hint: "drop it yourself if it is not needed".into(),
        }));
    }
}
