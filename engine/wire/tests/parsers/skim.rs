//! MySQL answers in pieces of any size: the result of reading must not depend on how the network divides an answer.
//!
//! Input: a byte of switches, the size of a piece minus 1, then the answer.

use dbdyno_wire::WireError;
use dbdyno_wire::mysql::skim::{Answer, ExpectedAnswer, Skimmer};
use dbdyno_wire::scripted::{ResultSet, Rows};

/// Maximum bytes of one read of a socket.
const READ_MAX: usize = 64 * 1024;

/// The result of reading an answer.
#[derive(Debug, PartialEq)]
enum End {
    /// The complete answer, the rows kept, and the results if there are several.
    Complete(Answer, Rows, Vec<ResultSet>),
    /// The answer is incomplete.
    Incomplete,
    Failed(WireError),
}

/// Reads the answer at once, in pieces of the given size, and byte by byte.
///
/// # Panics
/// If the three results differ, or if more bytes are kept than the input has.
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
    let at_once = feed(skim(), bytes, READ_MAX);
    assert_eq!(feed(skim(), bytes, usize::from(*size) + 1), at_once, "pieces of {}", usize::from(*size) + 1);
    assert_eq!(feed(skim(), bytes, 1), at_once, "byte by byte");
    if let End::Complete(answer, rows, results) = at_once {
        assert_ne!(results.len(), 1, "a list with a single result");
        if answer.outcome.returns_rows && !results.is_empty() {
            let returned = results.iter().filter(|result| result.returns_rows).map(|result| result.rows);
            assert_eq!(returned.sum::<u64>(), answer.outcome.rows);
        }
        assert!(results.iter().all(|result| result.first_row <= rows.ends.len()));
        assert!(results.is_sorted_by_key(|result| result.first_row));
        assert_eq!(answer.outcome.bytes, bytes.len() as u64);
        assert!(answer.outcome.rows <= bytes.len() as u64 || !answer.outcome.returns_rows);
        assert!(rows.bytes.len() <= bytes.len());
    }
    let mut limited = skim().limit_bytes(bytes.len() as u64 / 2);
    if !bytes.is_empty() {
        assert!(!matches!(limited.feed(bytes), Ok(Some(_))), "an answer that exceeds its limit");
    }
}

fn feed(mut skim: Skimmer, bytes: &[u8], size: usize) -> End {
    let mut pieces = bytes.chunks(size);
    while let Some(piece) = pieces.next() {
        match skim.feed(piece) {
            Err(error) => return End::Failed(error),
            // A session has requested only one answer, so it fails too.
            Ok(Some(_)) if pieces.next().is_some() => {
                return End::Failed(WireError::Protocol("bytes after the end of an answer".into()));
            }
            Ok(Some(answer)) => {
                let results = skim.take_result_sets();
                return End::Complete(answer, skim.into_rows(), results);
            }
            Ok(None) => {}
        }
    }
    End::Incomplete
}
