//! Bulk loading: the client generates rows while the server receives them.

use crate::{Connection, Outcome, WireError};

/// Why rows were not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The server refused the statement before it requested any data.
    Refused(WireError),
    /// The server failed after it had requested the data.
    Failed(WireError),
}

/// A connection that can load rows in bulk.
pub trait BulkLoad: Connection {
    /// Sends `sql`, to which the server replies with a request for data, and then the data.
    ///
    /// `rows` appends rows of about as many bytes as its second argument requests, and returns whether there are more.
    /// It is called again when the socket has accepted these rows. The rows in the outcome are those that the server
    /// stored.
    ///
    /// # Errors
    /// An error of the server, such as a deadlock. If the tables support transactions, the server then stores no rows
    /// of this statement.
    fn load(
        &mut self,
        sql: &str,
        rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> impl Future<Output = Result<Outcome, LoadError>>;
}
