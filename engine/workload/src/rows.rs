//! Rows of an OLTP table as text: lines for LOAD DATA, or values of an INSERT.
//!
//! The content of a row depends only on (seed, table, id), not on the number of streams or the format.

use dbdyno_random::key::Keys;
use dbdyno_random::row::row;
use dbdyno_schema::plan::Distribution;

use crate::tables::BulkRows;

/// Bytes of one INSERT statement.
const INSERT_BYTES: usize = 512 * 1024;
/// Upper bound for the bytes of a row: two numbers of 20 digits, 119 and 59 characters, and separators.
const ROW_BYTES: usize = 256;

/// A range of a table's rows, generated one by one.
#[derive(Clone, Debug)]
pub struct Rows {
    seed: u64,
    table: u32,
    /// Distribution of column k.
    keys: Keys,
    next: u64,
    last: u64,
    format: BulkFormat,
    /// Whether the header of the binary format has been written.
    has_header: bool,
}

/// Format of rows in bulk statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkFormat {
    /// Lines for LOAD DATA.
    Lines,
    /// PostgreSQL's binary COPY format, with 32-bit numbers.
    Binary,
    /// PostgreSQL's binary COPY format, with 64-bit numbers.
    WideBinary,
}

/// Header of the binary format: signature, no flags, no extension. The trailer of the data is a row with -1 columns.
const BINARY_BEGIN: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
const BINARY_END: [u8; 2] = (-1i16).to_be_bytes();

impl Rows {
    /// Rows `first` to `last`, inclusive, of a table with `count` rows, with this distribution of column k.
    pub(crate) fn new(
        seed: u64,
        table: u32,
        (count, keys): (u64, &Distribution),
        first: u64,
        last: u64,
    ) -> Self {
        Self {
            seed,
            table,
            keys: Keys::new(keys, 1, count.max(1)),
            next: first,
            last,
            format: BulkFormat::Lines,
            has_header: false,
        }
    }

    pub(crate) fn with_format(self, format: BulkFormat) -> Self {
        Self { format, ..self }
    }

    fn write_binary(&mut self, out: &mut Vec<u8>, bytes: usize, number: impl Fn(&mut Vec<u8>, u64)) -> bool {
        let end = out.len() + bytes - ROW_BYTES;
        if !std::mem::replace(&mut self.has_header, true) {
            out.extend_from_slice(BINARY_BEGIN);
        }
        while self.next <= self.last && out.len() <= end {
            let row = row(self.seed, self.table, self.next, &self.keys);
            out.reserve(ROW_BYTES);
            out.extend_from_slice(&4i16.to_be_bytes());
            number(out, self.next);
            number(out, row.k);
            push_field(out, &row.c);
            push_field(out, &row.pad);
            self.next += 1;
        }
        let more = self.next <= self.last;
        if !more {
            out.extend_from_slice(&BINARY_END);
        }
        more
    }

    /// Number of rows not written yet.
    pub fn remaining(&self) -> u64 {
        (self.last + 1).saturating_sub(self.next)
    }

    /// Appends rows as lines for LOAD DATA, at most `bytes` bytes. Returns whether there are more.
    pub fn write_lines(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        let end = out.len() + bytes - ROW_BYTES;
        while self.next <= self.last && out.len() <= end {
            self.write_row(out, [b"", b",", b",", b";"]);
        }
        self.next <= self.last
    }

    /// Writes the next row with these separators: before id, before c, between c and pad, and after pad.
    #[inline]
    fn write_row(&mut self, out: &mut Vec<u8>, [begin, before, between, end]: [&[u8]; 4]) {
        let mut number = itoa::Buffer::new();
        out.reserve(ROW_BYTES);
        out.extend_from_slice(begin);
        out.extend_from_slice(number.format(self.next).as_bytes());
        self.write_row_without_id(out, [b",", before, between, end]);
    }

    /// Writes the next row without its id, for which AUTO_INCREMENT provides the value.
    #[inline]
    fn write_row_without_id(&mut self, out: &mut Vec<u8>, [begin, before, between, end]: [&[u8]; 4]) {
        let row = row(self.seed, self.table, self.next, &self.keys);
        let mut number = itoa::Buffer::new();
        out.extend_from_slice(begin);
        out.extend_from_slice(number.format(row.k).as_bytes());
        out.extend_from_slice(before);
        out.extend_from_slice(&row.c);
        out.extend_from_slice(between);
        out.extend_from_slice(&row.pad);
        out.extend_from_slice(end);
        self.next += 1;
    }
}

impl BulkRows for Rows {
    fn write_bulk(&mut self, out: &mut Vec<u8>, bytes: usize) -> bool {
        match self.format {
            BulkFormat::Lines => self.write_lines(out, bytes),
            BulkFormat::Binary => {
                self.write_binary(out, bytes, |out, number| push_field(out, &(number as i32).to_be_bytes()))
            }
            BulkFormat::WideBinary => {
                self.write_binary(out, bytes, |out, number| push_field(out, &(number as i64).to_be_bytes()))
            }
        }
    }

    fn write_values(&mut self, out: &mut Vec<u8>, ids: bool) -> u64 {
        let first = self.next;
        let end = INSERT_BYTES - ROW_BYTES;
        while self.next <= self.last && out.len() <= end {
            let begin: &[u8] = if self.next == first { b"(" } else { b",(" };
            if ids {
                self.write_row(out, [begin, b",'", b"','", b"')"]);
            } else {
                self.write_row_without_id(out, [begin, b",'", b"','", b"')"]);
            }
        }
        self.next - first
    }
}

#[inline]
fn push_field(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&(value.len() as u32).to_be_bytes());
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 6000;

    fn rows(first: u64, last: u64) -> Rows {
        Rows::new(1, 1, (COUNT, &Distribution::Uniform), first, last)
    }

    fn all_lines(mut rows: Rows, bytes: usize) -> String {
        let mut out = Vec::new();
        loop {
            let begin = out.len();
            let more = rows.write_lines(&mut out, bytes);
            assert!(out.len() - begin <= bytes);
            if !more {
                return String::from_utf8(out).unwrap();
            }
        }
    }

    #[test]
    fn lines_do_not_depend_on_the_buffer_size() {
        let whole = all_lines(rows(1, COUNT), 4 << 20);
        assert_eq!(all_lines(rows(1, COUNT), 64 * 1024), whole);
        assert_eq!(all_lines(rows(1, 2500), 300) + &all_lines(rows(2501, COUNT), 1000), whole);
        assert_eq!(whole.matches(';').count() as u64, COUNT);
        assert!(whole.starts_with("1,5331,"), "{}", &whole[..40]);
    }

    #[test]
    fn inserts_and_lines_contain_the_same_rows() {
        let (mut values, mut left) = (Vec::new(), rows(5, 7));
        assert_eq!((left.write_values(&mut values, true), left.remaining()), (3, 0));
        let values = String::from_utf8(values).unwrap();
        let lines: Vec<String> =
            all_lines(rows(5, 7), 1000).replace(';', ")").split_inclusive(')').map(Into::into).collect();
        let as_lines = values.replace(['\'', '('], "").replace("),", ")");
        assert_eq!(as_lines, lines.concat());
    }

    /// The fields of rows in the binary format, numbers as text.
    fn decode_binary(mut bytes: &[u8]) -> String {
        let mut text = String::new();
        bytes = bytes.strip_prefix(BINARY_BEGIN).unwrap();
        while bytes != BINARY_END {
            bytes = bytes.strip_prefix(&4i16.to_be_bytes()).unwrap();
            for column in 0..4 {
                let (length, rest) = bytes.split_first_chunk().unwrap();
                let (value, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
                bytes = rest;
                text += &match (column, value.len()) {
                    (0 | 1, 4) => i32::from_be_bytes(value.try_into().unwrap()).to_string(),
                    (0 | 1, 8) => i64::from_be_bytes(value.try_into().unwrap()).to_string(),
                    _ => String::from_utf8(value.to_vec()).unwrap(),
                };
                text += if column == 3 { ";" } else { "," };
            }
        }
        text
    }

    #[test]
    fn binary_rows_and_lines_contain_the_same_values() {
        let lines = all_lines(rows(1, 500), 4 << 20);
        for format in [BulkFormat::Binary, BulkFormat::WideBinary] {
            let (mut left, mut out) = (rows(1, 500).with_format(format), Vec::new());
            loop {
                let begin = out.len();
                let more = left.write_bulk(&mut out, 1000);
                assert!(out.len() - begin <= 1000);
                if !more {
                    break;
                }
            }
            assert_eq!(decode_binary(&out), lines);
        }
    }

    #[test]
    fn rows_without_ids_have_the_same_other_columns() {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        rows(5, 7).write_values(&mut with, true);
        rows(5, 7).write_values(&mut without, false);
        let with = ["(5,", "(6,", "(7,"]
            .iter()
            .fold(String::from_utf8(with).unwrap(), |text, id| text.replace(id, "("));
        assert_eq!(String::from_utf8(without).unwrap(), with);
    }

    #[test]
    fn inserts_cover_every_row_once() {
        let (mut rows, mut counts) = (rows(1, COUNT), Vec::new());
        while rows.remaining() > 0 {
            let mut sql = Vec::new();
            let count = rows.write_values(&mut sql, true);
            assert!(sql.len() <= INSERT_BYTES);
            assert_eq!(sql.iter().filter(|&&byte| byte == b'(').count() as u64, count);
            counts.push(count);
        }
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (3, COUNT));
    }

    #[test]
    fn ids_beyond_32_bits_are_written_whole() {
        let first = (1 << 33) - 1;
        let text = all_lines(Rows::new(1, 1, (1 << 34, &Distribution::Uniform), first, first + 2), 4096);
        let ids: Vec<&str> =
            text.trim_end_matches(';').split(';').map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(ids, ["8589934591", "8589934592", "8589934593"]);
    }
}
