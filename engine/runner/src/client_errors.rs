//! Words a failure as the databases' own client libraries do (MariaDB's library and libpq), because users know these
//! messages and search for them.

use dbdyno_schema::plan::{Endpoint, Target};
use dbdyno_schema::record::{FailedAction, ServerFailure};
use dbdyno_wire::WireError;
use dbdyno_wire::mysql::errors;

mod libpq;

/// Maximum bytes of a statement in a record; a bulk insert has half a MiB.
const STATEMENT_BYTES_MAX: usize = 4096;
/// The SQLSTATE of an error that does not come from a server.
const CLIENT_ERROR_STATE: &str = "HY000";

/// The endpoint of connection `number` of a run; `None` without a server.
pub(crate) fn endpoint(target: &Target, number: u64) -> Option<&Endpoint> {
    let endpoints = target.endpoints();
    endpoints.get((number % endpoints.len().max(1) as u64) as usize)
}

/// Describes why connection `number` of a run could not be opened.
pub fn connect_failure(error: &WireError, target: &Target, number: u64) -> ServerFailure {
    let endpoint = endpoint(target, number);
    let (code, message) = match error {
        error if target.is_postgresql() => (0, libpq::connect_message(error, endpoint)),
        WireError::Lost(text) => unreachable_endpoint(text, endpoint),
        error => code_and_message(error),
    };
    ServerFailure {
        action: FailedAction::Connect,
        code,
        sqlstate: sqlstate(error),
        message,
        statement: String::new(),
        endpoint: endpoint.cloned(),
    }
}

/// Describes why a statement failed.
pub fn statement_failure(action: FailedAction, error: &WireError, statement: &str) -> ServerFailure {
    let (code, message) = code_and_message(error);
    let statement = shorten(statement).to_owned();
    ServerFailure { action, code, sqlstate: sqlstate(error), message, statement, endpoint: None }
}

/// The beginning of a statement, for messages and records.
pub(crate) fn shorten(statement: &str) -> &str {
    let mut end = statement.len().min(STATEMENT_BYTES_MAX);
    while !statement.is_char_boundary(end) {
        end -= 1;
    }
    &statement[..end]
}

/// Number, SQLSTATE and message of a statement's error.
pub fn describe(error: &WireError, target: &Target) -> (u16, String, String) {
    if target.is_postgresql() {
        return (0, libpq::sqlstate(error), libpq::message(error));
    }
    let (code, message) = code_and_message(error);
    (code, sqlstate(error), message)
}

fn sqlstate(error: &WireError) -> String {
    match error {
        WireError::Server { state, .. } => state.clone(),
        _ => CLIENT_ERROR_STATE.into(),
    }
}

fn code_and_message(error: &WireError) -> (u16, String) {
    match error {
        WireError::Server { code, message, .. } => (*code, message.clone()),
        WireError::Lost(_) => (errors::CR_SERVER_LOST, "Lost connection to server during query".into()),
        WireError::Protocol(_) => (errors::CR_MALFORMED_PACKET, "Received malformed packet".into()),
        WireError::Refused { code, text, .. } => (*code, text.clone()),
    }
}

/// Number and message for an unreachable endpoint. MariaDB's library connects over TCP in non-blocking mode, so the
/// system error in its message is always EINPROGRESS (115).
fn unreachable_endpoint(text: &str, endpoint: Option<&Endpoint>) -> (u16, String) {
    match endpoint {
        Some(Endpoint::Tcp { host, .. }) if text.contains("lookup address") => {
            (errors::CR_UNKNOWN_HOST, format!("Unknown server host '{host}' (-2)"))
        }
        Some(Endpoint::Tcp { host, .. }) => {
            (errors::CR_CONNECTION_ERROR, format!("Can't connect to server on '{host}' (115)"))
        }
        Some(Endpoint::Unix { path }) => {
            let number = text.split_once("(os error ").and_then(|(_, rest)| rest.split_once(')'));
            let number = number.map_or("2", |(number, _)| number);
            (
                errors::CR_CONNECTION_ERROR,
                format!("Can't connect to local server through socket '{path}' ({number})"),
            )
        }
        None => (errors::CR_CONNECTION_ERROR, text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_endpoint_has_the_message_of_mariadbs_library() {
        let tcp = Endpoint::Tcp { host: "h".into(), port: 1 };
        let unix = Endpoint::Unix { path: "/s".into() };
        let report = |text: &str, endpoint_json| {
            let target = serde_json::json!({"protocol": "mysql", "endpoints": [endpoint_json], "user": "u", "database": "d"});
            let failure =
                connect_failure(&WireError::Lost(text.into()), &serde_json::from_value(target).unwrap(), 0);
            (failure.code, failure.message)
        };
        assert_eq!(
            report("h:1: Connection refused (os error 111)", &tcp),
            (2002, "Can't connect to server on 'h' (115)".into())
        );
        assert_eq!(
            report("h:1: failed to lookup address information: Name or service not known", &tcp),
            (2005, "Unknown server host 'h' (-2)".into())
        );
        assert_eq!(
            report("/s: Permission denied (os error 13)", &unix),
            (2002, "Can't connect to local server through socket '/s' (13)".into())
        );
    }

    #[test]
    fn a_long_statement_is_cut_between_characters() {
        let error =
            WireError::Server { code: 1064, state: "42000".into(), message: "m".into(), is_fatal: false };
        let failure = statement_failure(FailedAction::Query, &error, &"é".repeat(3000));
        assert_eq!(failure.statement, "é".repeat(2048));
        let failure = statement_failure(FailedAction::Execute, &error, &format!("x{}", "é".repeat(3000)));
        assert_eq!(failure.statement.len(), 4095);
        assert_eq!((failure.code, failure.sqlstate.as_str(), failure.message.as_str()), (1064, "42000", "m"));
    }

    #[test]
    fn connections_take_the_endpoints_in_turn() {
        let target = serde_json::json!({"protocol": "mysql", "user": "u", "database": "d",
            "endpoints": [{"unix": {"path": "/a"}}, {"unix": {"path": "/b"}}]});
        let target = serde_json::from_value(target).unwrap();
        assert_eq!(endpoint(&target, 3), Some(&Endpoint::Unix { path: "/b".into() }));
    }
}
