//! The loader creates, fills and drops the tables of a plan.
//!
//! Streams (concurrent connections) take pieces of tables from one list. A piece is a complete table if there are
//! enough tables, and otherwise a range of ids, so that one large table is also loaded in parallel. A stream writes
//! ascending ids, which fill pages best. Rows and indexes are separate steps with separate times.
//!
//! # Layout
//! - this file: the order of the steps, and the streams. `stream`: statements and reports of one stream.
//! - `existing`: decides what to do with tables that exist.
//! - `pieces`: divides tables.
//! - `fill`: sends rows by LOAD DATA LOCAL, COPY or INSERT.
//! - `generated`: user-defined tables with generated rows.
//! - `by_table`: tables without dbdyno's mark, one after the other.
//! - `totals`: sums of rows, bytes and times.

mod by_table;
mod existing;
mod fill;
mod generated;
mod pieces;
mod stream;
mod totals;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbdyno_schema::Record;
use dbdyno_schema::plan::{LoadingMethod, LoadingPart, Segment, SqlWorkload, Target};
use dbdyno_schema::record::{EndReason, Failure, Loaded, Loading, LoadingStep, LoadingWay};
use dbdyno_wire::bulk::BulkLoad;
use dbdyno_wire::mysql::MysqlConnector;
use dbdyno_wire::postgres::PostgresConnector;
use dbdyno_wire::{Connection, Connector};
use dbdyno_workload::generated::GeneratedTables;
use dbdyno_workload::schema::Schema;
use dbdyno_workload::table_marks::SetupMarks;
use dbdyno_workload::tables::Tables;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{JoinSet, LocalSet};

use self::fill::{RowLoader, fill};
use self::pieces::{Piece, Queue, divide_tables, new_queue};
use self::stream::{Progress, Reporter, StepResult, build_index, execute_all, execute_setup};
use self::totals::LoadTotals;
use crate::connector::{AnyConnector, connector};
use crate::control::Inbox;
use crate::failure::{self, RunFailure};
use crate::{RunEnd, RunSpec, Sink};

/// A command on tables.
#[derive(Clone, Copy, Debug)]
enum Command {
    Prepare,
    Cleanup,
    Prewarm,
}

/// Creates and fills the plan's tables. Keeps complete tables with the same specification. If another table has one of
/// their names, fails without changes.
pub fn prepare(spec: &RunSpec, inbox: Inbox, sink: &mut dyn Sink) -> RunEnd {
    run_loader(spec, &inbox, sink, Command::Prepare)
}

/// Drops the plan's tables that have dbdyno's mark, or all of them with [`crate::Options::tables`].
pub fn cleanup(spec: &RunSpec, inbox: Inbox, sink: &mut dyn Sink) -> RunEnd {
    run_loader(spec, &inbox, sink, Command::Cleanup)
}

/// Reads the plan's tables, with the same number of streams as for loading.
pub fn prewarm(spec: &RunSpec, inbox: Inbox, sink: &mut dyn Sink) -> RunEnd {
    run_loader(spec, &inbox, sink, Command::Prewarm)
}

/// A connector that can also open connections on which the server may request data from the client.
trait LoadConnector: Connector<Connection: BulkLoad> {
    /// The schema or database with the tables.
    fn database(&self) -> &str;

    /// The connector for connections on which the server may request data.
    fn with_data_requests(&self) -> Self;
}

impl LoadConnector for MysqlConnector {
    fn database(&self) -> &str {
        &self.options.database
    }

    fn with_data_requests(&self) -> Self {
        Self { local_data: true, ..self.clone() }
    }
}

impl LoadConnector for PostgresConnector {
    fn database(&self) -> &str {
        &self.options.database
    }

    fn with_data_requests(&self) -> Self {
        self.clone()
    }
}

/// One execution of a command on the tables of a plan.
struct Loader<'a, C> {
    schema: Rc<Schema>,
    generated: Rc<GeneratedTables>,
    target: Target,
    connector: C,
    streams: u32,
    method: LoadingMethod,
    part: LoadingPart,
    segment: Segment,
    sink: RefCell<&'a mut dyn Sink>,
    began: Instant,
    rows_planned: Cell<u64>,
    totals: RefCell<LoadTotals>,
    custom_sql: Option<&'a SqlWorkload>,
    setup_marks: Option<SetupMarks>,
}

fn run_loader(spec: &RunSpec, inbox: &Inbox, sink: &mut dyn Sink, command: Command) -> RunEnd {
    let statements = spec.program().describe();
    crate::command::run_command(&spec.plan, statements, sink, |sink| match connector(spec) {
        AnyConnector::Mysql(connector) => run_on_runtime(spec, connector, inbox, sink, command),
        AnyConnector::Postgres(connector) => run_on_runtime(spec, connector, inbox, sink, command),
        AnyConnector::Null(_) => {
            if spec.options.tables.is_some() {
                dry_run(&spec.schema(), command, sink);
            }
            Ok(())
        }
    })
}

fn run_on_runtime<C: LoadConnector>(
    spec: &RunSpec,
    connector: C,
    inbox: &Inbox,
    sink: &mut dyn Sink,
    command: Command,
) -> StepResult {
    let plan = &*spec.plan;
    let custom_sql = plan.workload.custom_sql();
    let loader = Loader {
        schema: Rc::new(spec.schema()),
        generated: Rc::new(GeneratedTables::from_plan(plan)),
        target: plan.target.clone(),
        connector,
        streams: plan.loading.streams,
        method: plan.loading.method,
        part: plan.loading.part,
        segment: plan.segment,
        sink: RefCell::new(sink),
        began: Instant::now(),
        rows_planned: Cell::new(0),
        totals: RefCell::default(),
        custom_sql,
        setup_marks: SetupMarks::from_plan(plan),
    };
    // These options do not apply to user-defined tables.
    let by_table = custom_sql.is_none() && spec.options.tables.is_some();
    let done = async {
        match command {
            Command::Prepare if by_table => loader.prepare_by_table().await,
            Command::Prepare => loader.prepare().await,
            Command::Cleanup if by_table => loader.cleanup_by_table().await,
            Command::Cleanup => loader.cleanup().await,
            Command::Prewarm => loader.prewarm().await,
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime needs three file descriptors");
    LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            result = done => result,
            reason = inbox.wait_for_stop() => {
                Err((reason, Failure { text: "stopped while loading".into(), ..Failure::default() }))
            }
        }
    })
}

impl<C: LoadConnector> Loader<'_, C> {
    async fn prepare(&self) -> StepResult {
        let mut connection = self.connect(&self.connector).await?;
        let mut marks = self.setup_marks.clone();
        for sql in self.custom_sql.iter().flat_map(|custom_sql| &custom_sql.setup) {
            execute_setup(&mut connection, &mut marks, sql).await?;
        }
        if !self.generated.is_empty() {
            return self.fill_generated(connection).await;
        }
        let missing = match self.part {
            LoadingPart::All | LoadingPart::Create => self.create_missing(&mut connection).await?,
            LoadingPart::Fill | LoadingPart::Complete => self.find_unfinished(&mut connection).await?,
        };
        connection.close().await;
        let mut way = LoadingWay::None;
        if matches!(self.part, LoadingPart::All | LoadingPart::Fill) && !missing.is_empty() {
            way = self.fill_pieces(&self.schema, self.own_pieces(&missing)).await?;
        }
        let mut analyze = Duration::ZERO;
        if matches!(self.part, LoadingPart::All | LoadingPart::Complete) {
            analyze = self.complete(&missing).await?;
        }
        self.report_loaded(self.totals.borrow().record(&*self.schema, way, self.streams, analyze));
        Ok(())
    }

    /// The pieces of the tables that this engine loads.
    fn own_pieces(&self, missing: &[u32]) -> Vec<Piece> {
        let Segment { index, count } = self.segment;
        let all = divide_tables(missing, self.schema.rows(), self.streams.saturating_mul(count));
        let own: Vec<Piece> = all.into_iter().skip(index as usize).step_by(count as usize).collect();
        self.rows_planned.set(own.iter().map(|piece| piece.last + 1 - piece.first).sum());
        own
    }

    /// Builds the indexes of filled tables, refreshes their statistics and marks them. Returns the time that the last two
    /// took.
    async fn complete(&self, missing: &[u32]) -> Result<Duration, RunFailure> {
        let (schema, tables) = (&self.schema, new_queue(missing.iter().copied()));
        let stream =
            |connection, reporter| index_tables(connection, schema.clone(), tables.clone(), reporter);
        self.run_streams(&self.connector, schema, missing.len(), stream).await?;
        let began = Instant::now();
        let tables = new_queue(missing.iter().copied());
        let stream = |connection, _| complete_tables(connection, schema.clone(), tables.clone());
        self.run_streams(&self.connector, schema, missing.len(), stream).await?;
        Ok(began.elapsed())
    }

    async fn cleanup(&self) -> StepResult {
        let mut connection = self.connect(&self.connector).await?;
        execute_all(&mut connection, self.custom_sql.iter().flat_map(|custom_sql| &custom_sql.cleanup))
            .await?;
        self.drop_marked(&mut connection).await?;
        connection.close().await;
        Ok(())
    }

    /// Loads the pieces. Returns the method by which rows were sent.
    async fn fill_pieces<T: Tables + 'static>(
        &self,
        tables: &Rc<T>,
        pieces: Vec<Piece>,
    ) -> Result<LoadingWay, RunFailure> {
        let streams = pieces.len();
        let (loader, connector) = self.row_loader(tables, pieces);
        let settings = self.session_settings();
        let stream = |connection, reporter| fill(connection, settings.clone(), Rc::clone(&loader), reporter);
        self.run_streams(&connector, tables, streams, stream).await?;
        Ok(loader.way.get())
    }

    /// The loader of the pieces, and the connector for its connections.
    fn row_loader<T: Tables>(&self, tables: &Rc<T>, pieces: Vec<Piece>) -> (Rc<RowLoader<T>>, C) {
        let way = match self.method {
            LoadingMethod::Insert => LoadingWay::Insert,
            _ if self.target.is_postgresql() => LoadingWay::Copy,
            _ => LoadingWay::LoadDataLocal,
        };
        let connector = if way == LoadingWay::Insert {
            self.connector.clone()
        } else {
            self.connector.with_data_requests()
        };
        let (tables, pieces) = (Rc::clone(tables), new_queue(pieces));
        (Rc::new(RowLoader { tables, pieces, method: self.method, way: Cell::new(way) }), connector)
    }

    /// Runs as many streams as the plan allows, but at most `max`, each on a separate connection. The first failure
    /// ends all streams.
    async fn run_streams<S: Future<Output = StepResult> + 'static>(
        &self,
        connector: &C,
        tables: &Rc<impl Tables>,
        max: usize,
        stream: impl Fn(C::Connection, Reporter) -> S,
    ) -> StepResult {
        let (reports, mut received) = unbounded_channel();
        let mut streams = JoinSet::new();
        for _ in 0..max.min(self.streams as usize) {
            streams.spawn_local(stream(self.connect(connector).await?, Reporter(reports.clone())));
        }
        drop(reports);
        loop {
            tokio::select! {
                biased;
                Some(progress) = received.recv() => self.handle_progress(progress, &**tables)?,
                ended = streams.join_next() => match ended {
                    Some(stream) => stream.expect("a stream does not panic")?,
                    None => break,
                },
            }
        }
        Ok(())
    }

    async fn connect(&self, connector: &C) -> Result<C::Connection, RunFailure> {
        connector.connect(0).await.map_err(|error| failure::from_connect_error(&error, &self.target, 0))
    }

    fn handle_progress(&self, progress: Progress, tables: &impl Tables) -> StepResult {
        let (step, table) = match progress {
            Progress::Step(step, table) => (step, table),
            Progress::Stored(stored) => {
                self.totals.borrow_mut().add_rows(stored);
                (LoadingStep::Rows, stored.table)
            }
            Progress::Indexed(index) => {
                self.totals.borrow_mut().add_index(index);
                (LoadingStep::Indexed, index.table)
            }
        };
        self.report(step, tables.name(table))
    }

    /// Writes a record. Fails if nobody reads it: the program that wanted the tables has ended.
    fn report(&self, step: LoadingStep, table: String) -> StepResult {
        let record = Record::Loading(Loading {
            step,
            table,
            rows: self.totals.borrow().rows(),
            rows_planned: self.rows_planned.get(),
            at_us: self.began.elapsed().as_micros() as u64,
        });
        if self.sink.borrow_mut().record(&record) {
            return Ok(());
        }
        let text = "loading ended because nobody reads its records".to_owned();
        Err((EndReason::Abandoned, Failure { text, ..Failure::default() }))
    }

    fn report_loaded(&self, loaded: Loaded) {
        self.sink.borrow_mut().record(&Record::Loaded(Box::new(loaded)));
    }
}

/// Reports the steps of `command` without contacting a server.
fn dry_run(schema: &Schema, command: Command, sink: &mut dyn Sink) {
    let began = Instant::now();
    for table in 1..=schema.tables() {
        for step in dry_run_steps(schema, command, table) {
            sink.record(&Record::Loading(Loading {
                step,
                table: schema.name(table),
                rows: 0,
                rows_planned: u64::from(schema.tables()) * schema.rows(),
                at_us: began.elapsed().as_micros() as u64,
            }));
        }
    }
}

fn dry_run_steps(schema: &Schema, command: Command, table: u32) -> Vec<LoadingStep> {
    match command {
        Command::Prepare => {
            let filling = (schema.rows() > 0).then_some(LoadingStep::Filling);
            let indexing = schema.create_index(table).map(|_| LoadingStep::Indexing);
            [Some(LoadingStep::Creating), filling, indexing].into_iter().flatten().collect()
        }
        Command::Prewarm => vec![LoadingStep::Prewarming],
        Command::Cleanup => vec![LoadingStep::Dropping],
    }
}

async fn index_tables(
    mut connection: impl Connection,
    schema: Rc<Schema>,
    tables: Queue<u32>,
    reporter: Reporter,
) -> StepResult {
    loop {
        let Some(table) = tables.borrow_mut().pop_front() else { break };
        build_index(&mut connection, schema.create_index(table), table, &reporter).await?;
    }
    connection.close().await;
    Ok(())
}

/// Marks tables as complete and refreshes their statistics.
async fn complete_tables(
    mut connection: impl Connection,
    schema: Rc<Schema>,
    tables: Queue<u32>,
) -> StepResult {
    loop {
        let Some(table) = tables.borrow_mut().pop_front() else { break };
        execute_all(&mut connection, [schema.set_mark(table), schema.analyze(table)]).await?;
    }
    connection.close().await;
    Ok(())
}
