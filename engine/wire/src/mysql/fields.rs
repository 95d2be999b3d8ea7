//! Reads the contents of packets: numbers, strings and errors. It trusts no length in them.

use crate::WireError;
use crate::server_message::sanitize;

/// Error packet: 0xff, code, `#` and SQLSTATE, message.
pub fn server_error(payload: &[u8]) -> WireError {
    let mut cursor = Cursor(payload.get(1..).unwrap_or_default());
    let Ok(code) = cursor.u16() else {
        return WireError::Protocol("a truncated error packet".into());
    };
    let (state, message) = match cursor.0 {
        [b'#', rest @ ..] if rest.len() >= 5 => rest.split_at(5),
        rest => (b"HY000".as_slice(), rest),
    };
    WireError::Server { code, state: sanitize(state), message: sanitize(message), is_fatal: false }
}

/// Reads little-endian numbers. It fails with a protocol error, never with a panic.
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        let (head, rest) =
            self.0.split_at_checked(count).ok_or_else(|| WireError::Protocol("a truncated packet".into()))?;
        self.0 = rest;
        Ok(head)
    }

    fn number(&mut self, count: usize) -> Result<u64, WireError> {
        Ok(self.bytes(count)?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, WireError> {
        Ok(self.number(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, WireError> {
        Ok(self.number(4)? as u32)
    }

    /// A length-encoded integer.
    pub(crate) fn length_encoded(&mut self) -> Result<u64, WireError> {
        match self.number(1)? {
            0xfc => self.number(2),
            0xfd => self.number(3),
            0xfe => self.number(8),
            first @ 0..=0xfa => Ok(first),
            first => Err(WireError::Protocol(format!("0x{first:02x} instead of a length"))),
        }
    }
}
