//! The common interface of all protocols: a connector opens connections, a connection executes statements.

use dbdyno_schema::record::Session;

use crate::error::WireError;
use crate::open_sessions::SessionKey;

/// One parameter of a native workload's statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL of string type.
    Null,
    /// An integer.
    Int(i64),
    /// A string.
    Text(Vec<u8>),
    /// A part of SQL text, for statements sent as text.
    Verbatim(Vec<u8>),
}

/// One parameter of a script's statement, borrowed from the script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// NULL of this type.
    Null(Type),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Text(&'a [u8]),
}

/// Type of a parameter. It is the same for all executions of a statement, so the client sends it only once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A signed integer of 64 bits.
    Int,
    /// A floating-point number of 64 bits.
    Double,
    /// A string.
    Text,
}

impl Parameter<'_> {
    /// The type to send.
    pub fn kind(&self) -> Type {
        match self {
            Parameter::Null(kind) => *kind,
            Parameter::Int(_) => Type::Int,
            Parameter::Double(_) => Type::Double,
            Parameter::Text(_) => Type::Text,
        }
    }
}

/// The effect of one statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it returned a result set, even an empty one.
    pub returns_rows: bool,
    /// Number of rows returned or, without a result set, changed.
    pub rows: u64,
    /// Bytes received as the result.
    pub bytes: u64,
}

/// A row of text columns, as [`Connection::query_rows`] returns it; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

/// Opens connections; cheap to copy between threads.
pub trait Connector: Clone + Send + 'static {
    /// The connections of this protocol.
    type Connection: Connection;

    /// Opens connection `number` and logs in. The number counts connections over all workers and engines of a run, so
    /// that connections spread evenly over a target's endpoints. A reopened connection keeps its number.
    fn connect(&self, number: u64) -> impl Future<Output = Result<Self::Connection, WireError>>;

    /// Cancels the statements that the server of connection `number` still executes for these sessions. Cancels none if
    /// the server accepts no further connection. The caller limits the time.
    fn cancel(&self, number: u64, sessions: Vec<SessionKey>) -> impl Future<Output = ()>;
}

/// One session with a server. It executes at most one statement at a time.
pub trait Connection: 'static {
    /// Server version, authentication method, encryption and compression of the login.
    fn session(&self) -> &Session;

    /// Prepares a statement that has a `?` for each parameter; `types` are the parameters' types. The statements are
    /// numbered from 0 in the order of the calls.
    fn prepare(&mut self, sql: &str, types: &[Type]) -> impl Future<Output = Result<(), WireError>>;

    /// Executes prepared statement number `statement` and skims its result: counts rows and bytes without storing them.
    fn execute(
        &mut self,
        statement: usize,
        values: &[Value],
    ) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Executes a statement given as text. The client writes one of `values` in place of each `?`.
    fn execute_text(
        &mut self,
        template: &str,
        values: &[Value],
    ) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Executes a statement given as text and skims its result.
    fn query(&mut self, sql: &[u8]) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Executes a statement given as text and returns its rows. It is not used during the load.
    fn query_rows(&mut self, sql: &str) -> impl Future<Output = Result<Vec<TextRow>, WireError>>;

    /// Ends the session.
    fn close(&mut self) -> impl Future<Output = ()>;
}
