//! The user's own tables, filled with generated rows.
//!
//! Tables are filled one after the other, each by all streams: rows that others refer to are there before these. A table
//! is marked in its comment while it is filled and when all is done, so that a second `prepare` knows what it meets.

use std::time::{Duration, Instant};

use dbdyno_schema::Record;
use dbdyno_schema::record::{EndReason, Failure, LoadingStep, LoadingWay};
use dbdyno_wire::Connection;
use dbdyno_workload::generated::State;
use dbdyno_workload::tables::Tables;

use super::pieces::pieces;
use super::queries::{Outcome, queries, query};
use super::{Job, Loads};
use crate::failure;

/// Fewer rows than this are not worth another stream.
const STREAM_ROWS: u64 = 10_000;

/// A table that is to be filled, with its comment.
struct Wanted {
    table: u32,
    comment: String,
    /// Whether rows of an earlier `prepare` have to go first.
    unfinished: bool,
    /// Whether more than one stream would be slower.
    alone: bool,
}

impl<C: Loads> Job<'_, C> {
    /// Fills the generated tables that are empty. `connection` is the one that has sent the set-up.
    pub(super) async fn generate(&self, mut connection: C::Connection) -> Outcome {
        let (tables, connection) = (&self.generated, &mut connection);
        let wanted = self.look(connection).await?;
        self.rows_planned.set(wanted.iter().map(|wanted| tables.rows(wanted.table)).sum());
        // What refers to others goes before them.
        for Wanted { table, comment, unfinished, .. } in wanted.iter().rev() {
            if *unfinished {
                self.empty(connection, *table).await?;
            } else {
                query(connection, &tables.set_mark(*table, comment, false)).await?;
            }
        }
        let (mut way, mut most) = (LoadingWay::None, 0);
        for wanted in &wanted {
            let rows = tables.rows(wanted.table);
            let streams =
                if wanted.alone { 1 } else { rows.div_ceil(STREAM_ROWS).min(self.streams.into()) as u32 };
            most = most.max(streams);
            way = self.fill_pieces(tables, pieces(&[wanted.table], rows, streams)).await?;
        }
        let (mut after, mut analyze) = (Duration::ZERO, Duration::ZERO);
        if !wanted.is_empty() {
            let began = Instant::now();
            queries(connection, self.own.iter().flat_map(|own| &own.after)).await?;
            (after, analyze) = (began.elapsed(), self.complete(connection, &wanted).await?);
        }
        connection.close().await;
        let mut loaded = self.tally.borrow().record(&**tables, way, most, analyze);
        loaded.after_us = after.as_micros() as u64;
        if way != LoadingWay::None {
            let settings = tables.session_settings();
            loaded.session_settings =
                settings.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        }
        self.sink.borrow_mut().record(&Record::Loaded(Box::new(loaded)));
        Ok(())
    }

    /// What is there: the tables that are to be filled, or every reason why not, at once.
    async fn look(&self, connection: &mut C::Connection) -> Result<Vec<Wanted>, (EndReason, Failure)> {
        let tables = &self.generated;
        let (mut wanted, mut conflicts) = (Vec::new(), Vec::new());
        for table in tables.numbers() {
            let name = tables.name(table);
            let Some(row) = self.ask(connection, &tables.comment(table)).await?.into_iter().next() else {
                conflicts.push(format!("{name} is no table there; make it in workload.sql.setup"));
                continue;
            };
            let [comment, alone] = [0, 1].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
            let alone = alone == "1";
            let is_empty = self.ask(connection, &tables.any_row(table)).await?.is_empty();
            match tables.state(table, &comment) {
                State::Unfinished => wanted.push(Wanted { table, comment, unfinished: true, alone }),
                _ if is_empty => wanted.push(Wanted { table, comment, unfinished: false, alone }),
                State::Complete => self.tell(LoadingStep::Kept, name),
                State::Unmarked => conflicts.push(format!("{name} holds rows that dbdyno did not load")),
                State::Other(mark) => {
                    conflicts.push(format!(
                        "{name} holds rows of another plan ({mark}); wanted: {}",
                        tables.mark(table)
                    ));
                }
            }
        }
        if conflicts.is_empty() {
            return Ok(wanted);
        }
        let what = if self.target.is_postgresql() { "database" } else { "schema" };
        let text = format!("{what} {}: {}", self.connector.database(), conflicts.join("; "));
        let hint = "prepare fills empty tables and empties none but those that it left unfinished itself; send cleanup \
                    with statements that drop the tables, or name others";
        Err((EndReason::DataConflict, Failure { text, hint: Some(hint.into()), ..Failure::default() }))
    }

    async fn ask(
        &self,
        connection: &mut C::Connection,
        sql: &str,
    ) -> Result<Vec<dbdyno_wire::TextRow>, (EndReason, Failure)> {
        connection.rows(sql).await.map_err(|error| failure::working(&error, sql))
    }

    /// Removes the rows of an unfinished load.
    async fn empty(&self, connection: &mut C::Connection, table: u32) -> Outcome {
        let [truncate, delete] = self.generated.empty(table);
        match query(connection, &truncate).await {
            // Another table refers to it.
            Err(_) => query(connection, &delete).await,
            done => done,
        }
    }

    /// Refreshes the statistics of the tables, declares them complete, and tells how long the first took.
    async fn complete(
        &self,
        connection: &mut C::Connection,
        wanted: &[Wanted],
    ) -> Result<Duration, (EndReason, Failure)> {
        let (tables, began) = (&self.generated, Instant::now());
        for wanted in wanted {
            query(connection, &tables.analyze(wanted.table)).await?;
        }
        let took = began.elapsed();
        for wanted in wanted {
            query(connection, &tables.set_mark(wanted.table, &wanted.comment, true)).await?;
        }
        Ok(took)
    }

    /// What a session sets before it loads.
    pub(super) fn session_settings(&self) -> Vec<String> {
        if self.generated.is_empty() {
            return Vec::new();
        }
        let set = |(name, value): (&str, &str)| format!("SET {name} = '{value}'");
        self.generated.session_settings().into_iter().map(set).collect()
    }
}
