//! Reads the contents of messages: errors and command tags. It trusts no length in them.

use crate::WireError;
use crate::server_message::sanitize;

/// Reads the payload of an ErrorResponse, whose fields consist of a byte and a string. The payload may be truncated.
pub fn server_error(payload: &[u8]) -> WireError {
    let (mut state, mut message, mut severity) = (b"XX000".as_slice(), b"".as_slice(), b"".as_slice());
    let mut rest = payload;
    while let [kind, after @ ..] = rest {
        if *kind == 0 {
            break;
        }
        let end = after.iter().position(|&byte| byte == 0).unwrap_or(after.len());
        let value = &after[..end];
        match kind {
            b'C' => state = value,
            b'M' => message = value,
            // 'V' is the severity that is never translated. Servers before 9.6 send only 'S', the translated one; it
            // comes first.
            b'S' | b'V' => severity = value,
            _ => {}
        }
        rest = after.get(end + 1..).unwrap_or_default();
    }
    let state = if is_state(state) { sanitize(state) } else { "XX000".to_owned() };
    let is_fatal = matches!(severity, b"FATAL" | b"PANIC");
    WireError::Server { code: 0, state, message: sanitize(message), is_fatal }
}

fn is_state(state: &[u8]) -> bool {
    state.len() == 5 && state.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// The number of rows in a command tag: the number at its end, as in "UPDATE 3" and "INSERT 0 1"; 0 if there is none.
#[inline]
pub fn tag_rows(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
    let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == tag.len() || (digits > 0 && tag[tag.len() - digits - 1] != b' ') {
        return 0;
    }
    tag[tag.len() - digits..]
        .iter()
        .fold(0u64, |sum, byte| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_a_state_and_a_message() {
        let payload = b"SFATAL\0VFATAL\0C57P01\0Mterminating \x1b[2Jconnection\0Fpostgres.c\0\0";
        let error = server_error(payload);
        let message = "terminating  [2Jconnection".to_owned();
        assert_eq!(error, WireError::Server { code: 0, state: "57P01".into(), message, is_fatal: true });
        assert_eq!(error.to_string(), "the server answered with error 57P01: terminating  [2Jconnection");
        for length in 0..payload.len() {
            server_error(&payload[..length]);
        }
        assert_eq!(server_error(b"Cx\x1b\0\0").state(), Some("XX000"));
    }

    #[test]
    fn tags_contain_row_counts() {
        let cases: [(&[u8], u64); 6] = [
            (b"INSERT 0 1\0", 1),
            (b"UPDATE 30\0", 30),
            (b"BEGIN\0", 0),
            (b"CREATE TABLE\0", 0),
            (b"123\0", 0),
            (b"X 99999999999999999999999\0", u64::MAX),
        ];
        for (tag, rows) in cases {
            assert_eq!(tag_rows(tag), rows, "{}", String::from_utf8_lossy(tag));
        }
    }
}
