//! Skims answers of the server: counts their rows and bytes without storing them.
//!
//! A connection keeps one [`Skimmer`] until it closes, because a server may send unsolicited messages at any time: a
//! changed setting, a notice, a fatal error. The caller announces the kind of the next answer ([`Skimmer::begin`]) and
//! passes the bytes in pieces of any size; the reader reports when the answer is complete. It stores bytes only if a
//! relevant message is divided between two pieces.
//!
//! An answer ends with ReadyForQuery, even after an error. The reader reports an error that ends the connection
//! immediately. A hostile server can send any bytes: every length and count has a limit, and no received length sizes
//! an allocation.

use super::fields::{server_error, tag_rows};
use crate::rows::{RowBuffer, RowEncoding, Rows};
use crate::{Outcome, WireError};

/// Maximum stored bytes of one message; the rest is cut off. An error begins with its state and text.
const BUFFERED_MAX: usize = 4096;
/// Maximum bytes of a row, as in PostgreSQL.
const ROW_MAX: u32 = 1 << 30;
/// Maximum bytes of any other message. A notice can contain a long statement.
const MESSAGE_MAX: u32 = 64 << 20;
/// Maximum bytes of a command tag.
const TAG_MAX: u32 = 1024;
/// Maximum bytes of unsolicited messages within one answer.
const UNSOLICITED_MAX: u64 = 64 << 20;
const HEADER: usize = 5;

/// The kind of the next answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// No answer is expected, because the session is idle.
    #[default]
    Nothing,
    /// The answer to a query or an execution.
    Result,
    /// The answer to a prepare.
    Prepared,
    /// The answer to the loader's COPY FROM STDIN. The server's request for the data counts as a complete answer.
    DataRequest,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows and bytes. With several results, those of the last one, as in libpq.
    pub outcome: Outcome,
    /// Whether the server described a result with rows; `None` without a description.
    pub described: Option<bool>,
    /// Parameters of the prepared statement.
    pub parameters: u16,
    /// Whether the server prepared a statement.
    pub prepared: bool,
    /// Whether the server waits for the data of a COPY.
    pub data_requested: bool,
}

/// Reads the messages of one server.
#[derive(Debug, Default)]
pub struct Skimmer {
    header: [u8; HEADER],
    header_length: u8,
    /// Payload bytes of the current message that have not arrived yet.
    payload_left: usize,
    /// Length of the current message's payload.
    payload_length: usize,
    buffered: Vec<u8>,
    expected: ExpectedAnswer,
    /// The answer so far.
    answer: Answer,
    /// Rows of the current result.
    result_rows: u64,
    /// Whether the current result has rows, by its description; see [`Skimmer::begin`].
    returns_rows: bool,
    /// Whether the server has answered the request.
    has_answer: bool,
    is_complete: bool,
    error: Option<WireError>,
    /// The error that ended the connection.
    fatal_error: Option<WireError>,
    unsolicited_bytes: u64,
    /// Maximum bytes of the complete answer.
    bytes_max: u64,
    rows: RowBuffer,
}

impl Skimmer {
    /// A reader of an idle session.
    pub fn new() -> Self {
        Self { bytes_max: u64::MAX, ..Self::default() }
    }

    /// Begins the answer to a request. `returns_rows` is known since the statement was prepared.
    #[inline]
    pub fn begin(&mut self, expect: ExpectedAnswer, returns_rows: bool) {
        self.expected = expect;
        self.answer = Answer::default();
        self.result_rows = 0;
        self.returns_rows = returns_rows;
        (self.has_answer, self.is_complete) = (false, false);
        self.error = None;
        self.unsolicited_bytes = 0;
        self.bytes_max = u64::MAX;
        self.rows.rows = None;
    }

    /// Makes the reader fail if the answer exceeds `bytes`: for short answers outside a run, which the end of a run
    /// does not interrupt.
    pub fn limit_bytes(&mut self, bytes: u64) {
        self.bytes_max = bytes;
    }

    /// Keeps the rows of the last result in `rows`, which must be empty; at most `bytes_max` bytes.
    pub fn keep_rows_in(&mut self, rows: Rows, bytes_max: usize) {
        self.rows = RowBuffer::new(rows, bytes_max);
    }

    /// Keeps the rows of a short result.
    pub fn keep_rows(&mut self) {
        self.rows = RowBuffer::for_short_result();
    }

    /// Takes the kept rows.
    pub fn take_rows(&mut self) -> Rows {
        self.rows.rows.take().unwrap_or_default()
    }

    /// The error that ended the connection.
    #[inline]
    pub fn fatal_error(&self) -> Option<&WireError> {
        self.fatal_error.as_ref()
    }

    /// The server's error, if the answer is incomplete.
    pub fn unfinished_error(&mut self) -> Option<WireError> {
        self.fatal_error.clone().or_else(|| self.error.take())
    }

    /// Whether the last statement returns rows, and whether the server has prepared it; valid also after an error.
    pub fn description(&self) -> (Option<bool>, bool) {
        (self.answer.described, self.answer.prepared)
    }

    /// Reads the next bytes. Returns the answer when it is complete; unsolicited messages may follow it.
    ///
    /// # Errors
    /// The server's error, or [`WireError::Protocol`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Answer>, WireError> {
        self.answer.outcome.bytes += bytes.len() as u64;
        if self.answer.outcome.bytes > self.bytes_max {
            return Err(WireError::Protocol(format!("an answer of more than {} bytes", self.bytes_max)));
        }
        if let Err(error) = self.read_messages(bytes) {
            if !self.is_complete {
                return Err(error);
            }
            // The answer is complete, so only the next request fails with this error. The result is then the same however
            // the network divides the bytes.
            self.fatal_error.get_or_insert(error);
        }
        if !std::mem::take(&mut self.is_complete) {
            return Ok(None);
        }
        self.expected = ExpectedAnswer::Nothing;
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(Some(self.answer)),
        }
    }

    /// Handles complete and partial messages.
    #[inline]
    fn read_messages(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
        while !bytes.is_empty() {
            if usize::from(self.header_length) < HEADER {
                bytes = self.read_header(bytes)?;
                if usize::from(self.header_length) < HEADER || (self.payload_left > 0 && bytes.is_empty()) {
                    break;
                }
            }
            let (piece, rest) = bytes.split_at(self.payload_left.min(bytes.len()));
            self.payload_left -= piece.len();
            bytes = rest;
            self.feed_piece(piece)?;
        }
        Ok(())
    }

    #[inline]
    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], WireError> {
        let have = usize::from(self.header_length);
        let count = bytes.len().min(HEADER - have);
        self.header[have..have + count].copy_from_slice(&bytes[..count]);
        self.header_length += count as u8;
        if usize::from(self.header_length) == HEADER {
            let [kind, a, b, c, d] = self.header;
            let length = u32::from_be_bytes([a, b, c, d]);
            let length_max = match kind {
                b'D' | b'd' => ROW_MAX,
                b'C' | b'Z' => TAG_MAX,
                _ => MESSAGE_MAX,
            };
            if !(4..=length_max).contains(&length) {
                return Err(WireError::Protocol(format!("a message of {length} bytes")));
            }
            self.payload_length = length as usize - 4;
            self.payload_left = self.payload_length;
            self.buffered.clear();
        }
        Ok(&bytes[count..])
    }

    /// Handles a piece of the current message.
    #[inline]
    fn feed_piece(&mut self, piece: &[u8]) -> Result<(), WireError> {
        let complete = self.payload_left == 0;
        if complete && self.buffered.is_empty() {
            self.header_length = 0;
            return self.handle_message(piece);
        }
        let count = piece.len().min(self.relevant_bytes().saturating_sub(self.buffered.len()));
        self.buffered.extend_from_slice(&piece[..count]);
        if !complete {
            return Ok(());
        }
        self.header_length = 0;
        let buffered = std::mem::take(&mut self.buffered);
        let done = self.handle_message(&buffered);
        self.buffered = buffered;
        self.buffered.clear();
        done
    }

    /// How many bytes of the current message are relevant.
    fn relevant_bytes(&self) -> usize {
        match self.header[0] {
            b'D' if self.rows.rows.is_some() => self.rows.bytes_left(),
            b'E' | b'C' | b't' | b'T' | b'Z' => BUFFERED_MAX,
            _ => 0,
        }
    }

    /// Handles a complete message. `payload` may be shorter than the message if only its beginning is relevant.
    #[inline]
    fn handle_message(&mut self, payload: &[u8]) -> Result<(), WireError> {
        match (self.header[0], self.expected) {
            (b'D', ExpectedAnswer::Result) if !self.is_complete => self.handle_row(payload),
            (b'C', ExpectedAnswer::Result) if !self.is_complete => {
                self.end_result(payload);
                Ok(())
            }
            (b'2', ExpectedAnswer::Result) if !self.is_complete => Ok(()),
            (b'Z', ExpectedAnswer::Result | ExpectedAnswer::Prepared | ExpectedAnswer::DataRequest)
                if !self.is_complete =>
            {
                self.handle_ready()
            }
            _ => self.handle_other_message(payload),
        }
    }

    fn handle_row(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.result_rows += 1;
        self.rows.push(payload, self.payload_length)
    }

    /// CommandComplete. The tag of a command without a result set contains the number of changed rows.
    #[inline]
    fn end_result(&mut self, tag: &[u8]) {
        let returns_rows = self.returns_rows || self.result_rows > 0;
        let outcome = &mut self.answer.outcome;
        outcome.returns_rows = returns_rows;
        outcome.rows = if returns_rows { self.result_rows } else { tag_rows(tag) };
        (self.result_rows, self.returns_rows) = (0, false);
        if !returns_rows && let Some(rows) = &mut self.rows.rows {
            rows.clear();
        }
        self.has_answer = true;
    }

    #[inline]
    fn handle_ready(&mut self) -> Result<(), WireError> {
        if !self.has_answer && self.error.is_none() {
            return Err(WireError::Protocol("ReadyForQuery before an answer".into()));
        }
        self.is_complete = true;
        Ok(())
    }

    fn handle_other_message(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let kind = self.header[0];
        let expect = if self.is_complete { ExpectedAnswer::Nothing } else { self.expected };
        match (kind, expect) {
            // Unsolicited: a changed setting, a notice, or a notification.
            (b'S' | b'N' | b'A', _) => {
                self.unsolicited_bytes += self.payload_length as u64 + HEADER as u64;
                if self.unsolicited_bytes > UNSOLICITED_MAX {
                    return Err(WireError::Protocol(format!("more than {UNSOLICITED_MAX} bytes of notices")));
                }
            }
            (b'E', _) => return self.handle_error_response(payload),
            (b'T', ExpectedAnswer::Result | ExpectedAnswer::Prepared) => self.handle_row_description(payload),
            (b'n', ExpectedAnswer::Result | ExpectedAnswer::Prepared) => self.answer.described = Some(false),
            (b'1', ExpectedAnswer::Result | ExpectedAnswer::Prepared) => {
                self.answer.prepared = true;
                self.has_answer |= expect == ExpectedAnswer::Prepared;
            }
            (b't', ExpectedAnswer::Result | ExpectedAnswer::Prepared) => {
                let count = payload.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
                self.answer.parameters = count.unwrap_or_default();
            }
            (b'3', ExpectedAnswer::Result | ExpectedAnswer::Prepared | ExpectedAnswer::DataRequest) => {}
            // An empty statement has no tag.
            (b'I', ExpectedAnswer::Result) => self.end_result(b""),
            // The answer to a script's COPY TO STDOUT.
            (b'H' | b'd' | b'c', ExpectedAnswer::Result) => {}
            (b'G', ExpectedAnswer::DataRequest) => {
                self.answer.data_requested = true;
                self.is_complete = true;
            }
            (b'G', ExpectedAnswer::Result) => {
                return Err(WireError::Protocol(
                    "the server asked for the data of a COPY FROM STDIN, which a statement of a run cannot send"
                        .into(),
                ));
            }
            (kind, ExpectedAnswer::Nothing) => {
                return Err(WireError::Protocol(format!(
                    "{} after the end of an answer",
                    message_name(kind)
                )));
            }
            (kind, _) => return Err(WireError::Protocol(format!("{} in an answer", message_name(kind)))),
        }
        Ok(())
    }

    /// RowDescription: a new result begins.
    fn handle_row_description(&mut self, payload: &[u8]) {
        self.answer.described = Some(true);
        self.returns_rows = true;
        self.result_rows = 0;
        if let Some(rows) = &mut self.rows.rows {
            rows.clear();
            self.rows.bytes = 0;
            rows.encoding = RowEncoding::Counted;
            rows.columns = payload.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes).into());
        }
    }

    fn handle_error_response(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let error = server_error(&payload[..payload.len().min(BUFFERED_MAX)]);
        // An error after a complete answer belongs to the next answer, however the network divides the bytes. An error after a request for the data of a COPY ends the COPY.
        if self.is_complete || matches!(error, WireError::Server { is_fatal: true, .. }) {
            self.fatal_error.get_or_insert_with(|| error.clone());
            return Err(error);
        }
        self.error.get_or_insert(error);
        Ok(())
    }
}

fn message_name(kind: u8) -> String {
    if kind.is_ascii_graphic() {
        format!("a message of type {}", char::from(kind))
    } else {
        format!("a message of type 0x{kind:02x}")
    }
}

#[cfg(test)]
mod tests;
