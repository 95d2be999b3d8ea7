//! Errors with a way out.

use dbdyno_schema::plan::{ErrorCode, Plan, Target};
use dbdyno_schema::record::{EndReason, ErrorClass, FailedAction, Failure};
use dbdyno_wire::WireError;
use dbdyno_wire::mysql::errors as mysql_errors;
use dbdyno_wire::postgres::errors as postgres_errors;

use crate::client_words;

/// The failure to open connection `number` of the run to `target`, or to log in.
pub(crate) fn connecting(error: &WireError, target: &Target, number: u64) -> (EndReason, Failure) {
    let mut failure = failure(error, ErrorClass::Refused);
    failure.server = Some(Box::new(client_words::connecting(error, target, number)));
    (EndReason::ConnectFailed, failure)
}

/// The failure to prepare a statement on a connection that stands.
pub(crate) fn preparing(error: &WireError, statement: &str) -> (EndReason, Failure) {
    let mut failure = failure(error, error.class());
    failure.server = Some(Box::new(client_words::working(FailedAction::Prepare, error, statement)));
    (EndReason::ConnectFailed, failure)
}

/// Whether the connection is gone with this error.
pub fn is_lost(error: &WireError) -> bool {
    error.class() == ErrorClass::Lost
}

/// A connection was lost with `lost` and could not be opened again for `after_us`, at last because of `error`.
pub(crate) fn gone(lost: &WireError, error: &WireError, after_us: u64) -> (EndReason, Failure) {
    let mut failure = failure(error, ErrorClass::Lost);
    let after_s = after_us as f64 / 1e6;
    failure.text = format!(
        "a connection was lost ({lost}) and could not be opened again within {after_s:.1} s: {}",
        failure.text
    );
    (EndReason::ConnectionLost, failure)
}

/// The run ended while no user had a connection, at last because of `error`.
pub(crate) fn gone_at_the_end(error: &WireError) -> (EndReason, Failure) {
    let mut failure = failure(error, ErrorClass::Lost);
    failure.text =
        format!("every connection was lost, and none could be opened again until the end: {}", failure.text);
    (EndReason::ConnectionLost, failure)
}

/// A prepared statement failed in the middle of a run.
pub(crate) fn executing(error: &WireError, statement: &str) -> (EndReason, Failure) {
    let (reason, mut failure) = working(error, statement);
    failure.server = Some(Box::new(client_words::working(FailedAction::Execute, error, statement)));
    (reason, failure)
}

/// A statement that is called `statement`, and was `sent` as text, failed in the middle of a run.
pub(crate) fn sending(error: &WireError, statement: &str, sent: &str) -> (EndReason, Failure) {
    let (reason, mut failure) = working(error, statement);
    failure.server = Some(Box::new(client_words::working(FailedAction::Query, error, sent)));
    (reason, failure)
}

/// A statement failed in the middle of a run or of loading.
pub(crate) fn working(error: &WireError, statement: &str) -> (EndReason, Failure) {
    let reason = match error {
        error if is_lost(error) => EndReason::ConnectionLost,
        WireError::Server { .. } => EndReason::ServerError,
        _ => EndReason::ConnectionLost,
    };
    let mut failure = failure(error, error.class());
    if !statement.is_empty() {
        failure.text = format!("{}, on: {statement}", failure.text);
    }
    failure.server = Some(Box::new(client_words::working(FailedAction::Query, error, statement)));
    (reason, failure)
}

/// A user or a worker panicked.
pub(crate) fn own_fault() -> (EndReason, Failure) {
    let text = "a fault of dbdyno-engine itself ended a part of the load".to_owned();
    let hint = "please report it, with the words above and the plan".to_owned();
    (EndReason::Abandoned, Failure { text, hint: Some(hint), ..Failure::default() })
}

/// An event was due and found `waiting` others in line, which is as many as may wait.
pub(crate) fn queue_full(waiting: u64) -> (EndReason, Failure) {
    let text = format!(
        "{waiting} events wait for a connection, and no more may: the server cannot keep up with the rate"
    );
    let hint = "lower the rate, use more connections, or raise load.queue_limit".to_owned();
    (EndReason::QueueFull, Failure { text, hint: Some(hint), ..Failure::default() })
}

/// The server refuses LOAD DATA LOCAL or COPY, and the plan demands it.
pub(crate) fn loading(error: &WireError, statement: &str) -> (EndReason, Failure) {
    let (reason, mut failure) = working(error, statement);
    let hint = "set local_infile = ON on the server (SET GLOBAL local_infile = 1), or load with method auto or \
                insert";
    if error.code().is_some() {
        failure.hint.get_or_insert_with(|| hint.into()); // PostgreSQL has no such switch.
    }
    (reason, failure)
}

/// The code that counts an error: the server's number or SQLSTATE, or that of the database's own client library.
pub fn code(error: &WireError, target: &Target) -> ErrorCode {
    let client = |number, state: &str| match target.is_postgresql() {
        true => ErrorCode::State(state.into()),
        false => ErrorCode::Number(number),
    };
    match error {
        WireError::Server { code: 0, state, .. } => ErrorCode::State(state.clone()),
        WireError::Server { code, .. } => ErrorCode::Number(*code),
        WireError::Lost(_) => client(mysql_errors::CR_SERVER_LOST, postgres_errors::CONNECTION_FAILURE),
        WireError::Protocol(_) => {
            client(mysql_errors::CR_MALFORMED_PACKET, postgres_errors::PROTOCOL_VIOLATION)
        }
        WireError::Refused { code, .. } => {
            let number = if *code == 0 { mysql_errors::CR_CONN_HOST_ERROR } else { *code };
            client(number, postgres_errors::UNABLE_TO_CONNECT)
        }
    }
}

/// As [`code`], for an attempt to open a connection.
pub(crate) fn opening_code(error: &WireError, target: &Target) -> ErrorCode {
    match error {
        WireError::Lost(_) if target.is_postgresql() => {
            ErrorCode::State(postgres_errors::UNABLE_TO_CONNECT.into())
        }
        WireError::Lost(_) => ErrorCode::Number(mysql_errors::CR_CONN_HOST_ERROR),
        error => code(error, target),
    }
}

/// Whether the plan starts the event anew after this error.
pub fn is_retried(error: &WireError, plan: &Plan) -> bool {
    let state = error.state().unwrap_or_default();
    match code(error, &plan.target) {
        ErrorCode::Number(number) => plan.retry.covers(Some(number), state),
        ErrorCode::State(state) => plan.retry.covers(None, &state),
    }
}

fn failure(error: &WireError, class: ErrorClass) -> Failure {
    Failure {
        code: error.code(),
        class: Some(class),
        text: error.to_string(),
        hint: error.fix().map(str::to_owned),
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
            assert_eq!((code(&error, &target).to_string().as_str(), error.class()), (counted, class));
        }
    }

    #[test]
    fn a_failure_says_whether_the_server_ended_the_run() {
        let target = serde_json::json!({"protocol": "mysql", "user": "u", "database": "d",
            "endpoints": [{"tcp": {"host": "h", "port": 1}}]});
        let target = serde_json::from_value(target).unwrap();
        let nothing = WireError::Lost("h:1: Connection refused (os error 111)".into());
        let lost = WireError::Lost("the server closed the connection".into());
        assert_eq!(connecting(&nothing, &target, 0).1.class, Some(ErrorClass::Refused));
        assert_eq!(working(&lost, "SELECT 1").1.class, Some(ErrorClass::Lost));
        assert_eq!(gone(&lost, &nothing, 1).1.class, Some(ErrorClass::Lost));
        assert_eq!(gone_at_the_end(&nothing).1.class, Some(ErrorClass::Lost));
        assert_eq!(own_fault().1.class, None);
        assert_eq!(queue_full(7).1.class, None);
    }
}
