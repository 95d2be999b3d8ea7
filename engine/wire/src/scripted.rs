//! Additional operations of a connection for scripts: statements prepared and closed at any time,
//! parameters of more types, results whose rows are kept, and calls that block the thread.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

pub use crate::connection::{Parameter, Type};
pub use crate::rows::{ResultSet, RowEncoding, Rows};
use crate::{Connection, Connector, Outcome, WireError};

/// A statement that the server has prepared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The server's name for the statement.
    pub id: u32,
    /// Number of placeholders in the statement.
    pub parameters: u16,
}

/// A connection that scripts can use.
///
/// Writing and sending a message are separate calls, so that the script is not borrowed while the client awaits the
/// answer.
pub trait Scripted: Connection {
    /// Writes the message that prepares `sql`.
    fn write_prepare(&mut self, sql: &[u8]);

    /// Writes the message that executes prepared statement `id`. `types_changed`: whether the types of the parameters have
    /// changed since the last execution.
    fn write_execute<'a>(
        &mut self,
        id: u32,
        parameters: impl Iterator<Item = Parameter<'a>> + Clone,
        types_changed: bool,
    );

    /// Writes the message that executes `sql`.
    fn write_query(&mut self, sql: &[u8]);

    /// Sends the message of [`Scripted::write_prepare`].
    fn send_prepare(&mut self) -> impl Future<Output = Result<Prepared, WireError>>;

    /// Sends the written message and reads the answer without storing its rows.
    fn skim(&mut self) -> impl Future<Output = Result<Outcome, WireError>>;

    /// Sends the written message and stores the rows of the first result in `rows`, or the rows of all results if
    /// [`Scripted::track_result_sets`] was called. Returns `rows` even with an error.
    fn fetch_rows(&mut self, rows: Rows) -> impl Future<Output = (Rows, Result<Outcome, WireError>)>;

    /// From now on, records each result of an answer that has several results, if the protocol has such answers.
    fn track_result_sets(&mut self) {}

    /// Takes the results of the last answer; empty if the answer had only one result.
    fn take_result_sets(&mut self) -> Vec<ResultSet> {
        Vec::new()
    }

    /// Closes prepared statement `id`. The server does not reply.
    fn close_statement(&mut self, id: u32) -> impl Future<Output = Result<(), WireError>>;

    /// Selects whether reads and writes of this connection block the thread instead of suspending the task; see
    /// [`block_on`].
    fn set_blocking(&mut self, blocking: bool);
}

/// A connector whose connections scripts can use.
pub trait ScriptedConnector: Connector<Connection: Scripted> {
    /// Like [`Connector::connect`], but blocks the thread, for [`block_on`].
    fn connect_blocking(
        &self,
        connection_number: u64,
    ) -> impl Future<Output = Result<Self::Connection, WireError>>;
}

/// Runs a future that waits only for blocking connections.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(tokio::task::unconstrained(future));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
    }
}
