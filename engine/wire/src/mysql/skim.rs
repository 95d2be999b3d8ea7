//! What the server answers, skimmed: packet headers are walked, rows and bytes counted, nothing stored.
//!
//! A [`Skim`] is fed the bytes of one answer in pieces of any size and tells when the answer is complete. It
//! keeps a packet's bytes only where they lie across two pieces and matter: OK, error and count packets. Rows and
//! column definitions are passed over by their length.
//!
//! ```text
//! Head ──OK / error──────────────────────────────────────────▶ done
//!  │ prepare OK ─▶ Definitions ─▶ done
//!  └ column count ─▶ Definitions ─▶ Rows ──end / error──▶ done, or Head when more results follow
//! ```
//! A hostile server can send any bytes: every count has a bound, and no length is trusted with an allocation.

pub use super::fields::{server_error, text_row};

use super::fields::Cursor;
use crate::scripted::{Part, Rows};
use crate::{Outcome, WireError};

/// Most bytes of one kept packet; a longer one is cut. An error message has at most 512 bytes.
const KEEP_MAX: usize = 4096;
/// Most columns a table can have (4096) and room for parameters (65535 at most).
const DEFINITIONS_MAX: u64 = 65_535;
/// Most bytes of one column definition: six names, of 64 characters each in a real server.
const DEFINITION_MAX: usize = 64 << 10;
/// Most bytes `rows` keeps of all rows together, with [`KEPT_ROW_COST`] for each.
const KEPT_ROWS_MAX: usize = 32 << 20;
/// What a kept row costs beside its bytes.
const KEPT_ROW_COST: usize = size_of::<Vec<u8>>() + 16;

/// Most results of one answer, where each is told.
const PARTS_MAX: usize = 1 << 16;

const STATUS_MORE_RESULTS: u16 = 0x0008;

/// What kind of answer is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// The answer to a query or an execution.
    Result,
    /// The answer to a prepare.
    Prepared,
    /// The answer to a LOAD DATA LOCAL of our own: a request for its data, which is complete in itself.
    DataRequest,
}

/// A complete answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows and bytes.
    pub outcome: Outcome,
    /// Id of the prepared statement.
    pub statement_id: u32,
    /// Placeholders of the prepared statement.
    pub parameters: u16,
    /// Whether the server waits for the data of a LOAD DATA LOCAL.
    pub data_requested: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first packet of a result.
    Head,
    /// `left` definitions and, unless the end markers are deprecated, an end marker after each of the groups.
    Definitions { left: u64, ends: u8 },
    /// Rows up to an end marker.
    Rows,
    /// `left` packets that end the answer to a prepare.
    PreparedRest { left: u64 },
}

/// A reader of one answer.
#[derive(Debug)]
pub struct Skim {
    expect: Expect,
    /// CLIENT_DEPRECATE_EOF: no end marker after definitions, and rows end with an OK packet.
    deprecate_eof: bool,
    state: State,
    header: [u8; 4],
    header_length: u8,
    /// Payload bytes of the current packet that have not come yet.
    left: usize,
    /// Length of the current packet's payload.
    length: usize,
    /// The packet before this one was full, so this one continues it.
    continues: bool,
    kept: Vec<u8>,
    answer: Answer,
    /// Row packets, where they are asked for.
    rows: Option<Rows>,
    /// Whether only those of the first result are, and whether that has ended.
    first_only: bool,
    first_ended: bool,
    /// Where several results are told one by one: those so far.
    parts: Option<Parts>,
    rows_bytes: usize,
    rows_max: usize,
    /// Most bytes of the whole answer.
    bytes_max: u64,
}

impl Skim {
    /// A reader for one answer.
    pub fn new(expect: Expect, deprecate_eof: bool) -> Self {
        Self {
            expect,
            deprecate_eof,
            state: State::Head,
            header: [0; 4],
            header_length: 0,
            left: 0,
            length: 0,
            continues: false,
            kept: Vec::new(),
            answer: Answer::default(),
            rows: None,
            first_only: false,
            first_ended: false,
            parts: None,
            rows_bytes: 0,
            rows_max: KEPT_ROWS_MAX,
            bytes_max: u64::MAX,
        }
    }

    /// Believes no answer of more than `bytes`: for statements whose answers are known to be short, where no
    /// run's end bounds what a server may send.
    pub fn at_most(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Keeps the payload of every row.
    pub fn keep_rows(mut self) -> Self {
        self.rows = Some(Rows::default());
        self
    }

    /// Keeps the rows of the first result in `rows`, which is empty, up to `max` bytes in all; those of `all` results if
    /// they are wanted.
    pub fn keep_in(mut self, rows: Rows, max: usize, all: bool) -> Self {
        (self.rows, self.first_only, self.rows_max) = (Some(rows), !all, max);
        self
    }

    /// The rows kept.
    pub fn into_rows(self) -> Vec<Vec<u8>> {
        let rows = self.rows.unwrap_or_default();
        (0..rows.ends.len()).filter_map(|index| rows.row(index).map(<[u8]>::to_vec)).collect()
    }

    /// The rows kept, as they lie.
    pub fn into_kept(self) -> Rows {
        self.rows.unwrap_or_default()
    }

    /// Tells the results of an answer one by one, where `wanted`.
    pub fn telling_parts(mut self, wanted: bool) -> Self {
        self.parts = wanted.then(Parts::default);
        self
    }

    /// Takes the results one by one where there were several; nothing where there was one.
    pub fn take_parts(&mut self) -> Vec<Part> {
        self.parts.take().map(|parts| parts.ended).unwrap_or_default()
    }

    /// Takes the next bytes. Returns the answer when it is complete.
    ///
    /// # Errors
    /// The server's own error, or [`WireError::Protocol`].
    pub fn feed(&mut self, mut bytes: &[u8]) -> Result<Option<Answer>, WireError> {
        self.answer.outcome.bytes += bytes.len() as u64;
        if self.answer.outcome.bytes > self.bytes_max {
            return Err(WireError::Protocol(format!("an answer of more than {} bytes", self.bytes_max)));
        }
        while !bytes.is_empty() {
            if self.header_length < 4 {
                bytes = self.read_header(bytes)?;
                if self.header_length < 4 {
                    return Ok(None);
                }
                if self.length > 0 && bytes.is_empty() {
                    return Ok(None);
                }
            }
            let (piece, rest) = bytes.split_at(self.left.min(bytes.len()));
            self.left -= piece.len();
            bytes = rest;
            if self.take_piece(piece)? {
                if !bytes.is_empty() {
                    return Err(WireError::Protocol("bytes after the end of an answer".into()));
                }
                return Ok(Some(std::mem::take(&mut self.answer)));
            }
        }
        Ok(None)
    }

    fn read_header<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], WireError> {
        let have = usize::from(self.header_length);
        let count = bytes.len().min(4 - have);
        self.header[have..have + count].copy_from_slice(&bytes[..count]);
        self.header_length += count as u8;
        if self.header_length == 4 {
            let [a, b, c, _] = self.header;
            self.length = u32::from_le_bytes([a, b, c, 0]) as usize;
            self.left = self.length;
            self.kept.clear();
            let defines = matches!(self.state, State::Definitions { .. } | State::PreparedRest { .. });
            if defines && self.length > DEFINITION_MAX {
                return Err(WireError::Protocol(format!("a column definition of {} bytes", self.length)));
            }
        }
        Ok(&bytes[count..])
    }

    /// Handles a piece of the current packet. Returns true at the end of the answer.
    fn take_piece(&mut self, piece: &[u8]) -> Result<bool, WireError> {
        let complete = self.left == 0;
        if complete && self.kept.is_empty() {
            self.header_length = 0;
            return self.packet(piece);
        }
        let first = self.kept.first().or(piece.first()).copied();
        let count = piece.len().min(self.room(first).saturating_sub(self.kept.len()));
        self.kept.extend_from_slice(&piece[..count]);
        if !complete {
            return Ok(false);
        }
        self.header_length = 0;
        let kept = std::mem::take(&mut self.kept);
        let done = self.packet(&kept);
        self.kept = kept;
        self.kept.clear();
        done
    }

    /// How many bytes of the current packet, which begins with `first`, matter. The first one always does: it tells
    /// what the packet is.
    fn room(&self, first: Option<u8>) -> usize {
        match self.state {
            State::Rows if self.keeps() => (self.rows_max - self.rows_bytes).max(1),
            // An error or the end of the rows, and not a row.
            State::Rows if matches!(first, Some(0xfe | 0xff)) => KEEP_MAX,
            State::Head => KEEP_MAX,
            State::Rows | State::Definitions { .. } | State::PreparedRest { .. } => 1,
        }
    }

    /// Handles a complete packet; `payload` may be cut to its first byte where only that matters.
    fn packet(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        let continued = std::mem::replace(&mut self.continues, self.length == 0xff_ffff);
        if continued {
            // The rest of a row that is longer than a packet.
            return if self.keeps() { Err(self.too_much_kept()) } else { Ok(false) };
        }
        match self.state {
            State::Head => self.head(payload),
            State::Definitions { left, ends } => {
                self.state = match (left, ends) {
                    (0, _) | (1, 0) => State::Rows,
                    _ => State::Definitions { left: left - 1, ends },
                };
                Ok(false)
            }
            State::Rows => self.row_or_end(payload),
            State::PreparedRest { left: 0 | 1 } => Ok(true),
            State::PreparedRest { left } => {
                self.state = State::PreparedRest { left: left - 1 };
                Ok(false)
            }
        }
    }

    fn head(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        match payload.first() {
            None => Err(WireError::Protocol("an empty packet".into())),
            Some(0xff) => Err(server_error(payload)),
            Some(0x00) if self.expect == Expect::Prepared => self.prepared(payload),
            Some(0x00) => self.ok(payload),
            // The file name that follows is ours, and nobody looks at it.
            Some(0xfb) if self.expect == Expect::DataRequest => {
                self.answer.data_requested = true;
                Ok(true)
            }
            Some(0xfb) => Err(WireError::Protocol(
                "the server asked for a local file; dbdyno never sends files a server names".into(),
            )),
            Some(_) => {
                let columns = Cursor(payload).length()?;
                if columns == 0 || columns > DEFINITIONS_MAX {
                    return Err(WireError::Protocol(format!("a result of {columns} columns")));
                }
                if !std::mem::replace(&mut self.answer.outcome.returns_rows, true) {
                    // What an earlier result has changed is none of the rows returned.
                    self.answer.outcome.rows = 0;
                    if let Some(parts) = &mut self.parts {
                        parts.rows_before = 0;
                    }
                }
                if let (Some(parts), Some(_)) = (&mut self.parts, &self.rows) {
                    parts.columns = columns as u32;
                }
                if let Some(rows) = self.rows.as_mut().filter(|rows| rows.columns == 0) {
                    rows.columns = columns as u32;
                }
                let ends = u8::from(!self.deprecate_eof);
                self.state = State::Definitions { left: columns, ends };
                Ok(false)
            }
        }
    }

    /// OK packet: 0x00, affected rows, last insert id, status flags, warnings.
    fn ok(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        let mut cursor = Cursor(&payload[1..]);
        let affected = cursor.length()?;
        cursor.length()?;
        let status = cursor.u16()?;
        if !self.answer.outcome.returns_rows {
            self.answer.outcome.rows = affected;
        }
        self.end_of_result(status, affected)
    }

    /// Prepare OK: 0x00, statement id, columns, parameters.
    fn prepared(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        let mut cursor = Cursor(&payload[1..]);
        self.answer.statement_id = cursor.u32()?;
        let columns = u64::from(cursor.u16()?);
        self.answer.parameters = cursor.u16()?;
        let parameters = u64::from(self.answer.parameters);
        let packets = |definitions| {
            if definitions == 0 || self.deprecate_eof { definitions } else { definitions + 1 }
        };
        let left = packets(columns) + packets(parameters);
        self.state = State::PreparedRest { left };
        Ok(left == 0)
    }

    fn row_or_end(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        match payload.first() {
            Some(0xff) => Err(server_error(payload)),
            Some(0xfe) if self.deprecate_eof && self.length < 0xff_ffff => self.ok(payload),
            Some(0xfe) if !self.deprecate_eof && self.length < 9 => {
                let mut cursor = Cursor(&payload[1..]);
                cursor.u16()?;
                let status = cursor.u16()?;
                self.end_of_result(status, 0)
            }
            _ => {
                self.answer.outcome.rows += 1;
                self.keep_row(payload)?;
                Ok(false)
            }
        }
    }

    fn keep_row(&mut self, payload: &[u8]) -> Result<(), WireError> {
        if !self.keeps() {
            return Ok(());
        }
        let Some(rows) = &mut self.rows else { return Ok(()) };
        self.rows_bytes += payload.len() + KEPT_ROW_COST;
        if self.rows_bytes > self.rows_max || payload.len() != self.length {
            return Err(self.too_much_kept());
        }
        rows.bytes.extend_from_slice(payload);
        rows.ends.push(rows.bytes.len());
        Ok(())
    }

    /// Whether rows that come now are kept.
    fn keeps(&self) -> bool {
        self.rows.is_some() && !(self.first_only && self.first_ended)
    }

    fn too_much_kept(&self) -> WireError {
        WireError::Protocol(format!("a result of more than {} bytes", self.rows_max))
    }

    fn end_of_result(&mut self, status: u16, affected: u64) -> Result<bool, WireError> {
        let is_last = status & STATUS_MORE_RESULTS == 0;
        let returns_rows = self.state == State::Rows;
        self.state = State::Head;
        self.first_ended = true;
        let Some(parts) = &mut self.parts else { return Ok(is_last) };
        let rows = if returns_rows { self.answer.outcome.rows - parts.rows_before } else { affected };
        let kept = self.rows.as_ref().map_or(0, |rows| rows.ends.len());
        parts.end(Part { returns_rows, rows, columns: 0, first_row: 0 }, is_last)?;
        (parts.rows_before, parts.kept_before) = (self.answer.outcome.rows, kept);
        Ok(is_last)
    }
}

/// Results of one answer, told one by one.
#[derive(Debug, Default)]
struct Parts {
    /// Those that have ended, where there are several.
    ended: Vec<Part>,
    /// Columns of the one under way, where rows are kept.
    columns: u32,
    /// Rows that were counted and kept before it.
    rows_before: u64,
    kept_before: usize,
}

impl Parts {
    /// A result has ended; the only one of an answer is not told.
    fn end(&mut self, part: Part, is_last: bool) -> Result<(), WireError> {
        if is_last && self.ended.is_empty() {
            return Ok(());
        }
        if self.ended.len() >= PARTS_MAX {
            return Err(WireError::Protocol(format!("an answer of more than {PARTS_MAX} results")));
        }
        let columns = if part.returns_rows { self.columns } else { 0 };
        self.ended.push(Part { columns, first_row: self.kept_before, ..part });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
