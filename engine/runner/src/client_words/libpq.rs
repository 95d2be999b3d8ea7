//! The same in the words of PostgreSQL's own library, which gives its errors no numbers.

use dbdyno_schema::plan::Endpoint;
use dbdyno_wire::WireError;
use dbdyno_wire::postgres::NO_PASSWORD;
use dbdyno_wire::postgres::errors::CONNECTION_FAILURE;

/// What it says of a place that it cannot connect to.
pub(super) fn connecting(error: &WireError, endpoint: Option<&Endpoint>) -> String {
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
    // Without the number that Rust adds, and the place before it.
    let words = text.split(" (os error").next().unwrap_or(text);
    let words = words.rsplit(": ").next().unwrap_or(words);
    match endpoint {
        Some(Endpoint::Tcp { host, .. }) if text.contains("lookup address") => {
            format!("could not translate host name \"{host}\" to address: {words}")
        }
        Some(Endpoint::Tcp { .. }) if text.contains("(os error") => {
            format!("{begin} {words}\n\tIs the server running on that host and accepting TCP/IP connections?")
        }
        Some(Endpoint::Unix { .. }) if text.contains("(os error") => {
            format!(
                "{begin} {words}\n\tIs the server running locally and accepting connections on that socket?"
            )
        }
        _ => format!("{begin} {words}"),
    }
}

/// What it says of a statement: the server's words alone.
pub(super) fn working(error: &WireError) -> String {
    match error {
        WireError::Server { message, .. } => message.clone(),
        WireError::Lost(_) => "server closed the connection unexpectedly".into(),
        WireError::Protocol(text) | WireError::Refused { text, .. } => text.clone(),
    }
}

/// SQLSTATE; connection_failure where the server has given none.
pub(super) fn state(error: &WireError) -> String {
    error.state().unwrap_or(CONNECTION_FAILURE).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_does_not_answer_has_the_librarys_words() {
        let tcp = Endpoint::Tcp { host: "127.0.0.1".into(), port: 1 };
        let told = |text: &str| connecting(&WireError::Lost(text.into()), Some(&tcp));
        assert_eq!(
            told("127.0.0.1:1: Connection refused (os error 111)"),
            "connection to server at \"127.0.0.1\", port 1 failed: Connection refused\n\tIs the server running on that host \
             and accepting TCP/IP connections?"
        );
        assert_eq!(
            told("h:1: failed to lookup address information: Name or service not known"),
            "could not translate host name \"127.0.0.1\" to address: Name or service not known"
        );
    }
}
