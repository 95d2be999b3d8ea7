//! An answer, in pieces of any size: what the skimmer says must not depend on where the network cut it.
//!
//! Input: a byte of switches, the size of a piece less one, then the answer.

use dbdyno_wire::WireError;
use dbdyno_wire::mysql::skim::{Answer, ExpectedAnswer, Skimmer};
use dbdyno_wire::scripted::{ResultSet, Rows};

/// Bytes that one read of a socket can fetch.
const READ: usize = 64 * 1024;

/// What became of an answer.
#[derive(Debug, PartialEq)]
enum End {
    /// It was complete, with these rows kept, and these results where there were several.
    Complete(Answer, Rows, Vec<ResultSet>),
    /// More was to come.
    Open,
    /// The error, and for an error of the server's own its words.
    Failed(WireError),
}

/// Feeds the input whole, in pieces of the size it says, and byte by byte.
///
/// # Panics
/// When the three differ, or more is kept than was fed.
pub fn check(input: &[u8]) {
    let [switches, size, bytes @ ..] = input else { return };
    let expect = match switches & 3 {
        0 => ExpectedAnswer::Result,
        1 => ExpectedAnswer::Prepared,
        _ => ExpectedAnswer::DataRequest,
    };
    let skim = || {
        let skim = Skimmer::new(expect, switches & 4 != 0);
        let skim = if switches & 8 != 0 { skim.keep_rows() } else { skim };
        skim.track_result_sets(switches & 16 != 0)
    };
    let whole = feed(skim(), bytes, READ);
    assert_eq!(feed(skim(), bytes, usize::from(*size) + 1), whole, "pieces of {}", usize::from(*size) + 1);
    assert_eq!(feed(skim(), bytes, 1), whole, "byte by byte");
    if let End::Complete(answer, rows, parts) = whole {
        assert_ne!(parts.len(), 1, "one result is not told as several");
        if answer.outcome.returns_rows && !parts.is_empty() {
            let returned = parts.iter().filter(|part| part.returns_rows).map(|part| part.rows);
            assert_eq!(returned.sum::<u64>(), answer.outcome.rows);
        }
        assert!(parts.iter().all(|part| part.first_row <= rows.ends.len()));
        assert!(parts.is_sorted_by_key(|part| part.first_row));
        assert_eq!(answer.outcome.bytes, bytes.len() as u64);
        assert!(answer.outcome.rows <= bytes.len() as u64 || !answer.outcome.returns_rows);
        assert!(rows.bytes.len() <= bytes.len());
    }
    let mut bounded = skim().limit_bytes(bytes.len() as u64 / 2);
    if !bytes.is_empty() {
        assert!(!matches!(bounded.feed(bytes), Ok(Some(_))), "an answer beyond its bound");
    }
}

fn feed(mut skim: Skimmer, bytes: &[u8], size: usize) -> End {
    let mut pieces = bytes.chunks(size);
    while let Some(piece) = pieces.next() {
        match skim.feed(piece) {
            Err(error) => return End::Failed(error),
            // As a session does, which has asked for one answer only.
            Ok(Some(_)) if pieces.next().is_some() => {
                return End::Failed(WireError::Protocol("bytes after the end of an answer".into()));
            }
            Ok(Some(answer)) => {
                let parts = skim.take_result_sets();
                return End::Complete(answer, skim.into_rows(), parts);
            }
            Ok(None) => {}
        }
    }
    End::Open
}
