//! The messages of PostgreSQL's libpq, whose errors have no numbers.

use dbdyno_schema::plan::Endpoint;
use dbdyno_wire::WireError;
use dbdyno_wire::postgres::NO_PASSWORD;
use dbdyno_wire::postgres::errors::CONNECTION_FAILURE;

/// libpq's message about a failed connection.
pub(super) fn connect_message(error: &WireError, endpoint: Option<&Endpoint>) -> String {
    let place = match endpoint {
        Some(Endpoint::Tcp { host, port }) => format!("at \"{host}\", port {port}"),
        Some(Endpoint::Unix { path }) => format!("on socket \"{path}\""),
        None => "nowhere".into(),
    };
    let begin = format!("connection to server {place} failed:");
    match error {
        WireError::Server { message, .. } => format!("{begin} FATAL:  {message}"),
        WireError::Lost(text) => unreachable(&begin, text, endpoint),
        WireError::Refused { text, .. } if text == NO_PASSWORD => {
            format!("{begin} fe_sendauth: no password supplied")
        }
        WireError::Refused { text, fix, .. } => format!("{begin} {text}; {fix}"),
        WireError::Protocol(text) => format!("{begin} {text}"),
    }
}

fn unreachable(begin: &str, text: &str, endpoint: Option<&Endpoint>) -> String {
    // Remove the address before the message and the error number that Rust appends.
    let message = text.split(" (os error").next().unwrap_or(text);
    let message = message.rsplit(": ").next().unwrap_or(message);
    match endpoint {
        Some(Endpoint::Tcp { host, .. }) if text.contains("lookup address") => {
            format!("could not translate host name \"{host}\" to address: {message}")
        }
        Some(Endpoint::Tcp { .. }) if text.contains("(os error") => {
            format!(
                "{begin} {message}\n\tIs the server running on that host and accepting TCP/IP connections?"
            )
        }
        Some(Endpoint::Unix { .. }) if text.contains("(os error") => {
            format!(
                "{begin} {message}\n\tIs the server running locally and accepting connections on that socket?"
            )
        }
        _ => format!("{begin} {message}"),
    }
}

/// libpq's message about a statement, which is the server's message.
pub(super) fn message(error: &WireError) -> String {
    match error {
        WireError::Server { message, .. } => message.clone(),
        WireError::Lost(_) => "server closed the connection unexpectedly".into(),
        WireError::Protocol(text) | WireError::Refused { text, .. } => text.clone(),
    }
}

/// The SQLSTATE of an error; connection_failure if the error does not come from the server.
pub(super) fn state(error: &WireError) -> String {
    error.state().unwrap_or(CONNECTION_FAILURE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_does_not_answer_has_the_librarys_words() {
        let tcp = Endpoint::Tcp { host: "127.0.0.1".into(), port: 1 };
        let report = |text: &str| connect_message(&WireError::Lost(text.into()), Some(&tcp));
        assert_eq!(
            report("127.0.0.1:1: Connection refused (os error 111)"),
            "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on that host \
             and accepting TCP/IP connections?"
        );
        assert_eq!(
            report("h:1: failed to lookup address information: Name or service not known"),
            "could not translate host name \"127.0.0.1\" to address: Name or service not known"
        );
    }
}
