//! Tests with answers that are divided into pieces of every size.

use super::*;
use crate::postgres::message::write_message;

const READY: (u8, &[u8]) = (b'Z', b"I");
const ROW: (u8, &[u8]) = (b'D', b"\0\x01\0\0\0\x02ab");

fn messages(kinds_and_payloads: &[(u8, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (kind, payload) in kinds_and_payloads {
        write_message(&mut out, *kind, |out| out.extend_from_slice(payload));
    }
    out
}

/// Feeds `bytes` in pieces of every size; the answer must not depend on it.
fn skim(expect: ExpectedAnswer, bytes: &[u8]) -> Result<Answer, WireError> {
    let mut answers: Vec<_> = (1..=bytes.len()).map(|size| in_pieces(expect, bytes, size)).collect();
    let first = answers.pop().expect("bytes");
    assert!(answers.iter().all(|answer| *answer == first), "{answers:?}");
    first
}

fn in_pieces(expect: ExpectedAnswer, bytes: &[u8], size: usize) -> Result<Answer, WireError> {
    let mut skim = Skimmer::new();
    skim.begin(expect, false);
    let mut answer = None;
    for piece in bytes.chunks(size) {
        match skim.feed(piece) {
            Ok(found) => answer = answer.or(found),
            Err(error) => return Err(error),
        }
    }
    Ok(Answer { outcome: Outcome { bytes: 0, ..answer.expect("an answer").outcome }, ..answer.unwrap() })
}

#[test]
fn rows_are_counted() {
    let bytes = messages(&[(b'T', b"\0\x01"), ROW, ROW, (b'C', b"SELECT 2\0"), READY]);
    let answer = skim(ExpectedAnswer::Result, &bytes).unwrap();
    assert_eq!(answer.outcome, Outcome { returns_rows: true, rows: 2, bytes: 0 });
    assert_eq!(answer.described, Some(true));
}

#[test]
fn the_tag_reports_changed_rows() {
    let bytes = messages(&[(b'2', b""), (b'C', b"UPDATE 3\0"), READY]);
    let answer = skim(ExpectedAnswer::Result, &bytes).unwrap();
    assert_eq!(answer.outcome, Outcome { returns_rows: false, rows: 3, bytes: 0 });
}

#[test]
fn a_prepared_query_without_matching_rows_still_returns_a_result_set() {
    let mut skim = Skimmer::new();
    skim.begin(ExpectedAnswer::Result, true);
    let answer = skim.feed(&messages(&[(b'2', b""), (b'C', b"SELECT 0\0"), READY])).unwrap().unwrap();
    assert_eq!((answer.outcome.returns_rows, answer.outcome.rows), (true, 0));
}

#[test]
fn the_last_of_several_results_counts() {
    let two = [(b'T', b"\0\x01".as_slice()), ROW, ROW, (b'C', b"SELECT 2\0"), (b'C', b"UPDATE 7\0"), READY];
    let answer = skim(ExpectedAnswer::Result, &messages(&two)).unwrap();
    // The first result was described, the second was not.
    assert_eq!((answer.outcome.returns_rows, answer.outcome.rows), (false, 7));
}

#[test]
fn an_error_is_reported_at_the_end_of_its_answer() {
    let error = b"SERROR\0VERROR\0C40P01\0Mdeadlock detected\0\0";
    let found = skim(ExpectedAnswer::Result, &messages(&[ROW, (b'E', error), READY])).unwrap_err();
    assert_eq!(found.state(), Some("40P01"));
    let mut open = Skimmer::new();
    open.begin(ExpectedAnswer::Result, false);
    assert_eq!(open.feed(&messages(&[(b'E', error)])), Ok(None));
}

#[test]
fn a_fatal_error_is_reported_at_once_and_remembered() {
    let error = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
    let mut skim = Skimmer::new();
    assert!(skim.feed(&messages(&[(b'S', b"TimeZone\0UTC\0"), (b'E', error)])).is_err());
    assert_eq!(skim.fatal_error().and_then(WireError::state), Some("57P01"));
}

#[test]
fn unsolicited_messages_do_not_change_an_answer() {
    let notice = (b'N', b"SNOTICE\0\0".as_slice());
    let bytes = messages(&[notice, (b'C', b"BEGIN\0"), READY, (b'S', b"a\0b\0"), notice]);
    assert!(skim(ExpectedAnswer::Result, &bytes).is_ok());
    let bytes = messages(&[(b'C', b"BEGIN\0"), READY, READY]);
    let mut skim = Skimmer::new();
    skim.begin(ExpectedAnswer::Result, false);
    assert!(matches!(skim.feed(&bytes), Ok(Some(_))), "the answer is complete");
    assert!(matches!(skim.fatal_error(), Some(WireError::Protocol(text)) if text.contains("after the end")));
    assert!(matches!(skim_whole(&messages(&[READY])), Err(WireError::Protocol(_))));
}

#[test]
fn an_error_after_a_request_for_data_ends_the_copy_in_pieces_of_every_size() {
    let refusal = (b'E', b"SERROR\0VERROR\0CP0001\0Mno rows today\0\0".as_slice());
    let bytes = messages(&[(b'G', b"\x01\0\0"), refusal, READY]);
    for size in 1..=bytes.len() {
        let mut skim = Skimmer::new();
        skim.begin(ExpectedAnswer::DataRequest, false);
        let mut pieces = bytes.chunks(size);
        let asked = pieces.by_ref().find_map(|piece| skim.feed(piece).unwrap()).unwrap();
        assert!(asked.data_requested, "{size}");
        // As the sender of rows does: an error that has arrived already is the answer.
        let error = skim.fatal_error().cloned().or_else(|| {
            skim.begin(ExpectedAnswer::Result, false);
            pieces.find_map(|piece| skim.feed(piece).err())
        });
        assert!(
            matches!(&error, Some(WireError::Server { state, .. }) if state == "P0001"),
            "{size}: {error:?}"
        );
    }
}

fn skim_whole(bytes: &[u8]) -> Result<Answer, WireError> {
    in_pieces(ExpectedAnswer::Result, bytes, bytes.len())
}

#[test]
fn invalid_messages_are_protocol_errors() {
    for bytes in [b"D\0\0\0\x03".to_vec(), b"D\xff\xff\xff\xff".to_vec(), messages(&[(b'?', b"")])] {
        assert!(matches!(skim_whole(&bytes), Err(WireError::Protocol(_))), "{bytes:?}");
    }
    assert!(matches!(skim_whole(&messages(&[(b'G', b"\0\0\0")])), Err(WireError::Protocol(_))));
    let mut short = Skimmer::new();
    short.begin(ExpectedAnswer::Result, false);
    short.limit_bytes(20);
    assert!(matches!(short.feed(&messages(&[ROW, ROW, ROW])), Err(WireError::Protocol(_))));
}

#[test]
fn kept_rows_are_those_of_the_last_result() {
    let two = [(b'T', b"\0\x01".as_slice()), ROW, (b'C', b"SELECT 1\0"), (b'T', b"\0\x02")];
    let second = (b'D', b"\0\x02\xff\xff\xff\xff\0\0\0\x01x".as_slice());
    let bytes = [messages(&two), messages(&[second, (b'C', b"SELECT 1\0"), READY])].concat();
    for size in 1..=bytes.len() {
        let mut skim = Skimmer::new();
        skim.begin(ExpectedAnswer::Result, false);
        skim.keep_rows();
        bytes.chunks(size).for_each(|piece| {
            skim.feed(piece).unwrap();
        });
        let rows = skim.take_rows();
        assert_eq!((rows.columns, rows.ends.len()), (2, 1));
        assert_eq!(rows.to_text().unwrap(), [[None, Some("x".into())]]);
    }
}
