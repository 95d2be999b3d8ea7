//! A server's words, which nobody trusts.

/// Most characters of a server's own words that are passed on. A real message of MySQL has at most 512 bytes.
pub(crate) const WORDS_MAX: usize = 512;

/// A server's words for people: of bounded length, and without control characters, which a terminal would obey.
pub fn words(bytes: &[u8]) -> String {
    // A character has at most four bytes; what lies beyond the bound need not be looked at.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * WORDS_MAX)]);
    text.chars().take(WORDS_MAX).map(|c| if is_visible(c) { c } else { ' ' }).collect()
}

/// Control characters drive terminals; format characters (U+202E, say) turn the order of letters around.
fn is_visible(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
