//! With whom: the protocols of the databases, as far as a load generator needs them.
//!
//! Every protocol is split in two: messages are functions over bytes without sockets ([`mysql::message`],
//! [`mysql::skim`], [`postgres::message`], [`postgres::skim`]), and one thin socket layer ([`socket`]) moves the bytes. Result sets are skimmed, not read:
//! rows and bytes are counted, and nothing is stored unless [`Connection::rows`] asks for it.

// The sockets and the clock of a time limit live here (ARCHITECTURE.md, rule 2).
#![allow(clippy::disallowed_methods)]

mod address;
pub mod bulk;
mod compressed;
pub mod delay;
mod holding;
pub mod mysql;
pub mod null;
pub mod postgres;
pub mod scripted;
mod socket;
pub mod tls;
mod trouble;
mod words;

use std::time::Duration;

use dbdyno_door::record::{ErrorClass, Session};
use thiserror::Error;

pub use self::address::Address;
use self::scripted::Type;

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

/// Why a statement or a connection failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// The server's own answer.
    #[error("the server answered with error {}: {message}", number_and_state(*code, state))]
    Server {
        /// The server's error number; 0 where its errors have none, as PostgreSQL's.
        code: u16,
        /// SQLSTATE; `HY000` where the server gives none.
        state: String,
        /// The server's words.
        message: String,
        /// Whether it ends the connection, where the server says so: PostgreSQL's FATAL and PANIC.
        is_fatal: bool,
    },
    /// The address does not answer, or the connection broke.
    #[error("{0}")]
    Lost(String),
    /// The server sent what the protocol does not allow, or asked for what we never give.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// What we will not or cannot do to open a connection as it was asked for.
    #[error("{text}")]
    Refused {
        /// The number that MySQL's own clients give it.
        code: u16,
        /// What it is.
        text: String,
        /// What would help.
        way_out: String,
    },
}

impl WireError {
    /// The server's error number, where it gave one.
    pub fn code(&self) -> Option<u16> {
        match self {
            WireError::Server { code, .. } if *code != 0 => Some(*code),
            _ => None,
        }
    }

    /// SQLSTATE of the server's error, where it gave one.
    pub fn state(&self) -> Option<&str> {
        match self {
            WireError::Server { state, .. } => Some(state),
            _ => None,
        }
    }

    /// What the error of a statement means for a run. That of an attempt to connect is [`ErrorClass::Refused`].
    pub fn class(&self) -> ErrorClass {
        match self {
            WireError::Lost(_) | WireError::Server { is_fatal: true, .. } => ErrorClass::Lost,
            WireError::Server { code: 0, state, .. } => postgres::errors::class(state),
            WireError::Server { code, .. } => mysql::errors::class(*code),
            WireError::Refused { .. } => ErrorClass::Refused,
            WireError::Protocol(_) => ErrorClass::Other,
        }
    }
}

fn number_and_state(number: u16, state: &str) -> String {
    if number == 0 { state.to_owned() } else { format!("{number} ({state})") }
}

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

/// Runs `attempt` for at most `limit`; `what` names it in the error.
async fn within<T>(
    limit: Duration,
    what: &str,
    attempt: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    match tokio::time::timeout(limit, attempt).await {
        Ok(result) => result,
        Err(_) => Err(WireError::Lost(format!("{what}: no answer within {:.1} s", limit.as_secs_f64()))),
    }
}
