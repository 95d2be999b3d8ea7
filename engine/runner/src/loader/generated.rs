//! User-defined tables, filled with generated rows.
//!
//! The streams fill one table after the other, so that referenced rows exist before the rows that refer to them. A mark
//! in the table's comment, set before and after filling, shows a later `prepare` whether the table is complete.

use std::time::{Duration, Instant};

use dbdyno_schema::record::{EndReason, Failure, LoadingStep, LoadingWay};
use dbdyno_wire::{Connection, TextRow};
use dbdyno_workload::generated::TableState;
use dbdyno_workload::tables::Tables;

use super::pieces::divide_tables;
use super::stream::{StepResult, execute, execute_all};
use super::{LoadConnector, Loader};
use crate::failure::{self, RunFailure};

/// Minimum number of rows for which an additional stream saves time.
const ROWS_PER_STREAM_MIN: u64 = 10_000;

/// A table to fill.
struct EmptyTable {
    table: u32,
    comment: String,
    /// Whether an earlier `prepare` left rows that must be deleted first.
    is_unfinished: bool,
    /// Whether several streams would be slower than one.
    needs_one_stream: bool,
}

impl<C: LoadConnector> Loader<'_, C> {
    /// Fills the generated tables that are empty. `connection` has already executed the plan's setup statements.
    pub(super) async fn fill_generated(&self, mut connection: C::Connection) -> StepResult {
        let (tables, connection) = (&self.generated, &mut connection);
        let empty = self.empty_tables(connection).await?;
        self.rows_planned.set(empty.iter().map(|empty| tables.rows(empty.table)).sum());
        // In reverse order, so that rows are deleted before those that they refer to.
        for EmptyTable { table, comment, is_unfinished, .. } in empty.iter().rev() {
            if *is_unfinished {
                self.delete_rows(connection, *table).await?;
            } else {
                execute(connection, &tables.set_mark(*table, comment, false)).await?;
            }
        }
        let (mut way, mut streams_max) = (LoadingWay::None, 0);
        for &EmptyTable { table, needs_one_stream, .. } in &empty {
            let rows = tables.rows(table);
            let streams = if needs_one_stream {
                1
            } else {
                rows.div_ceil(ROWS_PER_STREAM_MIN).min(self.streams.into()) as u32
            };
            streams_max = streams_max.max(streams);
            way = self.fill_pieces(tables, divide_tables(&[table], rows, streams)).await?;
        }
        let (mut after, mut analyze) = (Duration::ZERO, Duration::ZERO);
        if !empty.is_empty() {
            let began = Instant::now();
            execute_all(connection, self.custom_sql.iter().flat_map(|custom_sql| &custom_sql.after)).await?;
            (after, analyze) = (began.elapsed(), self.analyze_and_mark(connection, &empty).await?);
        }
        connection.close().await;
        let mut loaded = self.totals.borrow().record(&**tables, way, streams_max, analyze);
        loaded.after_us = after.as_micros() as u64;
        if way != LoadingWay::None {
            let settings = tables.session_settings();
            loaded.session_settings =
                settings.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        }
        self.report_loaded(loaded);
        Ok(())
    }

    /// The tables to fill, or the error with all conflicts.
    async fn empty_tables(&self, connection: &mut C::Connection) -> Result<Vec<EmptyTable>, RunFailure> {
        let tables = &self.generated;
        let (mut empty, mut conflicts) = (Vec::new(), Vec::new());
        for table in tables.table_numbers() {
            let name = tables.name(table);
            let Some(row) = fetch_rows(connection, &tables.comment_sql(table)).await?.into_iter().next()
            else {
                conflicts.push(format!("table {name} does not exist; create it in workload.sql.setup"));
                continue;
            };
            let [comment, needs_one_stream] =
                [0, 1].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
            let needs_one_stream = needs_one_stream == "1";
            let has_rows = !fetch_rows(connection, &tables.any_row_sql(table)).await?.is_empty();
            match tables.state(table, &comment) {
                TableState::Complete if has_rows => self.report(LoadingStep::Kept, name)?,
                TableState::Unmarked if has_rows => {
                    conflicts.push(format!("{name} contains rows that dbdyno did not load"));
                }
                TableState::Other(mark) if has_rows => {
                    let needs = tables.specification(table);
                    conflicts.push(format!(
                        "{name} contains rows of another plan ({mark}); this plan needs: {needs}"
                    ));
                }
                state => {
                    let is_unfinished = matches!(state, TableState::Unfinished);
                    empty.push(EmptyTable { table, comment, is_unfinished, needs_one_stream });
                }
            }
        }
        if conflicts.is_empty() {
            return Ok(empty);
        }
        let what = if self.target.is_postgresql() { "database" } else { "schema" };
        let text = format!("{what} {}: {}", self.connector.database(), conflicts.join("; "));
        let fix = "create a missing table in setup; drop or empty the others (cleanup sends the plan's statements), or use other \
                    tables: prepare fills only empty tables and tables that an earlier prepare left unfinished";
        Err((EndReason::DataConflict, Failure { text, fix: Some(fix.into()), ..Failure::default() }))
    }

    /// Deletes the rows of an unfinished load.
    async fn delete_rows(&self, connection: &mut C::Connection, table: u32) -> StepResult {
        let [truncate, delete] = self.generated.delete_rows_sql(table);
        match execute(connection, &truncate).await {
            // TRUNCATE fails if another table refers to this one.
            Err(_) => execute(connection, &delete).await,
            done => done,
        }
    }

    /// Refreshes the statistics of the tables and marks the tables as complete. Returns the time spent on the
    /// statistics.
    async fn analyze_and_mark(
        &self,
        connection: &mut C::Connection,
        filled: &[EmptyTable],
    ) -> Result<Duration, RunFailure> {
        let (tables, began) = (&self.generated, Instant::now());
        for filled in filled {
            execute(connection, &tables.analyze(filled.table)).await?;
        }
        let took = began.elapsed();
        for filled in filled {
            execute(connection, &tables.set_mark(filled.table, &filled.comment, true)).await?;
        }
        Ok(took)
    }

    pub(super) fn session_settings(&self) -> Vec<String> {
        if self.generated.is_empty() {
            return Vec::new();
        }
        let set = |(name, value): (&str, &str)| format!("SET {name} = '{value}'");
        self.generated.session_settings().into_iter().map(set).collect()
    }
}

async fn fetch_rows(connection: &mut impl Connection, sql: &str) -> Result<Vec<TextRow>, RunFailure> {
    connection.query_rows(sql).await.map_err(|error| failure::from_query_error(&error, sql))
}
