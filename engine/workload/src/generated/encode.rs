//! Encodings of values: a field in the text format of LOAD DATA and COPY, or a literal in an INSERT. The text formats of
//! MySQL and PostgreSQL are the same for the escapes used here.

use std::io::Write;

/// The encoding of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    /// A field of a line: tabs separate fields, newlines separate lines, and a backslash escapes.
    Line,
    /// A literal for MySQL and MariaDB.
    Mysql,
    /// A literal for PostgreSQL.
    Postgresql,
}

/// Appends NULL.
#[inline]
pub(super) fn push_null(out: &mut Vec<u8>, encoding: Encoding) {
    out.extend_from_slice(if encoding == Encoding::Line { b"\\N" } else { b"NULL" });
}

/// Appends the text that `write` writes, in quotes for a literal. The text must not contain characters to escape.
#[inline]
pub(super) fn push_plain(out: &mut Vec<u8>, encoding: Encoding, write: impl FnOnce(&mut Vec<u8>)) {
    if encoding == Encoding::Line {
        return write(out);
    }
    out.push(b'\'');
    write(out);
    out.push(b'\'');
}

/// Appends any text.
pub(super) fn push_text(out: &mut Vec<u8>, encoding: Encoding, text: &[u8]) {
    match encoding {
        Encoding::Line => push_escaped(out, text),
        // The meaning of a backslash depends on the session's settings; that of a hexadecimal literal does not.
        Encoding::Mysql if text.contains(&b'\\') => {
            out.extend_from_slice(b"_utf8mb4 x'");
            for byte in text {
                write!(out, "{byte:02x}").expect("writing to a Vec cannot fail");
            }
            out.push(b'\'');
        }
        Encoding::Postgresql if text.contains(&b'\\') => {
            out.extend_from_slice(b"E'");
            push_doubled(out, text, b"'\\");
            out.push(b'\'');
        }
        Encoding::Mysql | Encoding::Postgresql => {
            out.push(b'\'');
            push_doubled(out, text, b"'");
            out.push(b'\'');
        }
    }
}

/// Whether the text needs no escapes in any of the encodings.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['\t', '\n', '\r', '\\', '\'', '\0'])
}

fn push_escaped(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        match byte {
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\\' => out.extend_from_slice(b"\\\\"),
            byte => out.push(byte),
        }
    }
}

fn push_doubled(out: &mut Vec<u8>, text: &[u8], special: &[u8]) {
    for &byte in text {
        if special.contains(&byte) {
            out.push(byte);
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(encoding: Encoding, value: &str) -> String {
        let mut out = Vec::new();
        push_text(&mut out, encoding, value.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn special_characters_are_escaped() {
        assert_eq!(written(Encoding::Line, "a\tb\nc\r\\N'é"), "a\\tb\\nc\\r\\\\N'é");
        assert_eq!(written(Encoding::Mysql, "it's"), "'it''s'");
        assert_eq!(written(Encoding::Mysql, "a\\'"), "_utf8mb4 x'615c27'");
        assert_eq!(written(Encoding::Postgresql, "it's \\"), "E'it''s \\\\'");
        assert_eq!(written(Encoding::Postgresql, "it's"), "'it''s'");
    }
}
