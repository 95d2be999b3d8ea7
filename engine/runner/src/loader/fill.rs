//! Filling tables: one stream, its statements, and what it tells.
//!
//! Every statement commits by itself. LOAD DATA and COPY are cut into statements too, so that neither the undo log nor a
//! binary log has to hold a whole table as one transaction.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use dbdyno_schema::plan::LoadingMethod;
use dbdyno_schema::record::{EndReason, ErrorClass, Failure, LoadingWay};
use dbdyno_wire::WireError;
use dbdyno_wire::bulk::{BulkLoad, LoadError};
use dbdyno_workload::tables::{BulkRows, Tables};
use tokio::sync::mpsc::UnboundedSender;

use super::pieces::{Piece, Queue};
use super::queries::{Outcome, queries};
use crate::failure;

/// Times a statement is sent before its error counts.
const ATTEMPTS: u32 = 20;

/// What one statement has stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored {
    pub(super) table: u32,
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// Times it was sent again.
    pub(super) retries: u64,
    /// From the first time it was sent to its answer.
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

/// What all streams of a job share.
pub(super) struct Filling<T> {
    pub(super) tables: Rc<T>,
    pub(super) pieces: Queue<Piece>,
    pub(super) method: LoadingMethod,
    /// How rows travel; changes once, when a server refuses LOAD DATA that is not demanded.
    pub(super) way: Cell<LoadingWay>,
}

/// Loads pieces until there are none, after some settings of the session.
pub(super) async fn fill<T: Tables>(
    mut connection: impl BulkLoad,
    settings: Vec<String>,
    filling: Rc<Filling<T>>,
    progress: UnboundedSender<Stored>,
) -> Outcome {
    let mut sql = Vec::new();
    queries(&mut connection, &settings).await?;
    loop {
        let Some(piece) = filling.pieces.borrow_mut().pop_front() else { break };
        let tell = |stored| {
            // The receiver is gone only when loading stops.
            let _ = progress.send(stored);
        };
        filling.store(&mut connection, piece, &mut sql, tell).await?;
    }
    connection.close().await;
    Ok(())
}

impl<T: Tables> Filling<T> {
    /// Loads a whole piece, statement by statement, and hands on what each has stored. `sql` is scratch.
    pub(super) async fn store(
        &self,
        connection: &mut impl BulkLoad,
        Piece { table, first, last }: Piece,
        sql: &mut Vec<u8>,
        take: impl Fn(Stored),
    ) -> Outcome {
        let mut next = first;
        while next <= last {
            let asked = Piece { table, first: next, last };
            let stored = match self.way.get() {
                LoadingWay::LoadDataLocal | LoadingWay::Copy => self.load(connection, asked).await?,
                _ => Some(self.insert(connection, asked, sql).await?),
            };
            let Some(stored) = stored else { continue }; // Refused; once more, the other way.
            next += stored.rows;
            take(stored);
        }
        Ok(())
    }

    /// Loads the beginning of a piece by LOAD DATA or COPY; `None` when the server refuses that and need not obey.
    async fn load(
        &self,
        connection: &mut impl BulkLoad,
        asked: Piece,
    ) -> Result<Option<Stored>, (EndReason, Failure)> {
        let sql = self.tables.load(asked.table);
        let piece = Piece {
            last: asked.last.min(asked.first + self.tables.statement_rows(asked.table) - 1),
            ..asked
        };
        let began = Instant::now();
        let mut retries = 0;
        loop {
            let error = match self.load_once(connection, &sql, piece).await {
                Ok((rows, bytes)) => {
                    self.require_fit(connection, piece.table).await?;
                    self.require_whole(piece.table, rows, piece.last + 1 - piece.first, self.bulk_words())?;
                    let (table, ended) = (piece.table, Instant::now());
                    return Ok(Some(Stored { table, rows, bytes, retries, began, ended }));
                }
                // The INSERT that follows says it if it was something else.
                Err(LoadError::Refused(_)) if self.method == LoadingMethod::Auto => {
                    self.way.set(LoadingWay::Insert);
                    return Ok(None);
                }
                Err(LoadError::Refused(error)) => return Err(failure::loading(&error, &sql)),
                Err(LoadError::Failed(error)) => error,
            };
            retries += 1;
            if !is_in_the_way(&error) || retries >= u64::from(ATTEMPTS) {
                return Err(failure::working(&error, &sql));
            }
        }
    }

    /// Rows stored and bytes sent by one LOAD DATA or COPY.
    async fn load_once(
        &self,
        connection: &mut impl BulkLoad,
        sql: &str,
        piece: Piece,
    ) -> Result<(u64, u64), LoadError> {
        let mut rows = self.tables.rows_from(piece.table, piece.first, piece.last);
        let mut bytes = 0;
        let some = |out: &mut Vec<u8>, most| {
            let begin = out.len();
            let more = rows.bulk(out, most);
            bytes += (out.len() - begin) as u64;
            more
        };
        // Only what a server says in words is a refusal; an answer out of order is none.
        let outcome = connection.load(sql, some).await.map_err(|error| match error {
            LoadError::Refused(error)
                if error.state().is_none() || is_in_the_way(&error) || failure::is_lost(&error) =>
            {
                LoadError::Failed(error)
            }
            error => error,
        })?;
        Ok((outcome.rows, bytes))
    }

    /// Loads the beginning of a piece by one INSERT. Streams can deadlock in an empty table (MariaDB locks the
    /// whole table for the first insert, MDEV-515).
    async fn insert(
        &self,
        connection: &mut impl BulkLoad,
        asked: Piece,
        sql: &mut Vec<u8>,
    ) -> Result<Stored, (EndReason, Failure)> {
        let (table, name) = (asked.table, self.tables.name(asked.table));
        sql.clear();
        let (words, ids) = self.tables.insert(table);
        sql.extend_from_slice(words.as_bytes());
        let planned = self.tables.rows_from(table, asked.first, asked.last).values(sql, ids);
        let (began, bytes) = (Instant::now(), sql.len() as u64);
        let mut retries = 0;
        loop {
            match connection.query(sql).await {
                Ok(outcome) => {
                    self.require_fit(connection, table).await?;
                    self.require_whole(table, outcome.rows, planned, "INSERT")?;
                    return Ok(Stored { table, rows: planned, bytes, retries, began, ended: Instant::now() });
                }
                Err(error) if is_in_the_way(&error) && retries < u64::from(ATTEMPTS) => retries += 1,
                Err(error) => {
                    let sent = String::from_utf8_lossy(sql);
                    return Err(failure::sending(&error, &format!("INSERT INTO {name}"), &sent));
                }
            }
        }
    }

    fn bulk_words(&self) -> &'static str {
        if self.way.get() == LoadingWay::Copy { "COPY" } else { "LOAD DATA LOCAL" }
    }

    /// Whether rows come with their ids, so that no sequence is asked for them.
    pub(super) fn brings_ids(&self) -> bool {
        self.way.get() == LoadingWay::Copy
    }

    /// Values that do not fit their columns are changed with a warning where a statement is not strict.
    async fn require_fit(&self, connection: &mut impl BulkLoad, table: u32) -> Outcome {
        if !self.tables.warns() {
            return Ok(());
        }
        let sql = "SHOW WARNINGS";
        let warnings = connection.rows(sql).await.map_err(|error| failure::working(&error, sql))?;
        let mut warnings = warnings.into_iter().map(|row| row.into_iter().map(Option::unwrap_or_default));
        let Some(mut warning) = warnings.find(|row| row.clone().next().as_deref() != Some("Note")) else {
            return Ok(());
        };
        let (code, words) = (warning.nth(1).unwrap_or_default(), warning.next().unwrap_or_default());
        let text =
            format!("the rows do not fit the table {}: {words} (warning {code})", self.tables.name(table));
        let hint =
            "change the column in the statements of the set-up, or the values that the plan makes for it";
        let code = code.parse().ok();
        Err((EndReason::DataConflict, Failure { code, text, hint: Some(hint.into()), ..Failure::default() }))
    }

    /// LOAD DATA LOCAL only warns of rows that are there already.
    fn require_whole(&self, table: u32, stored: u64, planned: u64, statement: &str) -> Outcome {
        if stored == planned {
            return Ok(());
        }
        let name = self.tables.name(table);
        let text = format!("{statement} stored {stored} of {planned} rows in {name}");
        let hint = "somebody else writes to this table, or a trigger or proxy changes the rows; load again when \
                    nobody does";
        Err((EndReason::DataConflict, Failure { text, hint: Some(hint.into()), ..Failure::default() }))
    }
}

fn is_in_the_way(error: &WireError) -> bool {
    matches!(error.class(), ErrorClass::Deadlock | ErrorClass::LockTimeout)
}
