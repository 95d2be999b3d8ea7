//! `prepare` and `cleanup` for tables without dbdyno's mark (see `existing`), and `prewarm` for all tables. Stream t of n processes the
//! tables t, t + n, … one after the other, and reports the start of every step.

use std::rc::Rc;
use std::time::Duration;

use dbdyno_schema::record::{LoadingStep, LoadingWay};
use dbdyno_wire::Connection;
use dbdyno_wire::bulk::BulkLoad;
use dbdyno_workload::schema::Schema;
use dbdyno_workload::tables::Tables;

use super::fill::RowLoader;
use super::pieces::{Piece, Queue, new_queue};
use super::stream::{Progress, Reporter, StepResult, build_index, execute, execute_all};
use super::{LoadConnector, Loader};

impl<C: LoadConnector> Loader<'_, C> {
    /// Creates, fills and indexes the tables.
    pub(super) async fn prepare_by_table(&self) -> StepResult {
        let schema = &self.schema;
        self.rows_planned.set(u64::from(schema.tables()) * schema.rows());
        let (loader, connector) = self.row_loader(schema, Vec::new());
        let shares = self.tables_per_stream();
        let streams = shares.borrow().len();
        let stream =
            |connection, reporter| prepare(connection, Rc::clone(&loader), Rc::clone(&shares), reporter);
        self.run_streams(&connector, schema, streams, stream).await?;
        let way = if schema.rows() == 0 { LoadingWay::None } else { loader.way.get() };
        self.report_loaded(self.totals.borrow().record(&**schema, way, streams as u32, Duration::ZERO));
        Ok(())
    }

    /// Reads every table.
    pub(super) async fn prewarm(&self) -> StepResult {
        let (schema, shares) = (&self.schema, self.tables_per_stream());
        let streams = shares.borrow().len();
        let stream =
            |connection, reporter| prewarm(connection, Rc::clone(schema), Rc::clone(&shares), reporter);
        self.run_streams(&self.connector, schema, streams, stream).await
    }

    /// Drops every table, whether or not it has dbdyno's mark.
    pub(super) async fn cleanup_by_table(&self) -> StepResult {
        let mut connection = self.connect(&self.connector).await?;
        for table in 1..=self.schema.tables() {
            self.report(LoadingStep::Dropping, self.schema.name(table))?;
            execute(&mut connection, &self.schema.drop_table(table)).await?;
            self.report(LoadingStep::Dropped, self.schema.name(table))?;
        }
        connection.close().await;
        Ok(())
    }

    /// The tables of each stream, in order. The tables of bulk_insert are all created by one stream.
    fn tables_per_stream(&self) -> Queue<Vec<u32>> {
        let tables = self.schema.tables();
        let streams = if self.schema.has_empty_tables() { 1 } else { self.streams.min(tables) };
        new_queue((1..=streams).map(|first| (first..=tables).step_by(streams as usize).collect()))
    }
}

async fn prepare(
    mut connection: impl BulkLoad,
    loader: Rc<RowLoader<Schema>>,
    shares: Queue<Vec<u32>>,
    reporter: Reporter,
) -> StepResult {
    let (schema, mut sql) = (Rc::clone(&loader.tables), Vec::new());
    let share = shares.borrow_mut().pop_front().unwrap_or_default();
    for table in share {
        reporter.report(Progress::Step(LoadingStep::Creating, table));
        execute(&mut connection, &schema.create(table)).await?;
        if schema.rows() > 0 {
            reporter.report(Progress::Step(LoadingStep::Filling, table));
            let piece = Piece { table, first: 1, last: schema.rows() };
            loader.load_piece(&mut connection, piece, &mut sql, &reporter).await?;
            if loader.sends_ids()
                && let Some(after) = schema.set_sequence(table)
            {
                execute(&mut connection, &after).await?;
            }
        }
        if let Some(sql) = schema.create_index(table) {
            reporter.report(Progress::Step(LoadingStep::Indexing, table));
            build_index(&mut connection, Some(sql), table, &reporter).await?;
        }
    }
    connection.close().await;
    Ok(())
}

async fn prewarm(
    mut connection: impl BulkLoad,
    schema: Rc<Schema>,
    shares: Queue<Vec<u32>>,
    reporter: Reporter,
) -> StepResult {
    execute_all(&mut connection, schema.before_scans()).await?;
    let share = shares.borrow_mut().pop_front().unwrap_or_default();
    for table in share {
        reporter.report(Progress::Step(LoadingStep::Prewarming, table));
        execute_all(&mut connection, schema.scans(table)).await?;
        reporter.report(Progress::Step(LoadingStep::Prewarmed, table));
    }
    connection.close().await;
    Ok(())
}
