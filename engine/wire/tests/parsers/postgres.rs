//! PostgreSQL: answers in pieces of any size, and a complete session with a server that sends the input.

use dbdyno_wire::postgres::PostgresConnector;
use dbdyno_wire::postgres::skim::{Answer, ExpectedAnswer, Skimmer};
use dbdyno_wire::scripted::{Rows, Type};
use dbdyno_wire::{Connection, Value, WireError};

use super::server;

/// The result of reading an answer.
#[derive(Debug, PartialEq)]
enum End {
    /// The complete answer and the rows kept.
    Complete(Answer, Rows),
    /// The answer is incomplete.
    Incomplete,
    Failed(WireError),
}

/// Reads an answer byte by byte and in pieces. Input: a byte of switches, the size of a piece minus 1, then the answer.
///
/// # Panics
/// If the results differ, or if more bytes are kept than the input has.
pub fn skim(input: &[u8]) {
    let [switches, size, bytes @ ..] = input else { return };
    let expect = match switches & 3 {
        0 => ExpectedAnswer::Result,
        1 => ExpectedAnswer::Prepared,
        _ => ExpectedAnswer::DataRequest,
    };
    let feed = |size: usize| {
        let mut skim = Skimmer::new();
        skim.begin(expect, switches & 4 != 0);
        if switches & 8 != 0 {
            skim.keep_rows();
        }
        feed(skim, bytes, size)
    };
    let by_byte = feed(1);
    let in_pieces = feed(usize::from(*size) + 1);
    assert_eq!(by_byte, in_pieces, "pieces of {}", usize::from(*size) + 1);
    if let End::Complete(answer, rows) = by_byte {
        assert!(answer.outcome.rows <= bytes.len() as u64 || !answer.outcome.returns_rows);
        assert!(rows.bytes.len() <= bytes.len());
    }
}

fn feed(mut skim: Skimmer, bytes: &[u8], size: usize) -> End {
    for piece in bytes.chunks(size) {
        match skim.feed(piece) {
            Err(error) => return End::Failed(error),
            Ok(Some(mut answer)) => {
                answer.outcome.bytes = 0; // This number depends on the size of the pieces.
                return End::Complete(answer, skim.take_rows());
            }
            Ok(None) => {}
        }
    }
    End::Incomplete
}

/// Logs in and executes statements. Input: a byte of switches, then all bytes that the server sends.
///
/// # Panics
/// If the client sends the password in clear text to another machine without TLS, or if a server message in the session has
/// control characters.
pub fn session(input: &[u8]) {
    let [switches, bytes @ ..] = input else { return };
    let is_remote = switches & 1 != 0;
    let options = server::options(server::PASSWORD);
    let connector = PostgresConnector { options, allow_clear_text_password: false };
    let (received, message) = server::run(async {
        let (client, server) = server::send_input(bytes);
        let message = match connector.connect_over(client, &server::address(is_remote)).await {
            Err(error) => error.to_string(),
            Ok(mut connection) => {
                let version = connection.session().server_version.clone();
                // Every error is allowed; a panic is not.
                if connection.prepare("SELECT ?", &[Type::Int]).await.is_ok() {
                    let _ = connection.execute(0, &[Value::Int(1)]).await;
                }
                let _ = connection.query_rows("SELECT 1").await;
                version
            }
        };
        (server::read_received(server), message)
    });
    let secret = server::PASSWORD.as_bytes();
    assert!(
        !is_remote || !received.windows(secret.len()).any(|piece| piece == secret),
        "the password was received"
    );
    assert!(!message.contains(server::PASSWORD), "{message}");
    assert!(!message.chars().any(char::is_control), "{message:?}");
}
