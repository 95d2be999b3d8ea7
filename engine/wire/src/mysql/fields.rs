//! What is inside a packet: numbers, strings, errors and rows, read without trusting a single length.

use crate::WireError;
pub use crate::words::words;

/// Most columns of a kept row; a table can have 4096.
const COLUMNS_MAX: usize = 4096;

/// Error packet: 0xff, code, `#` and SQLSTATE, message.
pub fn server_error(payload: &[u8]) -> WireError {
    let mut cursor = Cursor(payload.get(1..).unwrap_or_default());
    let Ok(code) = cursor.u16() else {
        return WireError::Protocol("an error packet that is cut short".into());
    };
    let (state, message) = match cursor.0 {
        [b'#', rest @ ..] if rest.len() >= 5 => rest.split_at(5),
        rest => (b"HY000".as_slice(), rest),
    };
    WireError::Server { code, state: words(state), message: words(message), is_fatal: false }
}

/// Splits a kept row of the text protocol into its columns.
///
/// # Errors
/// [`WireError::Protocol`] when the row is cut short or has more columns than a table can have.
pub fn text_row(payload: &[u8]) -> Result<Vec<Option<String>>, WireError> {
    let mut cursor = Cursor(payload);
    let mut columns = Vec::new();
    while let Some(first) = cursor.0.first() {
        if columns.len() == COLUMNS_MAX {
            return Err(WireError::Protocol(format!("a row of more than {COLUMNS_MAX} columns")));
        }
        if *first == 0xfb {
            cursor.0 = &cursor.0[1..];
            columns.push(None);
            continue;
        }
        let length = cursor.length()?;
        let bytes = cursor.bytes(usize::try_from(length).unwrap_or(usize::MAX))?;
        columns.push(Some(String::from_utf8_lossy(bytes).into_owned()));
    }
    Ok(columns)
}

/// Little-endian reads that end in a protocol error, never in a panic.
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) = self
            .0
            .split_at_checked(count)
            .ok_or_else(|| WireError::Protocol("a packet that is cut short".into()))?;
        self.0 = rest;
        Ok(head)
    }

    fn number(&mut self, count: usize) -> Result<u64, WireError> {
        Ok(self.bytes(count)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(super) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(self.number(2)? as u16)
    }

    pub(super) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(self.number(4)? as u32)
    }

    /// A length-encoded integer.
    pub(super) fn length(&mut self) -> Result<u64, WireError> {
        match self.number(1)? {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            first @ 0..=0xfa => Ok(first),
            first => Err(WireError::Protocol(format!("0x{first:02x} where a length is due"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::WORDS_MAX;

    #[test]
    fn text_rows_are_split_into_columns() {
        assert_eq!(text_row(b"\x02ab\xfb\x00").unwrap(), [Some("ab".into()), None, Some(String::new())]);
        assert!(text_row(b"\x05ab").is_err());
        assert_eq!(text_row(&[0xfb; COLUMNS_MAX]).unwrap().len(), COLUMNS_MAX);
        assert!(text_row(&[0xfb; COLUMNS_MAX + 1]).is_err());
    }

    #[test]
    fn words_are_short_and_harmless() {
        assert_eq!(words("Zugriff f\u{fc}r 'a'@'b' verweigert".as_bytes()), "Zugriff für 'a'@'b' verweigert");
        assert_eq!(words(b"a\x1b[2J\r\nb\x7f\xc2\x9bc"), "a [2J  b  c");
        assert_eq!(words("\u{202e}gpj.exe".as_bytes()), " gpj.exe");
        assert_eq!(words(&[b'x'; 4000]).len(), WORDS_MAX);
        assert_eq!(words("\u{1f600}".repeat(4000).as_bytes()).chars().count(), WORDS_MAX);
    }
}
