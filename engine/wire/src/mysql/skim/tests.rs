//! Tests with complete and divided answers of correct and hostile servers.

use super::*;
use crate::mysql::message::write_packet;

const EOF: &[u8] = b"\xfe\x00\x00\x02\x00";
const OK_END: &[u8] = b"\xfe\x00\x00\x02\x00\x00\x00";

fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for (sequence, payload) in payloads.iter().enumerate() {
        write_packet(&mut out, sequence as u8 + 1, |out| out.extend_from_slice(payload));
    }
    out
}

/// Feeds `bytes` in pieces of every size; the answer must not depend on it.
fn skim(expect: ExpectedAnswer, deprecate_eof: bool, bytes: &[u8]) -> Result<Answer, WireError> {
    let mut answers: Vec<_> = (1..=bytes.len())
        .map(|size| {
            let mut skim = Skimmer::new(expect, deprecate_eof);
            let mut answer = None;
            for piece in bytes.chunks(size) {
                assert!(answer.is_none(), "an answer before its end");
                answer = skim.feed(piece)?;
            }
            Ok(answer.expect("no answer at the end"))
        })
        .collect();
    let first = answers.pop().expect("bytes");
    assert!(answers.iter().all(|answer| *answer == first), "{answers:?}");
    first
}

fn outcome(returns_rows: bool, rows: u64, bytes: usize) -> Outcome {
    Outcome { returns_rows, rows, bytes: bytes as u64 }
}

#[test]
fn ok_reports_changed_rows() {
    let bytes = packets(&[b"\x00\xfc\x2c\x01\x00\x02\x00\x00\x00"]);
    assert_eq!(skim(ExpectedAnswer::Result, true, &bytes).unwrap().outcome, outcome(false, 300, bytes.len()));
}

#[test]
fn rows_are_counted_with_and_without_end_markers() {
    let bytes = packets(&[b"\x01", b"def...", b"\x00\x00\x03abc", b"\x00\x00\x03abd", OK_END]);
    assert_eq!(skim(ExpectedAnswer::Result, true, &bytes).unwrap().outcome, outcome(true, 2, bytes.len()));
    let bytes = packets(&[b"\x02", b"def...", b"def...", EOF, b"\x00\x00\x03abc", EOF]);
    assert_eq!(skim(ExpectedAnswer::Result, false, &bytes).unwrap().outcome, outcome(true, 1, bytes.len()));
    let bytes = packets(&[b"\x01", b"def...", EOF, EOF]);
    assert_eq!(skim(ExpectedAnswer::Result, false, &bytes).unwrap().outcome, outcome(true, 0, bytes.len()));
}

#[test]
fn a_second_result_follows_if_the_status_announces_it() {
    let more = b"\xfe\x00\x00\x0a\x00\x00\x00";
    let bytes = packets(&[b"\x01", b"def", b"\x01a", more, b"\x00\x00\x00\x02\x00\x00\x00"]);
    assert_eq!(skim(ExpectedAnswer::Result, true, &bytes).unwrap().outcome, outcome(true, 1, bytes.len()));
}

#[test]
fn several_results_are_tracked() {
    let more = b"\xfe\x00\x00\x0a\x00\x00\x00";
    let bytes = packets(&[
        b"\x00\x03\x00\x0a\x00\x00\x00", // three rows changed, more follow
        b"\x01",
        b"def",
        b"\x01a",
        b"\x01b",
        more,
        b"\x02",
        b"def",
        b"def",
        b"\x01c\x01d",
        more,
        b"\x00\x00\x00\x02\x00\x00\x00",
    ]);
    for all in [true, false] {
        let skim = Skimmer::new(ExpectedAnswer::Result, true).track_result_sets(true);
        let mut skim = if all { skim.keep_rows_in(Rows::default(), 1 << 20, true) } else { skim };
        assert!(skim.feed(&bytes).unwrap().is_some());
        let results: Vec<_> = skim
            .take_result_sets()
            .iter()
            .map(|result| (result.returns_rows, result.rows, result.columns, result.first_row))
            .collect();
        let first = |row| if all { row } else { 0 };
        let columns = |count| if all { count } else { 0 };
        assert_eq!(
            results,
            [
                (false, 3, 0, 0),
                (true, 2, columns(1), 0),
                (true, 1, columns(2), first(2)),
                (false, 0, 0, first(3))
            ]
        );
        assert_eq!(skim.into_rows().ends.len(), first(3));
    }
    let changed = b"\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x00\x0a\x00\x00\x00";
    let bytes = packets(&[changed, b"\x01", b"def", b"\x01a", OK_END]);
    assert_eq!(skim(ExpectedAnswer::Result, true, &bytes).unwrap().outcome, outcome(true, 1, bytes.len()));
    let alone = packets(&[b"\x01", b"def...", b"\x01a", OK_END]);
    let mut skim = Skimmer::new(ExpectedAnswer::Result, true).track_result_sets(true);
    assert!(skim.feed(&alone).unwrap().is_some());
    assert_eq!(skim.take_result_sets(), []);
}

#[test]
fn prepare_waits_for_all_definitions() {
    let head = b"\x00\x07\x00\x00\x00\x01\x00\x02\x00\x00\x00\x00";
    for (deprecate_eof, rest) in [(true, 3), (false, 5)] {
        let mut payloads: Vec<&[u8]> = vec![head];
        payloads.extend(std::iter::repeat_n(b"def".as_slice(), rest));
        assert_eq!(
            skim(ExpectedAnswer::Prepared, deprecate_eof, &packets(&payloads)).unwrap().statement_id,
            7
        );
    }
}

#[test]
fn errors_carry_the_server_message() {
    let error = WireError::Server {
        code: 1213,
        state: "40001".into(),
        message: "Deadlock found".into(),
        is_fatal: false,
    };
    let payload = b"\xff\xbd\x04#40001Deadlock found";
    assert_eq!(skim(ExpectedAnswer::Result, true, &packets(&[payload])), Err(error.clone()));
    assert_eq!(
        skim(ExpectedAnswer::Result, true, &packets(&[b"\x01", b"def", b"\x01a", payload])),
        Err(error)
    );
}

#[test]
fn a_row_longer_than_a_packet_is_one_row() {
    let mut bytes = packets(&[b"\x01", b"def"]);
    bytes.extend_from_slice(&[0xff, 0xff, 0xff, 3]);
    bytes.resize(bytes.len() + 0xff_ffff, 0x00);
    bytes.extend_from_slice(&packets(&[b"\xfe tail", OK_END]));
    let mut skim = Skimmer::new(ExpectedAnswer::Result, true);
    assert_eq!(skim.feed(&bytes).unwrap().unwrap().outcome.rows, 1);
}

#[test]
fn hostile_answers_are_errors() {
    let bad: [&[u8]; 5] = [b"\xfbetc/passwd", b"", b"\x00", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff", b"\xff"];
    for payload in bad {
        let result = skim(ExpectedAnswer::Result, true, &packets(&[payload]));
        assert!(matches!(result, Err(WireError::Protocol(_))), "{payload:?}: {result:?}");
    }
}

#[test]
fn a_request_for_data_is_an_answer_only_if_it_is_expected() {
    let bytes = packets(&[b"\xfb/etc/passwd"]);
    assert!(skim(ExpectedAnswer::DataRequest, true, &bytes).unwrap().data_requested);
    for expect in [ExpectedAnswer::Result, ExpectedAnswer::Prepared] {
        assert!(matches!(skim(expect, true, &bytes), Err(WireError::Protocol(_))));
    }
    let two = packets(&[b"\xfbone", b"\xfbtwo"]);
    assert!(Skimmer::new(ExpectedAnswer::DataRequest, true).feed(&two).is_err());
}
