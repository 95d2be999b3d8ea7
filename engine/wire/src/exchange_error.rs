//! Errors of an exchange with a server.

use std::io;
use std::time::Duration;

use crate::WireError;

/// An error of the socket, or of the server's answer, while both are possible.
pub(crate) enum ExchangeError {
    Io(io::Error),
    Wire(WireError),
}

impl From<io::Error> for ExchangeError {
    fn from(error: io::Error) -> Self {
        ExchangeError::Io(error)
    }
}

impl ExchangeError {
    pub(crate) fn into_wire(self) -> WireError {
        match self {
            ExchangeError::Io(error) => connection_lost(error),
            ExchangeError::Wire(error) => error,
        }
    }
}

pub(crate) fn connection_lost(error: io::Error) -> WireError {
    // The layer of compression passes a protocol error of the server inside an I/O error.
    if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<WireError>()) {
        return inner.clone();
    }
    WireError::Lost(match error.kind() {
        io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
        _ => format!("the connection broke: {error}"),
    })
}

/// Runs `attempt` for at most `limit`; `what` names it in the error.
pub(crate) async fn with_timeout<T>(
    limit: Duration,
    what: &str,
    attempt: impl Future<Output = Result<T, WireError>>,
) -> Result<T, WireError> {
    match tokio::time::timeout(limit, attempt).await {
        Ok(result) => result,
        Err(_) => Err(WireError::Lost(format!("{what}: no answer within {:.1} s", limit.as_secs_f64()))),
    }
}
