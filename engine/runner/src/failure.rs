//! Why a run failed, and how to fix it.

use std::fmt::Write;

use dbdyno_load::Nanos;
use dbdyno_schema::plan::{Endpoint, ErrorCode, Plan, Target};
use dbdyno_schema::record::{EndReason, ErrorClass, FailedAction, Failure};
use dbdyno_wire::WireError;
use dbdyno_wire::mysql::errors as mysql_errors;
use dbdyno_wire::postgres::errors as postgres_errors;

use crate::{RunEnd, client_errors};

/// The reason and the failure that end a run or a command early.
pub(crate) type RunFailure = (EndReason, Failure);

/// Connection `number` of the run could not be opened to `target`, or the login failed.
pub(crate) fn from_connect_error(error: &WireError, target: &Target, number: u64) -> RunFailure {
    let mut failure = new_failure(error, ErrorClass::Refused);
    failure.server = Some(Box::new(client_errors::connect_failure(error, target, number)));
    (EndReason::ConnectFailed, failure)
}

/// A statement could not be prepared on a new connection.
pub(crate) fn from_prepare_error(error: &WireError, statement: &str) -> RunFailure {
    let mut failure = new_failure(error, error.class());
    failure.server =
        Some(Box::new(client_errors::statement_failure(FailedAction::Prepare, error, statement)));
    (EndReason::ConnectFailed, failure)
}

/// Whether the error ended the connection.
pub fn is_lost(error: &WireError) -> bool {
    error.class() == ErrorClass::Lost
}

/// A connection was lost with the error `lost` and could not be reopened for `after_us`; `error` is from the last
/// attempt.
pub(crate) fn from_reconnect_error(lost: &WireError, error: &WireError, after_us: u64) -> RunFailure {
    let mut failure = new_failure(error, ErrorClass::Lost);
    let after_s = after_us as f64 / 1e6;
    failure.text = format!(
        "a connection was lost ({lost}) and could not be opened again within {after_s:.1} s: {}",
        failure.text
    );
    (EndReason::ConnectionLost, failure)
}

/// The run ended while no user had a connection. The first was lost in second `since_s` of the measurement; `error` is from
/// the last attempt to open one.
pub(crate) fn all_connections_lost(error: &WireError, since_s: u64) -> Failure {
    let mut failure = new_failure(error, ErrorClass::Lost);
    failure.text = format!(
        "server gone since second {since_s}: every connection was lost, and none could be opened again until the end: {}",
        failure.text
    );
    failure
}

/// The server has not answered `statement` of connection `number` for `waited`, longer than the plan allows; `others` more
/// connections of the worker wait as long. A script's statement is unknown.
pub(crate) fn no_answer(
    target: &Target,
    number: u64,
    waited: Nanos,
    statement: Option<&str>,
    others: usize,
) -> RunFailure {
    let endpoint = client_errors::endpoint(target, number);
    let to = match endpoint {
        Some(Endpoint::Tcp { host, port }) => format!(" to {host}:{port}"),
        Some(Endpoint::Unix { path }) => format!(" to {path}"),
        None => String::new(),
    };
    let statement = statement.unwrap_or("a statement of the script");
    let mut text = format!(
        "connection {}{to} has waited {:.1} s for the answer to: {}",
        number + 1,
        waited as f64 / 1e9,
        client_errors::shorten(statement)
    );
    if others > 0 {
        let _ = write!(text, " ({others} other connection{} too)", if others == 1 { "" } else { "s" });
    }
    let fix = "find out why the server does not answer; if the statement may take so long, raise load.answer_timeout";
    let failure =
        Failure { text, class: Some(ErrorClass::Lost), fix: Some(fix.to_owned()), ..Failure::default() };
    (EndReason::ConnectionLost, failure)
}

/// A prepared statement failed.
pub(crate) fn from_execute_error(error: &WireError, statement: &str) -> RunFailure {
    from_statement_error(FailedAction::Execute, error, statement, statement)
}

/// A statement failed that was sent as the text `sent`; in the plan it is `statement`.
pub(crate) fn from_text_error(error: &WireError, statement: &str, sent: &str) -> RunFailure {
    from_statement_error(FailedAction::Query, error, statement, sent)
}

/// A statement failed that was sent as the plan contains it.
pub(crate) fn from_query_error(error: &WireError, statement: &str) -> RunFailure {
    from_text_error(error, statement, statement)
}

fn from_statement_error(action: FailedAction, error: &WireError, statement: &str, sent: &str) -> RunFailure {
    let reason = match error {
        WireError::Server { .. } if !is_lost(error) => EndReason::ServerError,
        _ => EndReason::ConnectionLost,
    };
    let mut failure = new_failure(error, error.class());
    if !statement.is_empty() {
        failure.text = format!("{}, on: {statement}", failure.text);
    }
    failure.server = Some(Box::new(client_errors::statement_failure(action, error, sent)));
    (reason, failure)
}

/// A script computed for seconds after the time limit.
pub(crate) fn endless_script(reason: EndReason) -> RunEnd {
    let text = "a function of the script computed for 5 s after the time limit and did not return: it probably loops without end";
    RunEnd { reason, failure: Some(Failure { text: text.into(), ..Failure::default() }) }
}

/// A user or a worker panicked.
pub(crate) fn internal_error() -> RunFailure {
    let text = "an internal error of dbdyno-engine ended a part of the load".to_owned();
    let fix = "please report it, with the message above and the plan".to_owned();
    (EndReason::Abandoned, Failure { text, fix: Some(fix), ..Failure::default() })
}

/// An event became due while `waiting` others waited, the maximum that `load.queue_limit` allows.
pub(crate) fn queue_overflow(waiting: u64) -> RunFailure {
    let text = format!(
        "{waiting} events wait for a connection, the maximum allowed: the server cannot keep up with the rate"
    );
    let fix = "lower the rate, use more connections, or raise load.queue_limit".to_owned();
    (EndReason::QueueFull, Failure { text, fix: Some(fix), ..Failure::default() })
}

/// The server refused LOAD DATA LOCAL or COPY, which the plan requires.
pub(crate) fn from_load_error(error: &WireError, statement: &str) -> RunFailure {
    let (reason, mut failure) = from_query_error(error, statement);
    let fix = "set local_infile = ON on the server (SET GLOBAL local_infile = 1), or load with method auto or \
                insert";
    if error.code().is_some() {
        failure.fix.get_or_insert_with(|| fix.into()); // PostgreSQL has no such setting.
    }
    (reason, failure)
}

/// The code by which an error is counted: the server's number or SQLSTATE, or the code of the database's client
/// library.
pub fn error_code(error: &WireError, target: &Target) -> ErrorCode {
    match error {
        WireError::Server { code: 0, state, .. } => ErrorCode::State(state.clone()),
        WireError::Server { code, .. } => ErrorCode::Number(*code),
        WireError::Lost(_) => {
            client_library_code(target, mysql_errors::CR_SERVER_LOST, postgres_errors::CONNECTION_FAILURE)
        }
        WireError::Protocol(_) => client_library_code(
            target,
            mysql_errors::CR_MALFORMED_PACKET,
            postgres_errors::PROTOCOL_VIOLATION,
        ),
        WireError::Refused { code: 0, .. } => unreachable_code(target),
        WireError::Refused { code, .. } => {
            client_library_code(target, *code, postgres_errors::UNABLE_TO_CONNECT)
        }
    }
}

/// As [`error_code`], for an attempt to open a connection.
pub(crate) fn connect_error_code(error: &WireError, target: &Target) -> ErrorCode {
    match error {
        WireError::Lost(_) => unreachable_code(target),
        error => error_code(error, target),
    }
}

fn unreachable_code(target: &Target) -> ErrorCode {
    client_library_code(target, mysql_errors::CR_CONN_HOST_ERROR, postgres_errors::UNABLE_TO_CONNECT)
}

fn client_library_code(target: &Target, number: u16, state: &str) -> ErrorCode {
    if target.is_postgresql() { ErrorCode::State(state.into()) } else { ErrorCode::Number(number) }
}

/// Whether the plan restarts an event after this error.
pub fn is_retried(error: &WireError, plan: &Plan) -> bool {
    let state = error.state().unwrap_or_default();
    match error_code(error, &plan.target) {
        ErrorCode::Number(number) => plan.retry.covers(Some(number), state),
        ErrorCode::State(state) => plan.retry.covers(None, &state),
    }
}

fn new_failure(error: &WireError, class: ErrorClass) -> Failure {
    Failure {
        code: error.code(),
        class: Some(class),
        text: error.to_string(),
        fix: error.fix().map(str::to_owned),
        server: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fatal_error_ends_the_connection_whatever_its_state() {
        // A standby that must go on ends a query's whole session with the state of a serialization failure.
        let error = |is_fatal| WireError::Server {
            code: 0,
            state: "40001".into(),
            message: "terminating connection due to conflict with recovery".into(),
            is_fatal,
        };
        assert!(is_lost(&error(true)));
        assert!(!is_lost(&error(false)));
    }

    #[test]
    fn an_error_of_either_product_has_a_code_and_a_class() {
        let mysql = serde_json::json!({"protocol": "mysql", "user": "u", "database": "d",
            "endpoints": [{"tcp": {"host": "h", "port": 1}}]});
        let mut postgresql = mysql.clone();
        postgresql["protocol"] = "postgresql".into();
        let server = |number, state: &str| WireError::Server {
            code: number,
            state: state.into(),
            message: "m".into(),
            is_fatal: false,
        };
        let lost = || WireError::Lost("the server closed the connection".into());
        let expected = [
            (&mysql, server(1213, "40001"), "1213", ErrorClass::Deadlock),
            (&postgresql, server(0, "40P01"), "40P01", ErrorClass::Deadlock),
            (&postgresql, server(0, "40001"), "40001", ErrorClass::Serialization),
            (&mysql, lost(), "2013", ErrorClass::Lost),
            (&postgresql, lost(), "08006", ErrorClass::Lost),
            (&postgresql, server(0, "57P01"), "57P01", ErrorClass::Lost),
        ];
        for (target, error, counted, class) in expected {
            let target = serde_json::from_value(target.clone()).unwrap();
            assert_eq!((error_code(&error, &target).to_string().as_str(), error.class()), (counted, class));
        }
    }

    #[test]
    fn a_failure_says_whether_the_server_ended_the_run() {
        let target = serde_json::json!({"protocol": "mysql", "user": "u", "database": "d",
            "endpoints": [{"tcp": {"host": "h", "port": 1}}]});
        let target = serde_json::from_value(target).unwrap();
        let nothing = WireError::Lost("h:1: Connection refused (os error 111)".into());
        let lost = WireError::Lost("the server closed the connection".into());
        assert_eq!(from_connect_error(&nothing, &target, 0).1.class, Some(ErrorClass::Refused));
        assert_eq!(from_query_error(&lost, "SELECT 1").1.class, Some(ErrorClass::Lost));
        assert_eq!(from_reconnect_error(&lost, &nothing, 1).1.class, Some(ErrorClass::Lost));
        assert_eq!(all_connections_lost(&nothing, 3).class, Some(ErrorClass::Lost));
        assert_eq!(internal_error().1.class, None);
        assert_eq!(queue_overflow(7).1.class, None);
    }
}
