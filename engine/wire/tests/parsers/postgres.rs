//! PostgreSQL's messages: answers in pieces of any size, and a whole login against a server that says anything.

use dbdyno_wire::postgres::PostgresConnector;
use dbdyno_wire::postgres::skim::{Answer, ExpectedAnswer, Skimmer};
use dbdyno_wire::scripted::{Rows, Type};
use dbdyno_wire::{Connection, Value, WireError};

use super::server;

/// What became of an answer.
#[derive(Debug, PartialEq)]
enum End {
    /// It was complete, with these rows kept.
    Complete(Answer, Rows),
    /// More was to come.
    Open,
    Failed(WireError),
}

/// Feeds an answer whole, in pieces and byte by byte. Input: a byte of switches, the size of a piece less one, the answer.
///
/// # Panics
/// When the three differ, or more is kept than was fed.
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
    let whole = feed(1);
    let other = feed(usize::from(*size) + 1);
    assert_eq!(whole, other, "pieces of {}", usize::from(*size) + 1);
    if let End::Complete(answer, rows) = whole {
        assert!(answer.outcome.rows <= bytes.len() as u64 || !answer.outcome.returns_rows);
        assert!(rows.bytes.len() <= bytes.len());
    }
}

fn feed(mut skim: Skimmer, bytes: &[u8], size: usize) -> End {
    for piece in bytes.chunks(size) {
        match skim.feed(piece) {
            Err(error) => return End::Failed(error),
            Ok(Some(mut answer)) => {
                answer.outcome.bytes = 0; // How much was read by then depends on the piece.
                return End::Complete(answer, skim.take_rows());
            }
            Ok(None) => {}
        }
    }
    End::Open
}

/// Logs in and asks. Input: a byte of switches, then all that the server says.
///
/// # Panics
/// When the password is heard as it is over what is not private, or the session tells what no terminal should see.
pub fn session(input: &[u8]) {
    let [switches, bytes @ ..] = input else { return };
    let is_far = switches & 1 != 0;
    let connector = PostgresConnector { options: server::options(server::PASSWORD) };
    let (heard, told) = server::run(async {
        let (client, server) = server::saying(bytes);
        let told = match connector.connect_over(client, &server::address(is_far)).await {
            Err(error) => error.to_string(),
            Ok(mut connection) => {
                let version = connection.session().server_version.clone();
                // Any error will do; what counts is that it is one.
                if connection.prepare("SELECT ?", &[Type::Int]).await.is_ok() {
                    let _ = connection.execute(0, &[Value::Int(1)]).await;
                }
                let _ = connection.rows("SELECT 1").await;
                version
            }
        };
        (server::heard(server), told)
    });
    let secret = server::PASSWORD.as_bytes();
    assert!(!is_far || !heard.windows(secret.len()).any(|piece| piece == secret), "the password was heard");
    assert!(!told.contains(server::PASSWORD), "{told}");
    assert!(!told.chars().any(char::is_control), "{told:?}");
}
