//! What a script asks of a connection, beyond what a native workload does: statements prepared and closed at any time,
//! parameters of more types, results whose rows are kept, and calls during which the whole thread waits.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub use crate::parameter::{Parameter, Type};
pub use crate::rows::{Form, Part, Rows};
use crate::{Connection, Connector, Outcome, WireError};

/// What the server said to a prepare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The server's name for the statement.
    pub id: u32,
    /// Placeholders in it.
    pub parameters: u16,
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
