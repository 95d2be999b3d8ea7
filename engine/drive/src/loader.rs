//! The loader: makes the tables of a plan, fills them, and drops them.
//!
//! Streams take pieces of tables from one list. A piece is a whole table where there are enough of them, and a
//! range of ids otherwise, so that one large table loads in parallel too. A stream writes ascending ids, which
//! is the order that fills pages best.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbdyno_door::Record;
use dbdyno_door::plan::{Plan, Target};
use dbdyno_door::record::{End, EndReason, Failure, Loading, LoadingStep, Warning};
use dbdyno_wire::mysql::MysqlConnector;
use dbdyno_wire::{Connection, Connector, WireError};
use dbdyno_workload::Oltp;
use dbdyno_workload::schema::{LOADING, MARK, Schema};
use tokio::task::{JoinSet, LocalSet};

use crate::conductor::hello;
use crate::control::{Inbox, Message};
use crate::failure;
use crate::machine;
use crate::secrets::{Secrets, mysql_connector};
use crate::{Ended, Sink};

/// Makes and fills the plan's tables. Complete ones of the same specification are kept; anything else in their
/// place is a conflict, and nothing is changed.
pub fn prepare(plan: &Plan, secrets: &Secrets, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
    with_runtime(plan, secrets, inbox, sink, |job| Box::pin(async move { job.prepare().await }))
}

/// Drops the plan's tables, as far as dbdyno made them.
pub fn cleanup(plan: &Plan, secrets: &Secrets, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
    with_runtime(plan, secrets, inbox, sink, |job| Box::pin(async move { job.cleanup().await }))
}

type Outcome = Result<(), (EndReason, Failure)>;
type Step<'a> = std::pin::Pin<Box<dyn Future<Output = Outcome> + 'a>>;

/// Deadlock and lock wait timeout.
const IN_THE_WAY: [u16; 2] = [1213, 1205];
/// Times an INSERT is sent before its error counts.
const INSERT_ATTEMPTS: u32 = 20;

/// How often the loader looks for an order to stop.
const STOP_POLL: Duration = Duration::from_millis(50);

/// A range of ids of one table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    table: u32,
    first: u64,
    last: u64,
}

struct Job<'a> {
    schema: Rc<Schema>,
    connector: MysqlConnector,
    streams: u32,
    inbox: &'a Inbox,
    sink: RefCell<&'a mut dyn Sink>,
    began: Instant,
    rows: Cell<u64>,
    rows_planned: Cell<u64>,
}

fn with_runtime(
    plan: &Plan,
    secrets: &Secrets,
    inbox: Inbox,
    sink: &mut dyn Sink,
    work: for<'j> fn(&'j Job<'_>) -> Step<'j>,
) -> Ended {
    let oltp = Oltp::new(&plan.workload, plan.seed);
    sink.record(&hello(plan, &oltp));
    let cpu_before = machine::process_cpu();
    let outcome = match &plan.target {
        Target::Null { .. } => Ok(()), // Nobody's tables are always ready.
        target => {
            let job = Job {
                schema: Rc::new(Schema::new(&plan.workload.options, plan.seed)),
                connector: mysql_connector(target, secrets),
                streams: plan.loading.streams,
                inbox: &inbox,
                sink: RefCell::new(sink),
                began: Instant::now(),
                rows: Cell::new(0),
                rows_planned: Cell::new(0),
            };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.expect("a runtime needs three file descriptors");
            LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    outcome = work(&job) => outcome,
                    outcome = job.stopped() => outcome,
                }
            })
        }
    };
    let (reason, failure) = match outcome {
        Ok(()) => (EndReason::Done, None),
        Err((reason, failure)) => (reason, (reason != EndReason::Interrupted).then_some(failure)),
    };
    sink.record(&Record::End(Box::new(End {
        reason,
        failure: failure.clone(),
        phases: BTreeMap::new(),
        memory_peak_bytes: machine::memory_peak_bytes(),
        cpu_us: (machine::process_cpu() - cpu_before).as_micros() as u64,
    })));
    Ended { reason, failure }
}

impl Job<'_> {
    async fn prepare(&self) -> Outcome {
        let schema = &self.schema;
        let mut connection = self.connect().await?;
        let there = self.existing(&mut connection).await?;
        self.refuse_conflicts(&there)?;
        let missing: Vec<u32> = (1..=schema.tables())
            .filter(|&table| there.get(&schema.name(table)).is_none_or(|comment| *comment == LOADING))
            .collect();
        self.rows_planned.set(missing.len() as u64 * schema.rows());
        for table in 1..=schema.tables() {
            if !missing.contains(&table) {
                self.report(LoadingStep::Kept, table);
                continue;
            }
            if there.contains_key(&schema.name(table)) {
                query(&mut connection, &schema.drop_table(table)).await?; // Ours, and never completed.
            }
            query(&mut connection, &schema.create(table)).await?;
            self.report(LoadingStep::Created, table);
        }
        self.in_streams(pieces(&missing, schema.rows(), self.streams)).await?;
        self.finish_tables(missing).await?;
        connection.close().await;
        Ok(())
    }

    async fn cleanup(&self) -> Outcome {
        let mut connection = self.connect().await?;
        let there = self.existing(&mut connection).await?;
        for table in 1..=self.schema.tables() {
            let name = self.schema.name(table);
            match there.get(&name) {
                Some(comment) if comment.starts_with(MARK) => {
                    query(&mut connection, &self.schema.drop_table(table)).await?;
                    self.report(LoadingStep::Dropped, table);
                }
                Some(_) => self.warn_kept(&name),
                None => {}
            }
        }
        connection.close().await;
        Ok(())
    }

    /// Fills the pieces, as many at a time as there are streams.
    async fn in_streams(&self, pieces: Vec<Piece>) -> Outcome {
        let wanted = pieces.len() as u32;
        let pieces = Rc::new(RefCell::new(VecDeque::from(pieces)));
        let (progress, mut loaded) = tokio::sync::mpsc::unbounded_channel();
        let mut streams = JoinSet::new();
        for _ in 0..self.streams.min(wanted) {
            let stream =
                fill(self.connect().await?, Rc::clone(&self.schema), Rc::clone(&pieces), progress.clone());
            streams.spawn_local(stream);
        }
        drop(progress);
        while let Some((table, rows)) = loaded.recv().await {
            self.rows.set(self.rows.get() + rows);
            self.report(LoadingStep::Rows, table);
            self.check_stop()?;
        }
        while let Some(stream) = streams.join_next().await {
            stream.expect("a stream does not panic")?;
        }
        Ok(())
    }

    /// Makes the index, marks the table complete and refreshes its statistics; tables in parallel.
    async fn finish_tables(&self, tables: Vec<u32>) -> Outcome {
        let wanted = tables.len() as u32;
        let tables = Rc::new(RefCell::new(VecDeque::from(tables)));
        let (progress, mut finished) = tokio::sync::mpsc::unbounded_channel();
        let mut streams = JoinSet::new();
        for _ in 0..self.streams.min(wanted) {
            let stream =
                finish(self.connect().await?, Rc::clone(&self.schema), Rc::clone(&tables), progress.clone());
            streams.spawn_local(stream);
        }
        drop(progress);
        while let Some(table) = finished.recv().await {
            self.report(LoadingStep::Indexed, table);
            self.check_stop()?;
        }
        while let Some(stream) = streams.join_next().await {
            stream.expect("a stream does not panic")?;
        }
        Ok(())
    }

    async fn connect(&self) -> Result<dbdyno_wire::mysql::MysqlConnection, (EndReason, Failure)> {
        self.connector.connect(0).await.map_err(|error| failure::connecting(&error))
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
            "schema {} already holds {}; wanted: {mark}",
            self.connector.database,
            conflicts.join(", ")
        );
        let hint = "name another schema, or drop these tables yourself; dbdyno drops only what it made, \
                    with cleanup and the options they were made with";
        Err((EndReason::DataConflict, Failure { code: None, text, hint: Some(hint.into()) }))
    }

    /// Waits for an order to stop, also while a server takes hours over an answer or never gives one.
    async fn stopped(&self) -> Outcome {
        loop {
            self.check_stop()?;
            tokio::time::sleep(STOP_POLL).await;
        }
    }

    fn check_stop(&self) -> Outcome {
        let orders = std::iter::from_fn(|| self.inbox.messages.try_recv().ok());
        let stop = orders.into_iter().find_map(|message| match message {
            Message::Stop(reason) => Some(reason),
            _ => None,
        });
        match stop {
            Some(reason) => {
                Err((reason, Failure { code: None, text: "stopped while loading".into(), hint: None }))
            }
            None => Ok(()),
        }
    }

    fn report(&self, step: LoadingStep, table: u32) {
        self.sink.borrow_mut().record(&Record::Loading(Loading {
            step,
            table: self.schema.name(table),
            rows: self.rows.get(),
            rows_planned: self.rows_planned.get(),
            at_us: self.began.elapsed().as_micros() as u64,
        }));
    }

    fn warn_kept(&self, name: &str) {
        self.sink.borrow_mut().record(&Record::Warning(Warning {
            code: "table-kept".into(),
            text: format!("{name} was not made by dbdyno and stays"),
            hint: "drop it yourself if it is not needed".into(),
        }));
    }
}

/// Cuts tables into pieces: whole ones where there are at least two per stream, and one per stream otherwise.
fn pieces(tables: &[u32], rows: u64, streams: u32) -> Vec<Piece> {
    let cuts = if tables.len() as u32 >= 2 * streams { 1 } else { u64::from(streams).min(rows) };
    let edge = |cut| rows * cut / cuts;
    let cut = |table| (0..cuts).map(move |cut| Piece { table, first: edge(cut) + 1, last: edge(cut + 1) });
    tables.iter().flat_map(|&table| cut(table)).collect()
}

type Pieces = Rc<RefCell<VecDeque<Piece>>>;
type Progress<T> = tokio::sync::mpsc::UnboundedSender<T>;

async fn fill<C: Connection>(
    mut connection: C,
    schema: Rc<Schema>,
    pieces: Pieces,
    progress: Progress<(u32, u64)>,
) -> Outcome {
    let mut sql = Vec::new();
    loop {
        let Some(Piece { table, first, last }) = pieces.borrow_mut().pop_front() else { break };
        let mut next = first;
        while next <= last {
            let begin = next;
            next = schema.insert(table, begin, last, &mut sql);
            let inserted = insert(&mut connection, &sql).await;
            inserted
                .map_err(|error| failure::working(&error, &format!("INSERT INTO {}", schema.name(table))))?;
            // The receiver is gone only when loading stops.
            let _ = progress.send((table, next - begin));
        }
    }
    connection.close().await;
    Ok(())
}

/// Sends one INSERT, which commits by itself, and sends it again when streams got into each other's way: into an
/// empty table they can deadlock (MariaDB locks the whole table for the first insert, MDEV-515).
async fn insert<C: Connection>(connection: &mut C, sql: &[u8]) -> Result<(), WireError> {
    let mut left = INSERT_ATTEMPTS;
    loop {
        left -= 1;
        match connection.query(sql).await {
            Ok(_) => return Ok(()),
            Err(error) if left > 0 && error.code().is_some_and(|code| IN_THE_WAY.contains(&code)) => {}
            Err(error) => return Err(error),
        }
    }
}

async fn finish<C: Connection>(
    mut connection: C,
    schema: Rc<Schema>,
    tables: Rc<RefCell<VecDeque<u32>>>,
    progress: Progress<u32>,
) -> Outcome {
    loop {
        let Some(table) = tables.borrow_mut().pop_front() else {
            break;
        };
        let index = schema.create_index(table);
        for sql in index.into_iter().chain([schema.set_mark(table), schema.analyze(table)]) {
            query(&mut connection, &sql).await?;
        }
        let _ = progress.send(table);
    }
    connection.close().await;
    Ok(())
}

async fn query(connection: &mut impl Connection, sql: &str) -> Outcome {
    let result: Result<_, WireError> = connection.query(sql.as_bytes()).await;
    result.map(|_| ()).map_err(|error| failure::working(&error, sql))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_row_once() {
        for (tables, rows, streams) in [(1, 10, 4), (1, 3, 8), (10, 7, 2), (3, 1000, 2)] {
            let tables: Vec<u32> = (1..=tables).collect();
            let pieces = pieces(&tables, rows, streams);
            for &table in &tables {
                let mut next = 1;
                for piece in pieces.iter().filter(|piece| piece.table == table) {
                    assert_eq!(piece.first, next);
                    next = piece.last + 1;
                }
                assert_eq!(next, rows + 1);
            }
        }
    }
}
