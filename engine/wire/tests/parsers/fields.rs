//! The content of packets: the message of an error, and the columns of a row.
//!
//! Input: the payload of a packet.

use dbdyno_wire::WireError;
use dbdyno_wire::mysql::skim::server_error;
use dbdyno_wire::scripted::{RowEncoding, Rows};

/// Reads the input as an error packet and as a row.
///
/// # Panics
/// If a server message is too long or has control characters, or if the columns of a row have more bytes than the row.
pub fn check(payload: &[u8]) {
    if let WireError::Server { state, message, .. } = server_error(payload) {
        for text in [state, message] {
            assert!(text.chars().count() <= 512);
            assert!(!text.chars().any(char::is_control), "{text:?}");
        }
    }
    for encoding in [RowEncoding::LengthEncoded, RowEncoding::Counted] {
        let rows = Rows { columns: u32::MAX, encoding, ..Rows::default() };
        let (mut columns, mut bytes) = (0, 0);
        rows.for_each_column(payload, |(_, column)| {
            columns += 1;
            bytes += column.map_or(0, <[u8]>::len);
        });
        assert!(columns + bytes <= payload.len());
    }
}
