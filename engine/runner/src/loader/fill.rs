//! Fills tables with LOAD DATA LOCAL, COPY or INSERT.
//!
//! Every statement commits separately. The rows of LOAD DATA and COPY are divided into several statements too, so that
//! neither the undo log nor a binary log has to store a complete table as one transaction.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use dbdyno_schema::plan::LoadingMethod;
use dbdyno_schema::record::{EndReason, ErrorClass, Failure, LoadingWay};
use dbdyno_wire::WireError;
use dbdyno_wire::bulk::{BulkLoad, LoadError};
use dbdyno_workload::tables::{BulkRows, Tables};

use super::pieces::{Piece, Queue};
use super::stream::{Progress, Reporter, StepResult, StoredRows, execute_all};
use crate::failure::{self, RunFailure};

/// Maximum attempts of a statement before its error ends the command.
const ATTEMPTS_MAX: u32 = 20;

/// Sends the rows of tables. All streams of a command share it.
pub(super) struct RowLoader<T> {
    pub(super) tables: Rc<T>,
    pub(super) pieces: Queue<Piece>,
    pub(super) method: LoadingMethod,
    /// How rows are sent. Changes to INSERT if the server refuses LOAD DATA or COPY and the plan allows INSERT.
    pub(super) way: Cell<LoadingWay>,
}

/// Runs one stream: applies the session settings, then loads pieces until none is left.
pub(super) async fn fill<T: Tables>(
    mut connection: impl BulkLoad,
    settings: Vec<String>,
    loader: Rc<RowLoader<T>>,
    reporter: Reporter,
) -> StepResult {
    let mut sql = Vec::new();
    execute_all(&mut connection, &settings).await?;
    loop {
        let Some(piece) = loader.pieces.borrow_mut().pop_front() else { break };
        loader.load_piece(&mut connection, piece, &mut sql, &reporter).await?;
    }
    connection.close().await;
    Ok(())
}

impl<T: Tables> RowLoader<T> {
    /// Loads a piece, statement by statement, and reports each statement. `sql` is a scratch buffer.
    pub(super) async fn load_piece(
        &self,
        connection: &mut impl BulkLoad,
        Piece { table, first, last }: Piece,
        sql: &mut Vec<u8>,
        reporter: &Reporter,
    ) -> StepResult {
        let mut next = first;
        while next <= last {
            let remaining = Piece { table, first: next, last };
            let stored = match self.way.get() {
                LoadingWay::LoadDataLocal | LoadingWay::Copy => {
                    self.load_in_bulk(connection, remaining).await?
                }
                _ => Some(self.insert_rows(connection, remaining, sql).await?),
            };
            // `None`: the server refused LOAD DATA or COPY, so the next iteration sends an INSERT.
            let Some(stored) = stored else { continue };
            next += stored.rows;
            reporter.report(Progress::Stored(stored));
        }
        Ok(())
    }

    /// Loads the first rows of a piece by LOAD DATA or COPY. Returns `None` if the server refuses this and the plan
    /// allows INSERT.
    async fn load_in_bulk(
        &self,
        connection: &mut impl BulkLoad,
        remaining: Piece,
    ) -> Result<Option<StoredRows>, RunFailure> {
        let sql = self.tables.load_sql(remaining.table);
        let piece = Piece {
            last: remaining.last.min(remaining.first + self.tables.statement_rows(remaining.table) - 1),
            ..remaining
        };
        let began = Instant::now();
        let mut retries = 0;
        loop {
            let error = match self.send_bulk(connection, &sql, piece).await {
                Ok((rows, bytes)) => {
                    self.check_values_fit(connection, piece.table).await?;
                    self.check_rows_stored(
                        piece.table,
                        rows,
                        piece.last + 1 - piece.first,
                        self.bulk_statement(),
                    )?;
                    let (table, ended) = (piece.table, Instant::now());
                    return Ok(Some(StoredRows { table, rows, bytes, retries, began, ended }));
                }
                // If the server refuses every statement, the INSERT reports the error.
                Err(LoadError::Refused(_)) if self.method == LoadingMethod::Auto => {
                    self.way.set(LoadingWay::Insert);
                    return Ok(None);
                }
                Err(LoadError::Refused(error)) => return Err(failure::from_load_error(&error, &sql)),
                Err(LoadError::Failed(error)) => error,
            };
            retries += 1;
            if !is_lock_conflict(&error) || retries >= u64::from(ATTEMPTS_MAX) {
                return Err(failure::from_query_error(&error, &sql));
            }
        }
    }

    /// Sends one LOAD DATA or COPY. Returns the rows stored and the bytes sent.
    async fn send_bulk(
        &self,
        connection: &mut impl BulkLoad,
        sql: &str,
        piece: Piece,
    ) -> Result<(u64, u64), LoadError> {
        let mut rows = self.tables.rows_from(piece.table, piece.first, piece.last);
        let mut bytes = 0;
        let append_rows = |out: &mut Vec<u8>, bytes_wanted| {
            let begin = out.len();
            let more = rows.write_bulk(out, bytes_wanted);
            bytes += (out.len() - begin) as u64;
            more
        };
        // Only a server error is a refusal; a malformed reply is not.
        let outcome = connection.load(sql, append_rows).await.map_err(|error| match error {
            LoadError::Refused(error)
                if error.state().is_none() || is_lock_conflict(&error) || failure::is_lost(&error) =>
            {
                LoadError::Failed(error)
            }
            error => error,
        })?;
        Ok((outcome.rows, bytes))
    }

    /// Loads the first rows of a piece by one INSERT, and repeats it after a deadlock: MariaDB locks the whole table
    /// for the first insert into an empty table, so streams can deadlock (MDEV-515).
    async fn insert_rows(
        &self,
        connection: &mut impl BulkLoad,
        remaining: Piece,
        sql: &mut Vec<u8>,
    ) -> Result<StoredRows, RunFailure> {
        let (table, name) = (remaining.table, self.tables.name(remaining.table));
        sql.clear();
        let (statement, ids) = self.tables.insert_sql(table);
        sql.extend_from_slice(statement.as_bytes());
        let planned = self.tables.rows_from(table, remaining.first, remaining.last).write_values(sql, ids);
        let (began, bytes) = (Instant::now(), sql.len() as u64);
        let mut retries = 0;
        loop {
            match connection.query(sql).await {
                Ok(outcome) => {
                    self.check_values_fit(connection, table).await?;
                    self.check_rows_stored(table, outcome.rows, planned, "INSERT")?;
                    return Ok(StoredRows {
                        table,
                        rows: planned,
                        bytes,
                        retries,
                        began,
                        ended: Instant::now(),
                    });
                }
                Err(error) if is_lock_conflict(&error) && retries < u64::from(ATTEMPTS_MAX) => retries += 1,
                Err(error) => {
                    let sent = String::from_utf8_lossy(sql);
                    return Err(failure::from_text_error(&error, &format!("INSERT INTO {name}"), &sent));
                }
            }
        }
    }

    fn bulk_statement(&self) -> &'static str {
        if self.way.get() == LoadingWay::Copy { "COPY" } else { "LOAD DATA LOCAL" }
    }

    /// Whether the client sends the ids of the rows. The table's sequence then does not advance.
    pub(super) fn sends_ids(&self) -> bool {
        self.way.get() == LoadingWay::Copy
    }

    /// Fails if the server changed values that do not fit their columns; without strict mode it only warns.
    async fn check_values_fit(&self, connection: &mut impl BulkLoad, table: u32) -> StepResult {
        if !self.tables.can_warn() {
            return Ok(());
        }
        let sql = "SHOW WARNINGS";
        let warnings =
            connection.query_rows(sql).await.map_err(|error| failure::from_query_error(&error, sql))?;
        let mut warnings = warnings.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default));
        let Some(mut warning) = warnings.find(|row| row.clone().next().as_deref() != Some("Note")) else {
            return Ok(());
        };
        let (code, message) = (warning.nth(1).unwrap_or_default(), warning.next().unwrap_or_default());
        let text =
            format!("the rows do not fit the table {}: {message} (warning {code})", self.tables.name(table));
        let fix = "change the column in the setup statements, or its generator in the plan";
        let code = code.parse().ok();
        Err((EndReason::DataConflict, Failure { code, text, fix: Some(fix.into()), ..Failure::default() }))
    }

    /// Fails if rows are missing: LOAD DATA LOCAL only warns about duplicate keys.
    fn check_rows_stored(&self, table: u32, stored: u64, planned: u64, statement: &str) -> StepResult {
        if stored == planned {
            return Ok(());
        }
        let name = self.tables.name(table);
        let text = format!("{statement} stored {stored} of {planned} rows in {name}");
        let fix = "another client writes to this table, or a trigger or proxy changes the rows; stop it and load again";
        Err((EndReason::DataConflict, Failure { text, fix: Some(fix.into()), ..Failure::default() }))
    }
}

fn is_lock_conflict(error: &WireError) -> bool {
    matches!(error.class(), ErrorClass::Deadlock | ErrorClass::LockTimeout)
}
