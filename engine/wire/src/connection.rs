//! What every database is to a run: a way to open connections, and what is asked of one.

use dbdyno_schema::record::Session;

use crate::error::WireError;
use crate::parameter::Type;

/// One parameter of a prepared statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL, where strings stand otherwise.
    Null,
    /// An integer.
    Int(i64),
    /// A string.
    Text(Vec<u8>),
    /// A piece of the statement itself, put in as it is. For statements that travel as text.
    Verbatim(Vec<u8>),
}

/// What a statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it returned a result set, even an empty one.
    pub returns_rows: bool,
    /// Rows returned, or rows changed where there is no result set.
    pub rows: u64,
    /// Bytes received for it.
    pub bytes: u64,
}

/// A row of text columns, as [`Connection::rows`] returns it; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

/// A way to open connections; cheap to copy between threads.
pub trait Connector: Clone + Send + 'static {
    /// What it opens.
    type Connection: Connection;

    /// Opens connection `number` of the run and logs in. Connections are numbered over all workers and engines of a
    /// run, so that they spread evenly over a target's endpoints; one that is opened again keeps its number.
    fn connect(&self, number: u64) -> impl Future<Output = Result<Self::Connection, WireError>>;
}

/// One session with a server. At most one statement is under way at a time.
pub trait Connection: 'static {
    /// What the login settled.
    fn session(&self) -> &Session;

    /// Prepares a statement with a `?` for each parameter, of these types; it is known by its position, counted from 0
    /// in the order of the calls.
    fn prepare(&mut self, sql: &str, types: &[Type]) -> impl Future<Output = Result<(), WireError>>;

    /// Runs prepared statement number `statement` and skims its result.
    fn execute(
        &mut self,
        statement: usize,
        values: &[Value],
    ) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Runs a statement given as text with a `?` for each of `values`, which the client puts in.
    fn execute_text(
        &mut self,
        template: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Runs a statement given as text and skims its result.
    fn query(&mut self, sql: &[u8]) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Runs a statement given as text and keeps its rows. For set-up, never under measurement.
    fn rows(&mut self, sql: &str) -> impl Future<Output = Result<Vec<TextRow>, WireError>>;

    /// Says goodbye. The session is of no use afterwards.
    fn close(&mut self) -> impl Future<Output = ()>;
}
