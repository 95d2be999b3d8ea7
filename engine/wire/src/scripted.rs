//! What a script asks of a connection, beyond what a native workload does: statements prepared and closed at any time,
//! parameters of more types, results whose rows are kept, and calls during which the whole thread waits.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::{Connection, Connector, Outcome, WireError, postgres};

/// One parameter, borrowed from the script.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameter<'a> {
    /// NULL, where values of this type stand otherwise.
    Null(Type),
    /// An integer.
    Int(i64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Text(&'a [u8]),
}

/// Type of a parameter. It stays the same from one execution to the next, so that the server is told once.
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
    /// Its type.
    pub fn kind(&self) -> Type {
        match self {
            Parameter::Null(kind) => *kind,
            Parameter::Int(_) => Type::Int,
            Parameter::Double(_) => Type::Double,
            Parameter::Text(_) => Type::Text,
        }
    }
}

/// What the server said to a prepare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The server's name for the statement.
    pub id: u32,
    /// Placeholders in it.
    pub parameters: u16,
}

/// Rows kept of one result, behind each other as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Row packets.
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
    /// Columns of each.
    pub columns: u32,
    /// How a row holds its columns.
    pub form: Form,
}

/// One of several results that a server gave to one statement, as to the call of a procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Whether it is a result set, even an empty one.
    pub returns_rows: bool,
    /// Rows in it, or rows changed where it is none.
    pub rows: u64,
    /// Columns of its rows, where they are kept.
    pub columns: u32,
    /// The first of its rows among those that are kept; they end where the next part's begin.
    pub first_row: usize,
}

/// How a row holds its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// MySQL's text protocol: each after its length.
    #[default]
    LengthEncoded,
    /// PostgreSQL's DataRow: their number, then each after its length.
    Counted,
}

impl Rows {
    /// Row `index`, as it was sent.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(start..*self.ends.get(index)?)
    }

    /// Hands each column of `row` with its number, from 0, to `take`; `None` is NULL. Ends where the row is cut short.
    pub fn each_column(&self, row: &[u8], take: impl FnMut((usize, Option<&[u8]>))) {
        let count = self.columns as usize;
        match self.form {
            Form::LengthEncoded => columns(row).take(count).enumerate().for_each(take),
            Form::Counted => postgres::skim::columns(row).take(count).enumerate().for_each(take),
        }
    }

    /// Forgets the rows; keeps the memory unless it is much.
    pub fn clear(&mut self) {
        const KEEP: usize = 64 << 10;
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(KEEP);
        self.ends.shrink_to(KEEP / 8);
        self.columns = 0;
    }
}

/// The columns of a kept row of the text protocol; `None` is NULL. Ends where the row is cut short.
fn columns(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = row;
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        let (bytes, length) = match first {
            0xfb => {
                rest = after;
                return Some(None);
            }
            0xfc => (2, 0),
            0xfd => (3, 0),
            0xfe => (8, 0),
            0xff => return None,
            length => (0, usize::from(length)),
        };
        let (size, after) = after.split_at_checked(bytes)?;
        let length = size.iter().rev().fold(length, |value, &byte| value << 8 | usize::from(byte));
        let (column, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(column))
    })
}

/// A connection that scripts can use.
///
/// A message is written first and sent afterwards, so that nothing borrowed from the script is held while the answer
/// is awaited.
pub trait Scripted: Connection {
    /// Writes the message that prepares `sql`.
    fn write_prepare(&mut self, sql: &[u8]);

    /// Writes the message that runs prepared statement `id`. `types` says that the types are not those of the last time.
    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        types: bool,
    );

    /// Writes the message that runs `sql`.
    fn write_query(&mut self, sql: &[u8]);

    /// Sends what [`Scripted::write_prepare`] wrote.
    fn prepared(&mut self) -> impl Future<Output = Result<Prepared, WireError>>;

    /// Sends what was written and skims the answer.
    fn skimmed(&mut self) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Sends what was written and keeps the rows of the first result in `rows`, which it returns whatever happens; those
    /// of all results after [`Scripted::tell_parts`].
    fn kept(&mut self, rows: Rows) -> impl Future<Output = (Rows, Result<Outcome, WireError>)>;

    /// From here on an answer of several results is told one by one, where the protocol has such answers.
    fn tell_parts(&mut self) {}

    /// Takes the results of the last answer where there were several, the first included; nothing where there was one.
    fn take_parts(&mut self) -> Vec<Part> {
        Vec::new()
    }

    /// Forgets prepared statement `id`. The server does not answer.
    fn forget(&mut self, id: u32) -> impl Future<Output = Result<(), WireError>>;

    /// From here on the thread waits, and not the task, for every byte of this connection: see [`at_once`].
    fn hold_thread(&mut self, hold: bool);
}

/// A connector of such connections.
pub trait ScriptedConnector: Connector<Connection: Scripted> {
    /// As [`Connector::connect`], for [`at_once`]: the thread waits.
    fn connect_at_once(&self, number: u64) -> impl Future<Output = Result<Self::Connection, WireError>>;
}

/// Runs work that waits for nothing but connections that hold the thread.
pub fn at_once<T>(work: impl Future<Output = T>) -> T {
    let mut work = pin!(tokio::task::unconstrained(work));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = work.as_mut().poll(&mut context) {
            return done;
        }
    }
}
