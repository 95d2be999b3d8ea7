//! Stores result rows as the server sent them, and divides them into columns.

use crate::mysql::fields::Cursor;
use crate::{TextRow, WireError};

/// Maximum bytes of the rows of a statement outside the load; each row costs [`ROW_OVERHEAD`] in addition.
const BYTES_MAX: usize = 32 << 20;
/// Maximum bytes of the rows that a script's statement fetches. A larger result is probably a mistake, and could exhaust
/// the memory.
pub(crate) const SCRIPT_BYTES_MAX: usize = 1 << 30;
/// Memory of a row in addition to its bytes.
const ROW_OVERHEAD: usize = size_of::<Vec<u8>>() + 16;

/// The rows of one result, in one buffer as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Row packets.
    pub bytes: Vec<u8>,
    /// End offset in `bytes` of each row.
    pub ends: Vec<usize>,
    /// Number of columns in each row.
    pub columns: u32,
    /// Encoding of a row.
    pub encoding: RowEncoding,
}

/// One of the results of a statement with several results, such as CALL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultSet {
    /// Whether the result has columns; otherwise it reports the number of changed rows.
    pub returns_rows: bool,
    /// Rows returned or changed.
    pub rows: u64,
    /// Number of columns in its rows, if rows are kept.
    pub columns: u32,
    /// Index of its first row among the kept rows; its rows end where those of the next result begin.
    pub first_row: usize,
}

/// Encoding of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowEncoding {
    /// MySQL's text protocol: the length precedes each column.
    #[default]
    LengthEncoded,
    /// PostgreSQL's DataRow: the number of columns, then the length and the value of each column.
    Counted,
}

impl Rows {
    /// Row `index` as the server sent it.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(start..*self.ends.get(index)?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).filter_map(|index| self.row(index))
    }

    /// Every row as text.
    ///
    /// # Errors
    /// [`WireError::Protocol`] if the number of columns in a row differs from that of its result.
    pub(crate) fn to_text(&self) -> Result<Vec<TextRow>, WireError> {
        let text = |row| {
            let mut columns = TextRow::new();
            let count = self.columns as usize;
            self.first_columns(row, count + 1, |(_, column)| {
                columns.push(column.map(|bytes| String::from_utf8_lossy(bytes).into_owned()));
            });
            let wrong =
                || WireError::Protocol(format!("a row does not have the {count} columns of its result"));
            (columns.len() == count).then_some(columns).ok_or_else(wrong)
        };
        self.iter().map(text).collect()
    }

    /// Calls `take` with each column of `row` and its number, from 0; `None` is NULL. Stops where the row is truncated.
    pub fn for_each_column(&self, row: &[u8], take: impl FnMut((usize, Option<&[u8]>))) {
        self.first_columns(row, self.columns as usize, take);
    }

    fn first_columns(&self, row: &[u8], count: usize, take: impl FnMut((usize, Option<&[u8]>))) {
        match self.encoding {
            RowEncoding::LengthEncoded => length_encoded_columns(row).take(count).enumerate().for_each(take),
            RowEncoding::Counted => counted_columns(row).take(count).enumerate().for_each(take),
        }
    }

    /// Removes the rows. Keeps up to 64 KiB of the buffer.
    pub fn clear(&mut self) {
        const KEEP: usize = 64 << 10;
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(KEEP);
        self.ends.shrink_to(KEEP / 8);
        self.columns = 0;
    }
}

/// The rows that the reader of an answer keeps, if the caller requests them.
#[derive(Debug, Default)]
pub(crate) struct RowBuffer {
    pub(crate) rows: Option<Rows>,
    /// Bytes kept so far, including [`ROW_OVERHEAD`] for each row.
    pub(crate) bytes: usize,
    bytes_max: usize,
}

impl RowBuffer {
    /// Keeps rows in `rows`, which must be empty; at most `bytes_max` bytes.
    pub(crate) fn new(rows: Rows, bytes_max: usize) -> Self {
        Self { rows: Some(rows), bytes: 0, bytes_max }
    }

    /// Keeps the rows of a result that is expected to be short.
    pub(crate) fn for_short_result() -> Self {
        Self::new(Rows::default(), BYTES_MAX)
    }

    /// Number of bytes that still fit.
    pub(crate) fn bytes_left(&self) -> usize {
        self.bytes_max.saturating_sub(self.bytes)
    }

    /// Appends a row of `length` bytes, if rows are kept. `payload` is shorter than `length` if the row did not fit;
    /// this fails.
    pub(crate) fn push(&mut self, payload: &[u8], length: usize) -> Result<(), WireError> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        self.bytes += payload.len() + ROW_OVERHEAD;
        if self.bytes > self.bytes_max || payload.len() != length {
            return Err(self.overflow_error());
        }
        rows.bytes.extend_from_slice(payload);
        rows.ends.push(rows.bytes.len());
        Ok(())
    }

    pub(crate) fn overflow_error(&self) -> WireError {
        WireError::Protocol(format!("a result of more than {} bytes", self.bytes_max))
    }
}

/// The columns of a row of MySQL's text protocol; `None` is NULL. Stops where the row is truncated.
fn length_encoded_columns(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut cursor = Cursor(row);
    std::iter::from_fn(move || {
        if let [0xfb, rest @ ..] = cursor.0 {
            cursor.0 = rest;
            return Some(None);
        }
        let length = cursor.length_encoded().ok()?;
        cursor.bytes(usize::try_from(length).ok()?).ok().map(Some)
    })
}

/// The columns of PostgreSQL's DataRow; `None` is NULL. Stops where the row is truncated.
fn counted_columns(payload: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let (count, mut rest) = match payload {
        [high, low, rest @ ..] => (u16::from_be_bytes([*high, *low]), rest),
        _ => (0, b"".as_slice()),
    };
    (0..count).map_while(move |_| {
        let (length, after) = rest.split_first_chunk()?;
        let length = i32::from_be_bytes(*length);
        if length == -1 {
            rest = after;
            return Some(None);
        }
        let (column, after) = after.split_at_checked(usize::try_from(length).ok()?)?;
        rest = after;
        Some(Some(column))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(encoding: RowEncoding, columns: u32, row: &[u8]) -> Result<Vec<TextRow>, WireError> {
        Rows { bytes: row.to_vec(), ends: vec![row.len()], columns, encoding }.to_text()
    }

    #[test]
    fn rows_of_both_protocols_are_split_into_columns() {
        let columns = vec![Some("ab".into()), None, Some(String::new())];
        let counted = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        for (encoding, row) in
            [(RowEncoding::LengthEncoded, b"\x02ab\xfb\x00".as_slice()), (RowEncoding::Counted, counted)]
        {
            assert_eq!(text(encoding, 3, row).unwrap(), std::slice::from_ref(&columns));
            assert!(text(encoding, 2, row).is_err() && text(encoding, 4, row).is_err());
            for length in 0..row.len() {
                assert!(matches!(text(encoding, 3, &row[..length]), Err(WireError::Protocol(_))), "{length}");
            }
        }
    }
}
