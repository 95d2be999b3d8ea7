//! Reads the server's first packet. The reader trusts no length in the packet.
//!
//! Source: "Protocol::HandshakeV10" in the MySQL internals manual.

use mysql_common::constants::CapabilityFlags;

use crate::WireError;
use crate::mysql::fields::Cursor;

/// Version of the protocol, the same for every server since MySQL 3.21.
const PROTOCOL: u8 = 10;
/// Number of challenge bytes that precede the capabilities. At least twelve bytes and a zero follow the capabilities.
const FIRST_PART: usize = 8;
const SECOND_PART_MIN: usize = 13;

#[derive(Debug, PartialEq)]
pub(super) struct Greeting<'a> {
    pub(super) version: &'a [u8],
    /// The server's number of this connection.
    pub(super) id: u32,
    pub(super) capabilities: CapabilityFlags,
    /// The challenge, without the terminating zero.
    pub(super) challenge: Vec<u8>,
    /// The server's default authentication method; may be empty.
    pub(super) plugin: &'a [u8],
}

impl<'a> Greeting<'a> {
    /// Reads the payload of the first packet.
    ///
    /// # Errors
    /// [`WireError::Protocol`] if the payload is not such a packet.
    pub(super) fn read(payload: &'a [u8]) -> Result<Self, WireError> {
        let Some((&PROTOCOL, rest)) = payload.split_first() else {
            let version = payload.first().map_or_else(|| "nothing".into(), u8::to_string);
            return Err(WireError::Protocol(format!(
                "a greeting of protocol version {version} instead of {PROTOCOL}"
            )));
        };
        Self::read_fields(rest).map_err(|_| WireError::Protocol("a truncated greeting".into()))
    }

    fn read_fields(rest: &'a [u8]) -> Result<Self, WireError> {
        let end = rest.iter().position(|&byte| byte == 0).unwrap_or(rest.len());
        let mut cursor = Cursor(rest);
        let version = cursor.bytes(end)?;
        cursor.bytes(1)?; // Terminating zero.
        let id = u32::from(cursor.u16()?) | u32::from(cursor.u16()?) << 16;
        let mut challenge = cursor.bytes(FIRST_PART)?.to_vec();
        cursor.bytes(1)?;
        let low = cursor.u16()?;
        cursor.bytes(1 + 2)?; // Collation, status.
        let high = cursor.u16()?;
        let capabilities = CapabilityFlags::from_bits_truncate(u32::from(high) << 16 | u32::from(low));
        let length = usize::from(cursor.bytes(1)?[0]);
        cursor.bytes(10)?;
        if capabilities.contains(CapabilityFlags::CLIENT_SECURE_CONNECTION) {
            let second = cursor.bytes(SECOND_PART_MIN.max(length.saturating_sub(FIRST_PART)))?;
            challenge.extend_from_slice(second.strip_suffix(b"\0").unwrap_or(second));
        }
        let named = capabilities.contains(CapabilityFlags::CLIENT_PLUGIN_AUTH);
        let name = if named { cursor.0 } else { b"" };
        // Some servers omit the zero at the end.
        let plugin = name.strip_suffix(b"\0").unwrap_or(name);
        Ok(Self { version, id, capabilities, challenge, plugin })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The greeting of MariaDB 10.11.
    const MARIADB: &[u8] = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81\x15\
        \0\0\0\0\0\0\x1d\0\0\0ijklmnopqrst\0mysql_native_password\0";

    #[test]
    fn a_greeting_is_read() {
        let greeting = Greeting::read(MARIADB).unwrap();
        assert_eq!(greeting.version, b"5.5.5-10.11.6-MariaDB");
        assert_eq!(greeting.id, 7);
        assert_eq!(greeting.challenge, b"abcdefghijklmnopqrst");
        assert_eq!(greeting.plugin, b"mysql_native_password");
        assert!(greeting.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF));
        let without_zero = Greeting::read(&MARIADB[..MARIADB.len() - 1]).unwrap();
        assert_eq!(without_zero, greeting);
    }

    #[test]
    fn a_truncated_greeting_is_an_error() {
        let names = MARIADB.len() - b"mysql_native_password\0".len();
        for length in 0..names {
            assert!(matches!(Greeting::read(&MARIADB[..length]), Err(WireError::Protocol(_))), "{length}");
        }
        assert_eq!(Greeting::read(&MARIADB[..names]).unwrap().plugin, b"");
    }

    #[test]
    fn no_length_of_the_challenge_is_trusted() {
        let offset = b"\x0a5.5.5-10.11.6-MariaDB\0\x07\0\0\0abcdefgh\0\xfe\xf7\x2d\x02\0\xff\x81".len();
        for length in 0..=u8::MAX {
            let mut payload = MARIADB.to_vec();
            payload[offset] = length;
            let fits = usize::from(length) <= 8 + 13 + b"mysql_native_password\0".len();
            assert_eq!(Greeting::read(&payload).is_ok(), fits, "{length}");
        }
    }
}
