//! The loader: makes the tables of a plan, fills them, and drops them.
//!
//! Streams take pieces of tables from one list. A piece is a whole table where there are enough of them, and a
//! range of ids otherwise, so that one large table loads in parallel too. A stream writes ascending ids, which
//! is the order that fills pages best. Rows and index are made one after the other, and timed apart.
//!
//! # Layout
//! - this file: the order of the steps, and the streams.
//! - `existing`: what is there before, and what may be done with it.
//! - `command`, `queries`: what is asked for, and statements one after the other.
//! - `pieces`: how tables are cut.
//! - `fill`: rows, by LOAD DATA LOCAL, COPY or INSERT.
//! - `generated`: the user's own tables with generated rows.
//! - `finish`: index, mark, statistics.
//! - `by_table`: all of it for tables of another form, one after the other; `rehearse`: without a server.
//! - `tally`: what it all took.

mod by_table;
mod command;
mod existing;
mod fill;
mod finish;
mod generated;
mod pieces;
mod queries;
mod rehearse;
mod tally;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use dbdyno_schema::Record;
use dbdyno_schema::plan::{LoadingMethod, SqlWorkload, Target};
use dbdyno_schema::record::{EndReason, Failure, Loading, LoadingStep, LoadingWay};
use dbdyno_wire::bulk::BulkLoad;
use dbdyno_wire::mysql::MysqlConnector;
use dbdyno_wire::postgres::PostgresConnector;
use dbdyno_wire::{Connection, Connector};
use dbdyno_workload::generated::Generated;
use dbdyno_workload::schema::Schema;
use dbdyno_workload::tables::Tables;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{JoinSet, LocalSet};

use self::command::Command;
use self::fill::{Filling, fill};
use self::pieces::{Piece, pieces, queue};
use self::queries::{Outcome, queries};
use self::tally::Tally;
use crate::connector::{AnyConnector, connector};
use crate::control::Inbox;
use crate::failure;
use crate::{Ended, Order, Sink};

/// Makes and fills the plan's tables. Complete ones of the same specification are kept; anything else in their
/// place is a conflict, and nothing is changed.
pub fn prepare(order: &Order, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
    work(order, &inbox, sink, Command::Prepare)
}

/// Drops the plan's tables, as far as dbdyno made them; those of another form ([`crate::Options::tables`]) whoever made them.
pub fn cleanup(order: &Order, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
    work(order, &inbox, sink, Command::Cleanup)
}

/// Reads the plan's tables, by as many streams as load them. The statements follow the form of the tables.
pub fn prewarm(order: &Order, inbox: Inbox, sink: &mut dyn Sink) -> Ended {
    work(order, &inbox, sink, Command::Prewarm)
}

/// How often the loader looks for an order to stop.
const STOP_POLL: Duration = Duration::from_millis(50);

/// A way to connections that load. Those that may be asked for data are others.
trait Loads: Connector<Connection: BulkLoad> {
    /// The schema or database with the tables.
    fn database(&self) -> &str;

    /// The same way, to connections that may be asked for data.
    fn for_data(&self) -> Self;
}

impl Loads for MysqlConnector {
    fn database(&self) -> &str {
        &self.options.database
    }

    fn for_data(&self) -> Self {
        Self { local_data: true, ..self.clone() }
    }
}

impl Loads for PostgresConnector {
    fn database(&self) -> &str {
        &self.options.database
    }

    fn for_data(&self) -> Self {
        self.clone()
    }
}

struct Job<'a, C> {
    schema: Rc<Schema>,
    generated: Rc<Generated>,
    target: Target,
    connector: C,
    streams: u32,
    method: LoadingMethod,
    inbox: &'a Inbox,
    sink: RefCell<&'a mut dyn Sink>,
    began: Instant,
    rows_planned: Cell<u64>,
    tally: RefCell<Tally>,
    /// The user's own SQL.
    own: Option<&'a SqlWorkload>,
}

fn work(order: &Order, inbox: &Inbox, sink: &mut dyn Sink, command: Command) -> Ended {
    let statements = order.program().describe();
    crate::command::command(&order.plan, statements, sink, |sink| match connector(order) {
        AnyConnector::Mysql(connector) => on_runtime(order, connector, inbox, sink, command),
        AnyConnector::Postgres(connector) => on_runtime(order, connector, inbox, sink, command),
        AnyConnector::Null(_) => {
            // Nobody's tables are always ready; where every step is told, so are those that would have been taken.
            if order.options.tables.is_some() {
                rehearse::rehearse(&order.schema(), command, sink);
            }
            Ok(())
        }
    })
}

fn on_runtime<C: Loads>(
    order: &Order,
    connector: C,
    inbox: &Inbox,
    sink: &mut dyn Sink,
    command: Command,
) -> Outcome {
    let plan = &*order.plan;
    let own = plan.workload.own_sql();
    let job = Job {
        schema: Rc::new(order.schema()),
        generated: Rc::new(Generated::of(plan)),
        target: plan.target.clone(),
        connector,
        streams: plan.loading.streams,
        method: plan.loading.method,
        inbox,
        sink: RefCell::new(sink),
        began: Instant::now(),
        rows_planned: Cell::new(0),
        tally: RefCell::default(),
        own,
    };
    // Tables of the user's own have no form.
    let by_table = own.is_none() && order.options.tables.is_some();
    let done = async {
        match command {
            Command::Prepare if by_table => job.prepare_by_table().await,
            Command::Prepare => job.prepare().await,
            Command::Cleanup if by_table => job.cleanup_by_table().await,
            Command::Cleanup => job.cleanup().await,
            Command::Prewarm => job.prewarm().await,
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime needs three file descriptors");
    LocalSet::new().block_on(&runtime, async {
        tokio::select! {
            outcome = done => outcome,
            outcome = job.stopped() => outcome,
        }
    })
}

impl<C: Loads> Job<'_, C> {
    async fn prepare(&self) -> Outcome {
        let mut connection = self.connect(&self.connector).await?;
        queries(&mut connection, self.own.iter().flat_map(|own| &own.setup)).await?;
        if !self.generated.is_empty() {
            return self.generate(connection).await;
        }
        let missing = self.create_missing(&mut connection).await?;
        connection.close().await;
        let way = self.fill(&missing).await?;
        self.index(&missing).await?;
        let analyze = Instant::now();
        let complete = queue(missing.iter().copied());
        let schema = &self.schema;
        let stream =
            |connection, progress| finish::complete(connection, schema.clone(), complete.clone(), progress);
        self.in_streams(&self.connector, missing.len(), stream, |_table| {}).await?;
        let loaded = self.tally.borrow().record(&**schema, way, self.streams, analyze.elapsed());
        self.sink.borrow_mut().record(&Record::Loaded(Box::new(loaded)));
        Ok(())
    }

    async fn cleanup(&self) -> Outcome {
        let mut connection = self.connect(&self.connector).await?;
        queries(&mut connection, self.own.iter().flat_map(|own| &own.cleanup)).await?;
        self.drop_ours(&mut connection).await?;
        connection.close().await;
        Ok(())
    }

    /// Fills the tables, and tells how rows travelled.
    async fn fill(&self, tables: &[u32]) -> Result<LoadingWay, (EndReason, Failure)> {
        if tables.is_empty() {
            return Ok(LoadingWay::None);
        }
        let pieces = pieces(tables, self.schema.rows(), self.streams);
        self.fill_pieces(&self.schema, pieces).await
    }

    /// Fills these pieces, and tells how rows travelled.
    async fn fill_pieces<T: Tables + 'static>(
        &self,
        tables: &Rc<T>,
        pieces: Vec<Piece>,
    ) -> Result<LoadingWay, (EndReason, Failure)> {
        let wanted = pieces.len();
        let (filling, connector) = self.filling(tables, pieces);
        let settings = self.session_settings();
        let stream = |connection, progress| fill(connection, settings.clone(), Rc::clone(&filling), progress);
        let take = |stored: fill::Stored| {
            self.tally.borrow_mut().stored(stored);
            self.tell(LoadingStep::Rows, tables.name(stored.table));
        };
        self.in_streams(&connector, wanted, stream, take).await?;
        Ok(filling.way.get())
    }

    /// What fills these pieces, and the way to the connections that may be asked for data; no other of ours may be.
    fn filling<T: Tables>(&self, tables: &Rc<T>, pieces: Vec<Piece>) -> (Rc<Filling<T>>, C) {
        let first = match self.method {
            LoadingMethod::Insert => LoadingWay::Insert,
            _ if self.target.is_postgresql() => LoadingWay::Copy,
            _ => LoadingWay::LoadDataLocal,
        };
        let filling = Filling {
            tables: Rc::clone(tables),
            pieces: queue(pieces),
            method: self.method,
            way: Cell::new(first),
        };
        let wants_data = first != LoadingWay::Insert;
        (Rc::new(filling), if wants_data { self.connector.for_data() } else { self.connector.clone() })
    }

    async fn index(&self, tables: &[u32]) -> Outcome {
        let left = queue(tables.iter().copied());
        let stream =
            |connection, progress| finish::index(connection, self.schema.clone(), left.clone(), progress);
        let take = |indexed: finish::Indexed| {
            self.tally.borrow_mut().indexed(indexed);
            self.report(LoadingStep::Indexed, indexed.table);
        };
        self.in_streams(&self.connector, tables.len(), stream, take).await
    }

    /// Runs as many streams as the plan says, and no more than `wanted`, each on a connection of its own, and
    /// hands what they tell to `take`. The first failure ends them all.
    async fn in_streams<M, S: Future<Output = Outcome> + 'static>(
        &self,
        connector: &C,
        wanted: usize,
        stream: impl Fn(C::Connection, UnboundedSender<M>) -> S,
        take: impl Fn(M),
    ) -> Outcome {
        let (progress, mut told) = unbounded_channel();
        let mut streams = JoinSet::new();
        for _ in 0..wanted.min(self.streams as usize) {
            streams.spawn_local(stream(self.connect(connector).await?, progress.clone()));
        }
        drop(progress);
        loop {
            tokio::select! {
                biased;
                Some(message) = told.recv() => take(message),
                ended = streams.join_next() => match ended {
                    Some(stream) => stream.expect("a stream does not panic")?,
                    None => break,
                },
            }
        }
        Ok(())
    }

    async fn connect(&self, connector: &C) -> Result<C::Connection, (EndReason, Failure)> {
        connector.connect(0).await.map_err(|error| failure::connecting(&error, &self.target, 0))
    }

    /// Waits for an order to stop, also while a server takes hours over an answer or never gives one.
    async fn stopped(&self) -> Outcome {
        loop {
            self.check_stop()?;
            tokio::time::sleep(STOP_POLL).await;
        }
    }

    fn check_stop(&self) -> Outcome {
        match self.inbox.stop_order() {
            Some(reason) => Err((
                reason,
                Failure { code: None, text: "stopped while loading".into(), ..Failure::default() },
            )),
            None => Ok(()),
        }
    }

    fn report(&self, step: LoadingStep, table: u32) {
        self.tell(step, self.schema.name(table));
    }

    fn tell(&self, step: LoadingStep, table: String) {
        self.sink.borrow_mut().record(&Record::Loading(Loading {
            step,
            table,
            rows: self.tally.borrow().rows(),
            rows_planned: self.rows_planned.get(),
            at_us: self.began.elapsed().as_micros() as u64,
        }));
    }
}
