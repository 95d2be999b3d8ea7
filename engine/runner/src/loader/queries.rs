//! Statements of the loader, and what its steps come to.

use dbdyno_schema::record::{EndReason, Failure};
use dbdyno_wire::{Connection, WireError};

use crate::failure;

/// What a step came to.
pub(super) type Outcome = Result<(), (EndReason, Failure)>;

/// A statement whose answer is of no interest.
pub(super) async fn query(connection: &mut impl Connection, sql: &str) -> Outcome {
    let result: Result<_, WireError> = connection.query(sql.as_bytes()).await;
    result.map(|_| ()).map_err(|error| failure::working(&error, sql))
}

/// One after the other, up to the first that fails.
pub(super) async fn queries<S: AsRef<str>>(
    connection: &mut impl Connection,
    statements: impl IntoIterator<Item = S>,
) -> Outcome {
    for sql in statements {
        query(connection, sql.as_ref()).await?;
    }
    Ok(())
}
