//! The messages of libpq, PostgreSQL's client library. Its errors have no numbers.

use dbdyno_schema::plan::Endpoint;
use dbdyno_wire::WireError;
use dbdyno_wire::postgres::NO_PASSWORD;
use dbdyno_wire::postgres::errors::CONNECTION_FAILURE;

/// libpq's message about a failed connection.
pub(super) fn connect_message(error: &WireError, endpoint: Option<&Endpoint>) -> String {
    let location = match endpoint {
        Some(Endpoint::Tcp { host, port }) => format!("at \"{host}\", port {port}"),
        Some(Endpoint::Unix { path }) => format!("on socket \"{path}\""),
        None => "nowhere".into(),
    };
    let prefix = format!("connection to server {location} failed:");
    match error {
        WireError::Server { message, .. } => format!("{prefix} FATAL:  {message}"),
        WireError::Lost(text) => unreachable_message(&prefix, text, endpoint),
        WireError::Refused { text, .. } if text == NO_PASSWORD => {
            format!("{prefix} fe_sendauth: no password supplied")
        }
        WireError::Refused { text, fix, .. } => format!("{prefix} {text}; {fix}"),
        WireError::Protocol(text) => format!("{prefix} {text}"),
    }
}

fn unreachable_message(prefix: &str, text: &str, endpoint: Option<&Endpoint>) -> String {
    // Remove the address before the message and the error number that Rust appends.
    let message = text.split(" (os error").next().unwrap_or(text);
    let message = message.rsplit(": ").next().unwrap_or(message);
    match endpoint {
        Some(Endpoint::Tcp { host, .. }) if text.contains("lookup address") => {
            format!("could not translate host name \"{host}\" to address: {message}")
        }
        Some(Endpoint::Tcp { .. }) if text.contains("(os error") => {
            format!(
                "{prefix} {message}\n\tIs the server running on that host and accepting TCP/IP connections?"
            )
        }
        Some(Endpoint::Unix { .. }) if text.contains("(os error") => {
            format!(
                "{prefix} {message}\n\tIs the server running locally and accepting connections on that socket?"
            )
        }
        _ => format!("{prefix} {message}"),
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
pub(super) fn sqlstate(error: &WireError) -> String {
    error.state().unwrap_or(CONNECTION_FAILURE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_endpoint_has_the_message_of_libpq() {
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
