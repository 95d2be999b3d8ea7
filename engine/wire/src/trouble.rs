//! Errors of an exchange on their way to whoever asked.

use std::io;
use std::time::Duration;

use crate::WireError;

/// Either side of a failed exchange, until it is known whose fault it was.
pub(crate) enum Trouble {
    Io(io::Error),
    Wire(WireError),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Trouble::Io(error)
    }
}

impl Trouble {
    pub(crate) fn into_wire(self) -> WireError {
        match self {
            Trouble::Io(error) => lost(error),
            Trouble::Wire(error) => error,
        }
    }
}

pub(crate) fn lost(error: io::Error) -> WireError {
    // A layer above the socket may have found the server's fault.
    if let Some(found) = error.get_ref().and_then(|inner| inner.downcast_ref::<WireError>()) {
        return found.clone();
    }
    WireError::Lost(match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
        _ => format!("the connection broke: {error}"),
    })
}

/// Runs `attempt` for at most `limit`; `what` names it in the error.
pub(crate) async fn within<T>(
    limit: Duration,
    what: &str,
    attempt: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    match tokio::time::timeout(limit, attempt).await {
        Ok(result) => result,
        Err(_) => Err(WireError::Lost(format!("{what}: no answer within {:.1} s", limit.as_secs_f64()))),
    }
}
