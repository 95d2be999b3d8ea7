//! Sanitising of server messages, which can contain any bytes.

/// Maximum characters of a server message; the rest is cut off. MySQL's own messages have at most 512 bytes.
pub(crate) const CHARS_MAX: usize = 512;

/// A server message with limited length and without control characters, which could control a terminal.
pub fn sanitize(bytes: &[u8]) -> String {
    // A character has at most four bytes.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * CHARS_MAX)]);
    text.chars().take(CHARS_MAX).map(|c| if is_visible(c) { c } else { ' ' }).collect()
}

/// Control characters control terminals, and format characters (such as U+202E) reverse the order of letters.
fn is_visible(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_short_and_harmless() {
        assert_eq!(
            sanitize("Zugriff f\u{fc}r 'a'@'b' verweigert".as_bytes()),
            "Zugriff für 'a'@'b' verweigert"
        );
        assert_eq!(sanitize(b"a\x1b[2J\r\nb\x7f\xc2\x9bc"), "a [2J  b  c");
        assert_eq!(sanitize("\u{202e}gpj.exe".as_bytes()), " gpj.exe");
        assert_eq!(sanitize(&[b'x'; 4000]).len(), CHARS_MAX);
        assert_eq!(sanitize("\u{1f600}".repeat(4000).as_bytes()).chars().count(), CHARS_MAX);
    }
}
