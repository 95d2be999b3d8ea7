//! Statements and progress reports of a stream of the loader.

use std::time::Instant;

use dbdyno_schema::record::LoadingStep;
use dbdyno_wire::Connection;
use dbdyno_workload::table_marks::SetupMarks;
use tokio::sync::mpsc::UnboundedSender;

use crate::failure::{self, RunFailure};

/// The result of a step that may end the command.
pub(super) type StepResult = Result<(), RunFailure>;

/// A report of a stream about one table.
pub(super) enum Progress {
    /// A step has begun or ended on the table with this number.
    Step(LoadingStep, u32),
    Stored(StoredRows),
    Indexed(IndexBuild),
}

/// The rows that one statement has stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredRows {
    pub(super) table: u32,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// How often the statement was sent again.
    pub(super) retries: u64,
    /// When the statement was sent for the first time.
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct IndexBuild {
    pub(super) table: u32,
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

/// Sends the reports of one stream.
#[derive(Clone)]
pub(super) struct Reporter(pub(super) UnboundedSender<Progress>);

impl Reporter {
    pub(super) fn report(&self, progress: Progress) {
        // Sending fails only if loading has stopped.
        let _ = self.0.send(progress);
    }
}

/// Sends a statement and ignores its rows.
pub(super) async fn execute(connection: &mut impl Connection, sql: &str) -> StepResult {
    let result = connection.query(sql.as_bytes()).await;
    result.map(|_| ()).map_err(|error| failure::from_query_error(&error, sql))
}

/// Sends a statement of the user's setup, with marks for the tables that it creates if there are `marks`.
pub(super) async fn execute_setup(
    connection: &mut impl Connection,
    marks: &mut Option<SetupMarks>,
    sql: &str,
) -> StepResult {
    let marked = marks.as_mut().and_then(|marks| marks.add(sql));
    let result = connection.query(marked.as_deref().unwrap_or(sql).as_bytes()).await;
    result.map_err(|error| failure::from_query_error(&error, sql))?;
    match marks.as_ref().and_then(|marks| marks.after(sql)) {
        Some(after) => execute(connection, &after).await,
        None => Ok(()),
    }
}

/// Sends statements one after the other, up to the first that fails.
pub(super) async fn execute_all<S: AsRef<str>>(
    connection: &mut impl Connection,
    statements: impl IntoIterator<Item = S>,
) -> StepResult {
    for sql in statements {
        execute(connection, sql.as_ref()).await?;
    }
    Ok(())
}

/// Builds the index of a table, if it has one, and reports it.
pub(super) async fn build_index(
    connection: &mut impl Connection,
    sql: Option<String>,
    table: u32,
    reporter: &Reporter,
) -> StepResult {
    let began = Instant::now();
    if let Some(sql) = sql {
        execute(connection, &sql).await?;
    }
    reporter.report(Progress::Indexed(IndexBuild { table, began, ended: Instant::now() }));
    Ok(())
}
