//! Rows that are kept as the server sent them.

/// Rows kept of one result, behind each other as the server sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Row packets.
    pub bytes: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<usize>,
    /// Columns of each.
    pub columns: u32,
    /// How a row holds its columns.
    pub form: Form,
}

/// One of several results that a server gave to one statement, as to the call of a procedure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Whether it is a result set, even an empty one.
    pub returns_rows: bool,
    /// Rows in it, or rows changed where it is none.
    pub rows: u64,
    /// Columns of its rows, where they are kept.
    pub columns: u32,
    /// The first of its rows among those that are kept; they end where the next part's begin.
    pub first_row: usize,
}

/// How a row holds its columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// MySQL's text protocol: each after its length.
    #[default]
    LengthEncoded,
    /// PostgreSQL's DataRow: their number, then each after its length.
    Counted,
}

impl Rows {
    /// Row `index`, as it was sent.
    pub fn row(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? };
        self.bytes.get(start..*self.ends.get(index)?)
    }

    /// Hands each column of `row` with its number, from 0, to `take`; `None` is NULL. Ends where the row is cut short.
    pub fn each_column(&self, row: &[u8], take: impl FnMut((usize, Option<&[u8]>))) {
        let count = self.columns as usize;
        match self.form {
            Form::LengthEncoded => columns(row).take(count).enumerate().for_each(take),
            Form::Counted => counted_columns(row).take(count).enumerate().for_each(take),
        }
    }

    /// Forgets the rows; keeps the memory unless it is much.
    pub fn clear(&mut self) {
        const KEEP: usize = 64 << 10;
        self.bytes.clear();
        self.ends.clear();
        self.bytes.shrink_to(KEEP);
        self.ends.shrink_to(KEEP / 8);
        self.columns = 0;
    }
}

/// The columns of a kept row of the text protocol; `None` is NULL. Ends where the row is cut short.
fn columns(row: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = row;
    std::iter::from_fn(move || {
        let (&first, after) = rest.split_first()?;
        let (bytes, length) = match first {
            0xfb => {
                rest = after;
                return Some(None);
            }
            0xfc => (2, 0),
            0xfd => (3, 0),
            0xfe => (8, 0),
            0xff => return None,
            length => (0, usize::from(length)),
        };
        let (size, after) = after.split_at_checked(bytes)?;
        let length = size.iter().rev().fold(length, |value, &byte| value << 8 | usize::from(byte));
        let (column, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(column))
    })
}

/// The columns of PostgreSQL's DataRow; `None` is NULL. Ends where the row is cut short.
pub fn counted_columns(payload: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
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
