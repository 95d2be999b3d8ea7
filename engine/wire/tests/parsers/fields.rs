//! The inside of packets: an error's words, and the columns of a row.
//!
//! Input: the payload of a packet.

use dbdyno_wire::WireError;
use dbdyno_wire::mysql::skim::{server_error, text_row};

/// Reads the input as an error packet and as a row.
///
/// # Panics
/// When a server's words could drive a terminal or are long, or when a row gives back more than it holds.
pub fn check(payload: &[u8]) {
    if let WireError::Server { state, message, .. } = server_error(payload) {
        for words in [state, message] {
            assert!(words.chars().count() <= 512);
            assert!(!words.chars().any(char::is_control), "{words:?}");
        }
    }
    if let Ok(columns) = text_row(payload) {
        assert!(columns.len() <= 4096);
        let bytes: usize = columns.iter().flatten().map(String::len).sum();
        // A byte that is no UTF-8 becomes a replacement character of three bytes.
        assert!(bytes <= 3 * payload.len());
        assert!(columns.iter().filter(|column| column.is_none()).count() <= payload.len());
    }
}
