//! Errors with a way out.

use dbdyno_door::record::{EndReason, Failure};
use dbdyno_wire::WireError;

/// The failure to open, log in or prepare on a connection.
pub(crate) fn connecting(error: &WireError) -> (EndReason, Failure) {
    (EndReason::ConnectFailed, failure(error, hint(error)))
}

/// A failure in the middle of a run or of loading.
pub(crate) fn working(error: &WireError, statement: &str) -> (EndReason, Failure) {
    let reason = match error {
        WireError::Server { .. } => EndReason::ServerError,
        _ => EndReason::ConnectionLost,
    };
    let mut failure = failure(error, hint(error));
    if !statement.is_empty() {
        failure.text = format!("{}, on: {statement}", failure.text);
    }
    (reason, failure)
}

/// The number under which an error is counted: the server's, or the one MySQL's own clients give it.
pub(crate) fn code(error: &WireError) -> u16 {
    match error {
        WireError::Server { code, .. } => *code,
        WireError::Lost(_) => 2013,
        WireError::Protocol(_) => 2027,
        WireError::Unsupported(_) => 2059,
    }
}

fn failure(error: &WireError, hint: Option<&str>) -> Failure {
    Failure { code: error.code(), text: error.to_string(), hint: hint.map(str::to_owned) }
}

fn hint(error: &WireError) -> Option<&'static str> {
    Some(match error {
        WireError::Server { code, .. } => match code {
            1040 => "raise max_connections, or use fewer connections",
            1044 | 1045 => "check user and password, and the account's rights on the schema",
            1049 => "create the schema, or name another",
            1146 => "load the tables first: prepare with the same options",
            1142 | 1227 => "grant the account the rights on its own schema",
            1114 | 1021 => "make room on the server's disk",
            1203 | 1226 => "raise max_user_connections, or use fewer connections",
            1461 => {
                "raise max_prepared_stmt_count to at least connections x prepared statements per connection, \
                 or use fewer connections or tables"
            }
            2013 | 1053 => "the server was stopped; look into its error log",
            _ => return None,
        },
        WireError::Lost(_) => "see whether the server runs and listens there, and what its error log says",
        WireError::Unsupported(_) => "give the account mysql_native_password, or use another account",
        WireError::Protocol(_) => "see whether a MySQL or MariaDB server listens there",
    })
}
