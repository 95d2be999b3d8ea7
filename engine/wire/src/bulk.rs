//! Bulk loading: the client generates rows while the server receives them.

use crate::{Connection, Outcome, WireError};

/// Why rows were not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The server refuses the statement before any data.
    Refused(WireError),
    /// The server failed after it had asked for the data.
    Failed(WireError),
}

/// A connection that can load rows in bulk.
pub trait BulkLoad: Connection {
    /// Sends `sql`, for which the server requests data from the client, and then the data.
    ///
    /// `rows` appends about as many bytes of rows as its second argument requests, and returns whether there are more; the
    /// next call follows when the socket has accepted them. The outcome's rows are those that the server stored.
    ///
    /// # Errors
    /// The server's own, such as a deadlock; then the server stores no rows of this statement if the tables support
    /// transactions.
    fn load(
        &mut self,
        sql: &str,
        rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> impl Future<Output = Result<Outcome, LoadError>>;
}
