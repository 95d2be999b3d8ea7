//! Errors with a way out.

use dbdyno_schema::plan::{ErrorCode, Plan, Target};
use dbdyno_schema::record::{EndReason, ErrorClass, FailedAction, Failure};
use dbdyno_wire::WireError;

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

/// How an error is called that no server has named.
#[derive(Clone, Copy, Debug)]
enum Unnamed {
    Lost,
    NotOpened,
    Protocol,
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

/// Under what an error is counted: the server's number or SQLSTATE, or what the database's own clients give it.
pub fn code(error: &WireError, target: &Target) -> ErrorCode {
    match error {
        WireError::Server { code: 0, state, .. } => ErrorCode::State(state.clone()),
        WireError::Server { code, .. } => ErrorCode::Number(*code),
        WireError::Lost(_) => unnamed(Unnamed::Lost, target),
        WireError::Protocol(_) => unnamed(Unnamed::Protocol, target),
        WireError::Refused { code: 0, .. } => unnamed(Unnamed::NotOpened, target),
        WireError::Refused { code, .. } if !target.is_postgresql() => ErrorCode::Number(*code),
        WireError::Refused { .. } => unnamed(Unnamed::NotOpened, target),
    }
}

/// As [`code`], for an attempt to open a connection.
pub(crate) fn opening_code(error: &WireError, target: &Target) -> ErrorCode {
    match error {
        WireError::Lost(_) => unnamed(Unnamed::NotOpened, target),
        error => code(error, target),
    }
}

/// MySQL's numbers for its clients, and the SQLSTATEs of the standard: 08006, 08001, 08P01.
fn unnamed(what: Unnamed, target: &Target) -> ErrorCode {
    let (number, state) = match what {
        Unnamed::Lost => (2013, "08006"),
        Unnamed::NotOpened => (2003, "08001"),
        Unnamed::Protocol => (2027, "08P01"),
    };
    if target.is_postgresql() { ErrorCode::State(state.into()) } else { ErrorCode::Number(number) }
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
        hint: hint(error).map(str::to_owned),
        server: None,
    }
}

fn hint(error: &WireError) -> Option<&str> {
    Some(match error {
        WireError::Server { code: 0, state, .. } => return state_hint(state),
        WireError::Server { code, .. } => match code {
            1040 => "raise max_connections, or use fewer connections",
            1044 | 1045 | 1698 => {
                "check user and password, the account's rights on the schema, and whether it may log in from this \
                 host and without encryption (REQUIRE SSL, require_secure_transport)"
            }
            3159 => "set the target's tls mode to preferred, required, verify-ca or verify-identity",
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
        WireError::Refused { way_out, .. } => way_out,
        WireError::Protocol(_) => "see whether a server of the target's protocol listens there",
    })
}

fn state_hint(state: &str) -> Option<&'static str> {
    Some(match state {
        "28P01" | "28000" => {
            "check user and password, and what pg_hba.conf allows this user from this host, with and without TLS"
        }
        "3D000" => "create the database, or name another",
        "42P01" => "load the tables first: prepare with the same options",
        "42501" => "grant the role the rights on its own schema (CREATE ON SCHEMA public, say)",
        "53100" => "make room on the server's disk",
        "53200" => "give the server more memory, or use fewer connections or tables",
        "53300" => "raise max_connections, or use fewer connections",
        "57P03" => "wait until the server has started",
        "57P01" | "57P02" => "the server was stopped or the session terminated; look into its log",
        "25006" => "connect to the primary server: this one is read-only",
        _ => return None,
    })
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
