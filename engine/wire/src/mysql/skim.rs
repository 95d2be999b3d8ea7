//! Skims answers of the server: counts their rows and bytes without storing them.
//!
//! A [`Skimmer`] reads the bytes of one answer in pieces of any size and reports when the answer is complete. It stores
//! bytes only if an OK packet, an error or a column count is divided between two pieces. It skips rows and column
//! definitions by their length.
//!
//! ```text
//! Head ──OK / error──────────────────────────────────────────▶ done
//!  │ prepare OK ─▶ Definitions ─▶ done
//!  └ column count ─▶ Definitions ─▶ Rows ──end / error──▶ done, or Head when more results follow
//! ```
//! A hostile server can send any bytes: every count has a limit, and no received length sizes an allocation.

pub use super::fields::server_error;

use super::fields::Cursor;
use crate::rows::{ResultSet, RowBuffer, Rows};
use crate::{Outcome, WireError};

/// Maximum stored bytes of one packet; the rest is cut off. An error message has at most 512 bytes.
const BUFFERED_MAX: usize = 4096;
/// Maximum number of definitions: a table has at most 4096 columns, a statement at most 65535 parameters.
const DEFINITIONS_MAX: u64 = 65_535;
/// Maximum bytes of one column definition. It contains six names, which have at most 64 characters each in a real
/// server.
const DEFINITION_MAX: usize = 64 << 10;
/// Maximum number of results recorded for one answer.
const RESULT_SETS_MAX: usize = 1 << 16;

const STATUS_MORE_RESULTS: u16 = 0x0008;

/// The kind of the next answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// The answer to a query or an execution.
    #[default]
    Result,
    /// The answer to a prepare.
    Prepared,
    /// The answer to the loader's LOAD DATA LOCAL. The server's request for the data counts as a complete answer.
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// The first packet of a result.
    #[default]
    Head,
    /// `left` column definitions follow, and then `end_markers` end markers: 1, or 0 with CLIENT_DEPRECATE_EOF.
    Definitions { left: u64, end_markers: u8 },
    /// Rows follow, up to an end marker.
    Rows,
    /// The last `left` packets of the answer to a prepare follow.
    PreparedRest { left: u64 },
}

/// Reads one answer.
#[derive(Debug, Default)]
pub struct Skimmer {
    expected: ExpectedAnswer,
    /// CLIENT_DEPRECATE_EOF: no end marker follows definitions, and an OK packet ends the rows.
    deprecate_eof: bool,
    state: State,
    header: [u8; 4],
    header_length: u8,
    /// Payload bytes of the current packet that have not arrived yet.
    payload_left: usize,
    /// Length of the current packet's payload.
    payload_length: usize,
    /// Whether this packet continues the previous packet, which had the maximum length.
    is_continuation: bool,
    buffered: Vec<u8>,
    answer: Answer,
    rows: RowBuffer,
    /// Whether to keep only the rows of the first result.
    keeps_first_only: bool,
    has_first_ended: bool,
    /// The results so far, if they are recorded.
    result_sets: Option<ResultSets>,
    /// Maximum bytes of the complete answer.
    bytes_max: u64,
}

impl Skimmer {
    /// A reader for one answer.
    pub fn new(expected: ExpectedAnswer, deprecate_eof: bool) -> Self {
        Self { expected, deprecate_eof, bytes_max: u64::MAX, ..Self::default() }
    }

    /// Makes the reader fail if the answer exceeds `bytes`: for short answers outside a run, which the end of a run
    /// does not interrupt.
    pub fn limit_bytes(mut self, bytes: u64) -> Self {
        self.bytes_max = bytes;
        self
    }

    /// Keeps every row.
    pub fn keep_rows(mut self) -> Self {
        self.rows = RowBuffer::for_short_result();
        self
    }

    /// Keeps the rows of the first result, or of `all` results, in `rows`, which must be empty; at most `bytes_max`
    /// bytes.
    pub fn keep_rows_in(mut self, rows: Rows, bytes_max: usize, all: bool) -> Self {
        (self.rows, self.keeps_first_only) = (RowBuffer::new(rows, bytes_max), !all);
        self
    }

    /// The rows that were kept.
    pub fn into_rows(self) -> Rows {
        self.rows.rows.unwrap_or_default()
    }

    /// Records each result of an answer if `enabled`.
    pub fn track_result_sets(mut self, enabled: bool) -> Self {
        self.result_sets = enabled.then(ResultSets::default);
        self
    }

    /// Takes the results of an answer with several results. The list is empty if the answer had one.
    pub fn take_result_sets(&mut self) -> Vec<ResultSet> {
        self.result_sets.take().map(|results| results.ended).unwrap_or_default()
    }

    /// Reads the next bytes. Returns the answer when it is complete.
    ///
    /// # Errors
    /// The server's error, or [`WireError::Protocol`].
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
                if self.payload_length > 0 && bytes.is_empty() {
                    return Ok(None);
                }
            }
            let (piece, rest) = bytes.split_at(self.payload_left.min(bytes.len()));
            self.payload_left -= piece.len();
            bytes = rest;
            if self.feed_piece(piece)? {
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
            self.payload_length = u32::from_le_bytes([a, b, c, 0]) as usize;
            self.payload_left = self.payload_length;
            self.buffered.clear();
            let defines = matches!(self.state, State::Definitions { .. } | State::PreparedRest { .. });
            if defines && self.payload_length > DEFINITION_MAX {
                return Err(WireError::Protocol(format!(
                    "a column definition of {} bytes",
                    self.payload_length
                )));
            }
        }
        Ok(&bytes[count..])
    }

    /// Handles a piece of the current packet. Returns whether the answer is complete.
    fn feed_piece(&mut self, piece: &[u8]) -> Result<bool, WireError> {
        let complete = self.payload_left == 0;
        if complete && self.buffered.is_empty() {
            self.header_length = 0;
            return self.handle_packet(piece);
        }
        let first = self.buffered.first().or(piece.first()).copied();
        let count = piece.len().min(self.relevant_bytes(first).saturating_sub(self.buffered.len()));
        self.buffered.extend_from_slice(&piece[..count]);
        if !complete {
            return Ok(false);
        }
        self.header_length = 0;
        let buffered = std::mem::take(&mut self.buffered);
        let done = self.handle_packet(&buffered);
        self.buffered = buffered;
        self.buffered.clear();
        done
    }

    /// How many bytes of the current packet are relevant, at least one. `first` is its first byte, which is its type.
    fn relevant_bytes(&self, first: Option<u8>) -> usize {
        match self.state {
            State::Rows if self.keeps_row() => self.rows.bytes_left().max(1),
            // An error, or the end of the rows.
            State::Rows if matches!(first, Some(0xfe | 0xff)) => BUFFERED_MAX,
            State::Head => BUFFERED_MAX,
            State::Rows | State::Definitions { .. } | State::PreparedRest { .. } => 1,
        }
    }

    /// Handles a complete packet. `payload` may be only the first byte if the others are irrelevant.
    fn handle_packet(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        let continued = std::mem::replace(&mut self.is_continuation, self.payload_length == 0xff_ffff);
        if continued {
            // This packet continues a row that is longer than one packet.
            return if self.keeps_row() { Err(self.rows.overflow_error()) } else { Ok(false) };
        }
        match self.state {
            State::Head => self.handle_result_head(payload),
            State::Definitions { left, end_markers } => {
                self.state = match (left, end_markers) {
                    (0, _) | (1, 0) => State::Rows,
                    _ => State::Definitions { left: left - 1, end_markers },
                };
                Ok(false)
            }
            State::Rows => self.handle_row_or_end(payload),
            State::PreparedRest { left: 0 | 1 } => Ok(true),
            State::PreparedRest { left } => {
                self.state = State::PreparedRest { left: left - 1 };
                Ok(false)
            }
        }
    }

    fn handle_result_head(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        match payload.first() {
            None => Err(WireError::Protocol("an empty packet".into())),
            Some(0xff) => Err(server_error(payload)),
            Some(0x00) if self.expected == ExpectedAnswer::Prepared => self.handle_prepare_ok(payload),
            Some(0x00) => self.handle_ok(payload),
            // LOAD DATA is a single statement, so its request comes first. The client ignores the file name in it.
            Some(0xfb) if self.expected == ExpectedAnswer::DataRequest && !self.has_first_ended => {
                self.answer.data_requested = true;
                Ok(true)
            }
            Some(0xfb) => Err(WireError::Protocol(
                "the server asked for a local file; dbdyno never sends files that a server requests".into(),
            )),
            Some(_) => {
                let columns = Cursor(payload).length_encoded()?;
                if columns == 0 || columns > DEFINITIONS_MAX {
                    return Err(WireError::Protocol(format!("a result of {columns} columns")));
                }
                if !std::mem::replace(&mut self.answer.outcome.returns_rows, true) {
                    // Rows that an earlier result changed do not count.
                    self.answer.outcome.rows = 0;
                    if let Some(results) = &mut self.result_sets {
                        results.rows_before = 0;
                    }
                }
                if let Some(rows) = &mut self.rows.rows {
                    if rows.columns == 0 {
                        rows.columns = columns as u32;
                    }
                    if let Some(results) = &mut self.result_sets {
                        results.columns = columns as u32;
                    }
                }
                let end_markers = u8::from(!self.deprecate_eof);
                self.state = State::Definitions { left: columns, end_markers };
                Ok(false)
            }
        }
    }

    /// OK packet: 0x00, affected rows, last insert id, status flags, warnings.
    fn handle_ok(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        let mut cursor = Cursor(&payload[1..]);
        let affected = cursor.length_encoded()?;
        cursor.length_encoded()?;
        let status = cursor.u16()?;
        if !self.answer.outcome.returns_rows {
            self.answer.outcome.rows = affected;
        }
        self.end_result(status, affected)
    }

    /// Prepare OK: 0x00, statement id, columns, parameters.
    fn handle_prepare_ok(&mut self, payload: &[u8]) -> Result<bool, WireError> {
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

    fn handle_row_or_end(&mut self, payload: &[u8]) -> Result<bool, WireError> {
        match payload.first() {
            Some(0xff) => Err(server_error(payload)),
            Some(0xfe) if self.deprecate_eof && self.payload_length < 0xff_ffff => self.handle_ok(payload),
            Some(0xfe) if !self.deprecate_eof && self.payload_length < 9 => {
                let mut cursor = Cursor(&payload[1..]);
                cursor.u16()?;
                let status = cursor.u16()?;
                self.end_result(status, 0)
            }
            _ => {
                self.answer.outcome.rows += 1;
                self.keep_row(payload)?;
                Ok(false)
            }
        }
    }

    fn keep_row(&mut self, payload: &[u8]) -> Result<(), WireError> {
        if self.keeps_row() { self.rows.push(payload, self.payload_length) } else { Ok(()) }
    }

    /// Whether to keep the current row.
    fn keeps_row(&self) -> bool {
        self.rows.rows.is_some() && !(self.keeps_first_only && self.has_first_ended)
    }

    fn end_result(&mut self, status: u16, affected: u64) -> Result<bool, WireError> {
        let is_last = status & STATUS_MORE_RESULTS == 0;
        let returns_rows = self.state == State::Rows;
        self.state = State::Head;
        self.has_first_ended = true;
        let Some(results) = &mut self.result_sets else { return Ok(is_last) };
        let rows = if returns_rows { self.answer.outcome.rows - results.rows_before } else { affected };
        let buffered = self.rows.rows.as_ref().map_or(0, |rows| rows.ends.len());
        results.end(returns_rows, rows, is_last)?;
        (results.rows_before, results.kept_before) = (self.answer.outcome.rows, buffered);
        Ok(is_last)
    }
}

/// The recorded results of one answer.
#[derive(Debug, Default)]
struct ResultSets {
    /// The completed results, if there are several.
    ended: Vec<ResultSet>,
    /// Number of columns of the current result, if rows are kept.
    columns: u32,
    /// Number of rows counted before the current result.
    rows_before: u64,
    /// Number of rows kept before the current result.
    kept_before: usize,
}

impl ResultSets {
    /// Records the end of a result, unless the answer has only this result.
    fn end(&mut self, returns_rows: bool, rows: u64, is_last: bool) -> Result<(), WireError> {
        if is_last && self.ended.is_empty() {
            return Ok(());
        }
        if self.ended.len() >= RESULT_SETS_MAX {
            return Err(WireError::Protocol(format!("an answer of more than {RESULT_SETS_MAX} results")));
        }
        let columns = if returns_rows { self.columns } else { 0 };
        self.ended.push(ResultSet { returns_rows, rows, columns, first_row: self.kept_before });
        Ok(())
    }
}

#[cfg(test)]
mod tests;
