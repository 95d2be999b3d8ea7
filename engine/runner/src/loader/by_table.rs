//! `prepare`, `prewarm` and `cleanup` table by table: stream t of n has the tables t, t + n, …
//!
//! What is under way is told when it begins.

use std::rc::Rc;
use std::time::{Duration, Instant};

use dbdyno_schema::Record;
use dbdyno_schema::record::{LoadingStep, LoadingWay};
use dbdyno_wire::Connection;
use dbdyno_wire::bulk::BulkLoad;
use dbdyno_workload::schema::Schema;
use tokio::sync::mpsc::UnboundedSender;

use super::fill::{Filling, Stored};
use super::finish::Indexed;
use super::pieces::{Piece, Queue, queue};
use super::queries::{Outcome, queries, query};
use super::{Job, Loads};

/// What a stream tells.
enum Told {
    Step(LoadingStep, u32),
    Stored(Stored),
    Indexed(Indexed),
}

impl<C: Loads> Job<'_, C> {
    /// Makes, fills and indexes the tables.
    pub(super) async fn prepare_by_table(&self) -> Outcome {
        let schema = &self.schema;
        self.rows_planned.set(u64::from(schema.tables()) * schema.rows());
        let (filling, connector) = self.filling(schema, Vec::new());
        let shares = self.shares();
        let stream =
            |connection, progress| prepare(connection, Rc::clone(&filling), Rc::clone(&shares), progress);
        let wanted = shares.borrow().len();
        self.in_streams(&connector, wanted, stream, |told| self.take(told)).await?;
        let way = if schema.rows() == 0 { LoadingWay::None } else { filling.way.get() };
        let loaded = self.tally.borrow().record(&**schema, way, wanted as u32, Duration::ZERO);
        self.sink.borrow_mut().record(&Record::Loaded(Box::new(loaded)));
        Ok(())
    }

    /// Reads every table.
    pub(super) async fn prewarm(&self) -> Outcome {
        let shares = self.shares();
        let stream =
            |connection, progress| prewarm(connection, Rc::clone(&self.schema), Rc::clone(&shares), progress);
        let wanted = shares.borrow().len();
        self.in_streams(&self.connector, wanted, stream, |told| self.take(told)).await
    }

    /// Drops every table, whoever made it.
    pub(super) async fn cleanup_by_table(&self) -> Outcome {
        let mut connection = self.connect(&self.connector).await?;
        for table in 1..=self.schema.tables() {
            self.report(LoadingStep::Dropping, table);
            query(&mut connection, &self.schema.drop_table(table)).await?;
            self.report(LoadingStep::Dropped, table);
        }
        connection.close().await;
        Ok(())
    }

    /// The tables of each stream, in order. Those of bulk_insert are all made by one.
    fn shares(&self) -> Queue<Vec<u32>> {
        let tables = self.schema.tables();
        let streams = if self.schema.makes_no_rows() { 1 } else { self.streams.min(tables) };
        queue((1..=streams).map(|first| (first..=tables).step_by(streams as usize).collect()))
    }

    fn take(&self, told: Told) {
        match told {
            Told::Step(step, table) => self.report(step, table),
            Told::Stored(stored) => {
                self.tally.borrow_mut().stored(stored);
                self.report(LoadingStep::Rows, stored.table);
            }
            Told::Indexed(indexed) => {
                self.tally.borrow_mut().indexed(indexed);
                self.report(LoadingStep::Indexed, indexed.table);
            }
        }
    }
}

async fn prepare(
    mut connection: impl BulkLoad,
    filling: Rc<Filling<Schema>>,
    shares: Queue<Vec<u32>>,
    progress: UnboundedSender<Told>,
) -> Outcome {
    // The receiver is gone only when loading stops.
    let tell = |told| drop(progress.send(told));
    let (schema, mut sql) = (Rc::clone(&filling.tables), Vec::new());
    let share = shares.borrow_mut().pop_front().unwrap_or_default();
    for table in share {
        tell(Told::Step(LoadingStep::Creating, table));
        query(&mut connection, &schema.create(table)).await?;
        if schema.rows() > 0 {
            tell(Told::Step(LoadingStep::Filling, table));
            let piece = Piece { table, first: 1, last: schema.rows() };
            filling.store(&mut connection, piece, &mut sql, |stored| tell(Told::Stored(stored))).await?;
            if filling.brings_ids()
                && let Some(after) = schema.after_rows(table)
            {
                query(&mut connection, &after).await?;
            }
        }
        if let Some(index) = schema.create_index(table) {
            tell(Told::Step(LoadingStep::Indexing, table));
            let began = Instant::now();
            query(&mut connection, &index).await?;
            tell(Told::Indexed(Indexed { table, began, ended: Instant::now() }));
        }
    }
    connection.close().await;
    Ok(())
}

async fn prewarm(
    mut connection: impl BulkLoad,
    schema: Rc<Schema>,
    shares: Queue<Vec<u32>>,
    progress: UnboundedSender<Told>,
) -> Outcome {
    let tell = |step, table| drop(progress.send(Told::Step(step, table)));
    queries(&mut connection, schema.before_scans()).await?;
    let share = shares.borrow_mut().pop_front().unwrap_or_default();
    for table in share {
        tell(LoadingStep::Prewarming, table);
        queries(&mut connection, schema.scans(table)).await?;
        tell(LoadingStep::Prewarmed, table);
    }
    connection.close().await;
    Ok(())
}
