//! Rows that the client makes while the server takes them.

use crate::{Connection, Outcome, WireError};

/// Why rows were not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTrouble {
    /// The server does not want the data of this statement at all.
    Refused(WireError),
    /// It took some, and then failed.
    Failed(WireError),
}

/// A connection that can load rows in bulk.
pub trait BulkLoad: Connection {
    /// Sends `sql`, a statement for which the server wants data from the client, and then the data.
    ///
    /// `rows` appends at most about as many bytes of them as it is told, and returns whether there are more; it is asked
    /// again only when the socket has taken what there was. The outcome's rows are those that the server stored.
    ///
    /// # Errors
    /// The server's own, for instance a deadlock; then nothing of this statement is stored where the tables know
    /// transactions.
    fn load(
        &mut self,
        sql: &str,
        rows: impl FnMut(&mut Vec<u8>, usize) -> bool,
    ) -> impl Future<Output = Result<Outcome, LoadTrouble>>;
}
