//! What the server answers, skimmed: message headers are walked, rows and bytes counted, nothing stored.
//!
//! A [`Skim`] belongs to a connection for its whole life, as a server may speak unasked at any time: a setting that
//! was changed, a notice, its farewell. It is told what answer is expected ([`Skim::begin`]), fed the bytes in pieces of any
//! size, and tells when the answer is complete. It keeps a message's bytes only where they lie across two pieces
//! and matter.
//!
//! An answer ends with ReadyForQuery, also after an error; an error that ends the connection is told at once.
//! A hostile server can send any bytes: every length and count has a bound, and none is trusted with an allocation.

pub use super::fields::{server_error, text_row};
pub use crate::rows::counted_columns as columns;

use super::fields::tag_rows;
use crate::scripted::{Form, Rows};
use crate::{Outcome, WireError};

/// Most bytes of one kept message; a longer one is cut. Of an error that is state and words, which come first.
const KEEP_MAX: usize = 4096;
/// Most bytes of a row: what a server can hold in memory at once.
const ROW_MAX: u32 = 1 << 30;
/// Most bytes of any other message. A notice can hold a long statement.
const MESSAGE_MAX: u32 = 64 << 20;
/// Most bytes of a command's tag, whose end matters.
const SHORT_MAX: u32 = 1024;
/// Most bytes of messages within one answer that nobody asked for.
const NOISE_MAX: u64 = 64 << 20;
/// Most bytes `rows` keeps of all rows together, with [`KEPT_ROW_COST`] for each.
const KEPT_ROWS_MAX: usize = 32 << 20;
/// What a kept row costs beside its bytes.
const KEPT_ROW_COST: usize = size_of::<Vec<u8>>() + 16;
const HEADER: usize = 5;

/// What kind of answer is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: the session waits for us.
    Nothing,
    /// The answer to a query or an execution.
    Result,
    /// The answer to a prepare.
    Prepared,
    /// The answer to a COPY FROM STDIN of our own: a request for its data, which is complete in itself.
    DataRequest,
}

/// A complete answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows and bytes. Of several results the last counts, as with PostgreSQL's own library.
    pub outcome: Outcome,
    /// Whether rows were described, or that there are none; unknown where nothing was described.
    pub described: Option<bool>,
    /// Parameters of the prepared statement.
    pub parameters: u16,
    /// Whether a statement was prepared.
    pub prepared: bool,
    /// Whether the server waits for the data of a COPY.
    pub data_requested: bool,
}

/// A reader of what one server says.
#[derive(Debug)]
pub struct Skim {
    header: [u8; HEADER],
    header_length: u8,
    /// Payload bytes of the current message that have not come yet.
    left: usize,
    /// Length of the current message's payload.
    length: usize,
    kept: Vec<u8>,
    expect: Expect,
    /// The answer so far.
    answer: Answer,
    /// Rows of the result under way.
    rows_now: u64,
    /// Whether the result under way has rows, as far as was described; see [`Skim::begin`].
    returns_rows: bool,
    /// Whether something has answered what was asked.
    answered: bool,
    complete: bool,
    error: Option<WireError>,
    /// The error with which the server has ended the connection.
    farewell: Option<WireError>,
    noise: u64,
    /// Most bytes of the whole answer.
    bytes_max: u64,
    /// Rows, where they are asked for.
    rows: Option<Rows>,
    rows_bytes: usize,
    rows_max: usize,
}

impl Default for Skim {
    fn default() -> Self {
        Self {
            header: [0; HEADER],
            header_length: 0,
            left: 0,
            length: 0,
            kept: Vec::new(),
            expect: Expect::Nothing,
            answer: Answer::default(),
            rows_now: 0,
            returns_rows: false,
            answered: false,
            complete: false,
            error: None,
            farewell: None,
            noise: 0,
            bytes_max: u64::MAX,
            rows: None,
            rows_bytes: 0,
            rows_max: KEPT_ROWS_MAX,
        }
    }
}

impl Skim {
    /// Something was asked, and this is the answer to it. `returns_rows` is what is known from the preparation of the
    /// statement.
    #[inline]
    pub fn begin(&mut self, expect: Expect, returns_rows: bool) {
        self.expect = expect;
        self.answer = Answer::default();
        self.rows_now = 0;
        self.returns_rows = returns_rows;
        (self.answered, self.complete) = (false, false);
        self.error = None;
        self.noise = 0;
        self.bytes_max = u64::MAX;
        self.rows = None;
    }

    /// Believes no answer of more than `bytes`: for statements whose answers are known to be short, where no run's end
    /// bounds what a server may send.
    pub fn at_most(&mut self, bytes: u64) {
        self.bytes_max = bytes;
    }

    /// Keeps the rows of the last result in `rows`, which is empty, up to `max` bytes in all.
    pub fn keep(&mut self, rows: Rows, max: usize) {
        (self.rows, self.rows_bytes, self.rows_max) = (Some(rows), 0, max);
    }

    /// Keeps the rows of a short result.
    pub fn keep_rows(&mut self) {
        self.keep(Rows::default(), KEPT_ROWS_MAX);
    }

    /// The rows kept.
    pub fn take_rows(&mut self) -> Rows {
        self.rows.take().unwrap_or_default()
    }

    /// Why the connection is of no use any more, where the server has said it.
    #[inline]
    pub fn farewell(&self) -> Option<&WireError> {
        self.farewell.as_ref()
    }

    /// The server's error in an answer that was never completed.
    pub fn unfinished_error(&mut self) -> Option<WireError> {
        self.farewell.clone().or_else(|| self.error.take())
    }

    /// What the last answer told of a statement, even one that ended in an error: whether it returns rows, and
    /// whether the server has prepared it.
    pub fn learned(&self) -> (Option<bool>, bool) {
        (self.answer.described, self.answer.prepared)
    }

    /// Takes the next bytes. Returns the answer when it is complete; what follows it was not asked for, and is read too.
    ///
    /// # Errors
    /// The server's own error, or [`WireError::Protocol`].
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Option<Answer>, WireError> {
        self.answer.outcome.bytes += bytes.len() as u64;
        if self.answer.outcome.bytes > self.bytes_max {
            return Err(WireError::Protocol(format!("an answer of more than {} bytes", self.bytes_max)));
        }
        if let Err(error) = self.walk(bytes) {
            if !self.complete {
                return Err(error);
            }
            // The answer stands, wherever the network cut what follows it; the next one will not come.
            self.farewell.get_or_insert(error);
        }
        if !std::mem::take(&mut self.complete) {
            return Ok(None);
        }
        self.expect = Expect::Nothing;
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(Some(self.answer)),
        }
    }

    /// Walks through messages and parts of them.
    #[inline]
    fn walk(&mut self, mut bytes: &[u8]) -> Result<(), WireError> {
        while !bytes.is_empty() {
            if usize::from(self.header_length) < HEADER {
                bytes = self.read_header(bytes)?;
                if usize::from(self.header_length) < HEADER || (self.left > 0 && bytes.is_empty()) {
                    break;
                }
            }
            let (piece, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= piece.len();
            bytes = rest;
            self.take_piece(piece)?;
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
            let most = match kind {
                b'D' | b'd' => ROW_MAX,
                b'C' | b'Z' => SHORT_MAX,
                _ => MESSAGE_MAX,
            };
            if !(4..=most).contains(&length) {
                return Err(WireError::Protocol(format!("a message of {length} bytes")));
            }
            self.length = length as usize - 4;
            self.left = self.length;
            self.kept.clear();
        }
        Ok(&bytes[count..])
    }

    /// Handles a piece of the current message.
    #[inline]
    fn take_piece(&mut self, piece: &[u8]) -> Result<(), WireError> {
        let complete = self.left == 0;
        if complete && self.kept.is_empty() {
            self.header_length = 0;
            return self.message(piece);
        }
        let count = piece.len().min(self.room().saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(&piece[..count]);
        if !complete {
            return Ok(());
        }
        self.header_length = 0;
        let kept = std::mem::take(&mut self.kept);
        let done = self.message(&kept);
        self.kept = kept;
        self.kept.clear();
        done
    }

    /// How many bytes of the current message matter.
    fn room(&self) -> usize {
        match self.header[0] {
            b'D' if self.rows.is_some() => self.rows_max - self.rows_bytes.min(self.rows_max),
            b'E' | b'C' | b't' | b'T' | b'Z' => KEEP_MAX,
            _ => 0,
        }
    }

    /// Handles a complete message; `payload` may be cut where only its beginning matters.
    #[inline]
    fn message(&mut self, payload: &[u8]) -> Result<(), WireError> {
        match (self.header[0], self.expect) {
            (b'D', Expect::Result) if !self.complete => self.row(payload),
            (b'C', Expect::Result) if !self.complete => {
                self.end_of_result(payload);
                Ok(())
            }
            (b'2', Expect::Result) if !self.complete => Ok(()),
            (b'Z', Expect::Result | Expect::Prepared | Expect::DataRequest) if !self.complete => self.ready(),
            _ => self.rare(payload),
        }
    }

    fn row(&mut self, payload: &[u8]) -> Result<(), WireError> {
        self.rows_now += 1;
        let Some(rows) = &mut self.rows else { return Ok(()) };
        self.rows_bytes += payload.len() + KEPT_ROW_COST;
        if self.rows_bytes > self.rows_max || payload.len() != self.length {
            return Err(WireError::Protocol(format!("a result of more than {} bytes", self.rows_max)));
        }
        rows.bytes.extend_from_slice(payload);
        rows.ends.push(rows.bytes.len());
        Ok(())
    }

    /// CommandComplete. A command that returns no rows tells in its tag how many it changed.
    #[inline]
    fn end_of_result(&mut self, tag: &[u8]) {
        let returns_rows = self.returns_rows || self.rows_now > 0;
        let outcome = &mut self.answer.outcome;
        outcome.returns_rows = returns_rows;
        outcome.rows = if returns_rows { self.rows_now } else { tag_rows(tag) };
        (self.rows_now, self.returns_rows) = (0, false);
        if !returns_rows && let Some(rows) = &mut self.rows {
            rows.clear();
        }
        self.answered = true;
    }

    #[inline]
    fn ready(&mut self) -> Result<(), WireError> {
        if !self.answered && self.error.is_none() {
            return Err(WireError::Protocol("the end of an answer without one".into()));
        }
        self.complete = true;
        Ok(())
    }

    fn rare(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let kind = self.header[0];
        let expect = if self.complete { Expect::Nothing } else { self.expect };
        match (kind, expect) {
            // A setting that has changed, a notice, a notification.
            (b'S' | b'N' | b'A', _) => {
                self.noise += self.length as u64 + HEADER as u64;
                if self.noise > NOISE_MAX {
                    return Err(WireError::Protocol(format!("more than {NOISE_MAX} bytes of notices")));
                }
            }
            (b'E', _) => return self.failed(payload),
            (b'T', Expect::Result | Expect::Prepared) => self.described(payload),
            (b'n', Expect::Result | Expect::Prepared) => self.answer.described = Some(false),
            (b'1', Expect::Result | Expect::Prepared) => {
                self.answer.prepared = true;
                self.answered |= expect == Expect::Prepared;
            }
            (b't', Expect::Result | Expect::Prepared) => {
                let count = payload.first_chunk().map(|bytes| u16::from_be_bytes(*bytes));
                self.answer.parameters = count.unwrap_or_default();
            }
            (b'3', Expect::Result | Expect::Prepared | Expect::DataRequest) => {}
            // An empty statement has no tag.
            (b'I', Expect::Result) => self.end_of_result(b""),
            // What a COPY TO STDOUT of a script sends.
            (b'H' | b'd' | b'c', Expect::Result) => {}
            (b'G', Expect::DataRequest) => {
                self.answer.data_requested = true;
                self.complete = true;
            }
            (b'G', Expect::Result) => {
                return Err(WireError::Protocol(
                    "the server asked for the data of a COPY FROM STDIN, which statements of a run cannot have"
                        .into(),
                ));
            }
            (kind, Expect::Nothing) => {
                return Err(WireError::Protocol(format!("{} after the end of an answer", named(kind))));
            }
            (kind, _) => return Err(WireError::Protocol(format!("{} in an answer", named(kind)))),
        }
        Ok(())
    }

    /// RowDescription: a new result begins.
    fn described(&mut self, payload: &[u8]) {
        self.answer.described = Some(true);
        self.returns_rows = true;
        self.rows_now = 0;
        if let Some(rows) = &mut self.rows {
            rows.clear();
            self.rows_bytes = 0;
            rows.form = Form::Counted;
            rows.columns = payload.first_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes).into());
        }
    }

    fn failed(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let found = server_error(&payload[..payload.len().min(KEEP_MAX)]);
        // An error that follows an answer is not the answer's own, wherever the network cut between them: it is told with
        // the next one. Behind a request for the data of a COPY it is the end of that COPY.
        if self.complete || matches!(found, WireError::Server { is_fatal: true, .. }) {
            self.farewell.get_or_insert_with(|| found.clone());
            return Err(found);
        }
        self.error.get_or_insert(found);
        Ok(())
    }
}

fn named(kind: u8) -> String {
    if kind.is_ascii_graphic() {
        format!("a message of type {}", char::from(kind))
    } else {
        format!("a message of type 0x{kind:02x}")
    }
}

#[cfg(test)]
mod tests;
