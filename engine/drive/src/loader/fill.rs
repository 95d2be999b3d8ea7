//! Filling tables: one stream, its statements, and what it tells.
//!
//! Every statement commits by itself. LOAD DATA is cut into statements too, so that neither the undo log nor a
//! binary log has to hold a whole table as one transaction.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use dbdyno_door::plan::LoadingMethod;
use dbdyno_door::record::{EndReason, Failure, LoadingWay};
use dbdyno_wire::mysql::MysqlConnection;
use dbdyno_wire::{Connection, WireError};
use dbdyno_workload::schema::Schema;
use tokio::sync::mpsc::UnboundedSender;

use super::Outcome;
use super::pieces::{Piece, Queue};
use crate::failure;

/// Rows of one LOAD DATA: some 10 MB.
const STATEMENT_ROWS: u64 = 50_000;
/// Deadlock and lock wait timeout.
const IN_THE_WAY: [u16; 2] = [1213, 1205];
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
pub(super) struct Filling {
    pub(super) schema: Rc<Schema>,
    pub(super) pieces: Queue<Piece>,
    pub(super) method: LoadingMethod,
    /// How rows travel; changes once, when a server refuses LOAD DATA that is not demanded.
    pub(super) way: Cell<LoadingWay>,
}

/// Loads pieces until there are none.
pub(super) async fn fill(
    mut connection: MysqlConnection,
    filling: Rc<Filling>,
    progress: UnboundedSender<Stored>,
) -> Outcome {
    let mut sql = Vec::new();
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

/// Why a LOAD DATA did not end well.
enum Trouble {
    /// The server does not want the data at all.
    Refused(WireError),
    Failed(WireError),
}

impl Filling {
    /// Loads a whole piece, statement by statement, and hands on what each has stored. `sql` is scratch.
    pub(super) async fn store(
        &self,
        connection: &mut MysqlConnection,
        Piece { table, first, last }: Piece,
        sql: &mut Vec<u8>,
        take: impl Fn(Stored),
    ) -> Outcome {
        let mut next = first;
        while next <= last {
            let asked = Piece { table, first: next, last };
            let stored = match self.way.get() {
                LoadingWay::LoadDataLocal => self.load(connection, asked).await?,
                _ => Some(self.insert(connection, asked, sql).await?),
            };
            let Some(stored) = stored else { continue }; // Refused; once more, the other way.
            next += stored.rows;
            take(stored);
        }
        Ok(())
    }

    /// Loads the beginning of a piece by LOAD DATA; `None` when the server refuses that and need not obey.
    async fn load(
        &self,
        connection: &mut MysqlConnection,
        asked: Piece,
    ) -> Result<Option<Stored>, (EndReason, Failure)> {
        let sql = self.schema.load_data(asked.table);
        let piece = Piece { last: asked.last.min(asked.first + STATEMENT_ROWS - 1), ..asked };
        let began = Instant::now();
        let mut retries = 0;
        loop {
            let error = match self.load_once(connection, &sql, piece).await {
                Ok((rows, bytes)) => {
                    self.require_whole(piece.table, rows, piece.last + 1 - piece.first, "LOAD DATA LOCAL")?;
                    let (table, ended) = (piece.table, Instant::now());
                    return Ok(Some(Stored { table, rows, bytes, retries, began, ended }));
                }
                // The INSERT that follows says it if it was something else.
                Err(Trouble::Refused(_)) if self.method == LoadingMethod::Auto => {
                    self.way.set(LoadingWay::Insert);
                    return Ok(None);
                }
                Err(Trouble::Refused(error)) => return Err(failure::loading(&error, &sql)),
                Err(Trouble::Failed(error)) => error,
            };
            retries += 1;
            if !is_in_the_way(&error) || retries >= u64::from(ATTEMPTS) {
                return Err(failure::working(&error, &sql));
            }
        }
    }

    /// Rows stored and bytes sent by one LOAD DATA.
    async fn load_once(
        &self,
        connection: &mut MysqlConnection,
        sql: &str,
        piece: Piece,
    ) -> Result<(u64, u64), Trouble> {
        let request = connection.load_data(sql).await.map_err(|error| match error {
            WireError::Server { .. } if !is_in_the_way(&error) => Trouble::Refused(error),
            error => Trouble::Failed(error),
        })?;
        let mut rows = self.schema.rows_from(piece.table, piece.first, piece.last);
        let mut bytes = 0;
        let lines = |out: &mut Vec<u8>, most| {
            let begin = out.len();
            let more = rows.lines(out, most);
            bytes += (out.len() - begin) as u64;
            more
        };
        let outcome = request.answer(lines).await.map_err(Trouble::Failed)?;
        Ok((outcome.rows, bytes))
    }

    /// Loads the beginning of a piece by one INSERT. Streams can deadlock in an empty table (MariaDB locks the
    /// whole table for the first insert, MDEV-515).
    async fn insert(
        &self,
        connection: &mut MysqlConnection,
        asked: Piece,
        sql: &mut Vec<u8>,
    ) -> Result<Stored, (EndReason, Failure)> {
        let (table, name) = (asked.table, self.schema.name(asked.table));
        sql.clear();
        let (words, ids) = self.schema.insert(table);
        sql.extend_from_slice(words.as_bytes());
        let planned = self.schema.rows_from(table, asked.first, asked.last).values(sql, ids);
        let (began, bytes) = (Instant::now(), sql.len() as u64);
        let mut retries = 0;
        loop {
            match connection.query(sql).await {
                Ok(outcome) => {
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

    /// LOAD DATA LOCAL only warns of rows that are there already.
    fn require_whole(&self, table: u32, stored: u64, planned: u64, statement: &str) -> Outcome {
        if stored == planned {
            return Ok(());
        }
        let name = self.schema.name(table);
        let text = format!("{statement} stored {stored} of {planned} rows in {name}");
        let hint = "somebody else writes to this table, or a trigger or proxy changes the rows; load again when \
                    nobody does";
        Err((EndReason::DataConflict, Failure { code: None, text, hint: Some(hint.into()), server: None }))
    }
}

fn is_in_the_way(error: &WireError) -> bool {
    error.code().is_some_and(|code| IN_THE_WAY.contains(&code))
}
