//! An answer, in pieces of any size: what the skimmer says must not depend on where the network cut it.
//!
//! Input: a byte of switches, the size of a piece less one, then the answer.

use dbdyno_wire::WireError;
use dbdyno_wire::mysql::skim::{Answer, Expect, Skim, text_row};

/// Bytes that one read of a socket can fetch.
const READ: usize = 64 * 1024;

/// What became of an answer.
#[derive(Debug, PartialEq)]
enum End {
    /// It was complete, with these rows kept.
    Complete(Answer, Vec<Vec<u8>>),
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
        0 => Expect::Result,
        1 => Expect::Prepared,
        _ => Expect::DataRequest,
    };
    let skim = || {
        let skim = Skim::new(expect, switches & 4 != 0);
        if switches & 8 != 0 { skim.keep_rows() } else { skim }
    };
    let whole = feed(skim(), bytes, READ);
    assert_eq!(feed(skim(), bytes, usize::from(*size) + 1), whole, "pieces of {}", usize::from(*size) + 1);
    assert_eq!(feed(skim(), bytes, 1), whole, "byte by byte");
    if let End::Complete(answer, rows) = whole {
        assert_eq!(answer.outcome.bytes, bytes.len() as u64);
        assert!(answer.outcome.rows <= bytes.len() as u64 || !answer.outcome.returns_rows);
        assert!(rows.iter().map(Vec::len).sum::<usize>() <= bytes.len());
        for row in rows {
            let _ = text_row(&row);
        }
    }
    let mut bounded = skim().at_most(bytes.len() as u64 / 2);
    if !bytes.is_empty() {
        assert!(!matches!(bounded.feed(bytes), Ok(Some(_))), "an answer beyond its bound");
    }
}

fn feed(mut skim: Skim, bytes: &[u8], size: usize) -> End {
    let mut pieces = bytes.chunks(size);
    while let Some(piece) = pieces.next() {
        match skim.feed(piece) {
            Err(error) => return End::Failed(error),
            // As a session does, which has asked for one answer only.
            Ok(Some(_)) if pieces.next().is_some() => {
                return End::Failed(WireError::Protocol("bytes after the end of an answer".into()));
            }
            Ok(Some(answer)) => return End::Complete(answer, skim.into_rows()),
            Ok(None) => {}
        }
    }
    End::Open
}
