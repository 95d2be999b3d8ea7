//! How a value is written: as a field of LOAD DATA and of COPY's text form, which agree in everything that is used here,
//! or as a literal of an INSERT.

use std::io::Write;

/// Where a value goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A field of a line: tabs between fields, a newline after the last, a backslash escapes.
    Line,
    /// A literal for MySQL and MariaDB.
    Mysql,
    /// A literal for PostgreSQL.
    Postgresql,
}

/// Appends NULL.
#[inline]
pub(super) fn null(out: &mut Vec<u8>, form: Form) {
    out.extend_from_slice(if form == Form::Line { b"\\N" } else { b"NULL" });
}

/// Appends what needs quotes in a literal and nothing else: digits and what separates them, or plain letters.
#[inline]
pub(super) fn plain(out: &mut Vec<u8>, form: Form, write: impl FnOnce(&mut Vec<u8>)) {
    if form == Form::Line {
        return write(out);
    }
    out.push(b'\'');
    write(out);
    out.push(b'\'');
}

/// Appends any text.
pub(super) fn text(out: &mut Vec<u8>, form: Form, text: &[u8]) {
    match form {
        Form::Line => line(out, text),
        // What a backslash means there depends on the session's settings; hexadecimal digits do not.
        Form::Mysql if text.contains(&b'\\') => {
            out.extend_from_slice(b"_utf8mb4 x'");
            for byte in text {
                write!(out, "{byte:02x}").expect("memory takes it");
            }
            out.push(b'\'');
        }
        Form::Postgresql if text.contains(&b'\\') => {
            out.extend_from_slice(b"E'");
            doubled(out, text, b"'\\");
            out.push(b'\'');
        }
        Form::Mysql | Form::Postgresql => {
            out.push(b'\'');
            doubled(out, text, b"'");
            out.push(b'\'');
        }
    }
}

/// Whether text is the same as a field and between quotes.
pub(super) fn is_plain(text: &str) -> bool {
    !text.contains(['\t', '\n', '\r', '\\', '\'', '\0'])
}

fn line(out: &mut Vec<u8>, text: &[u8]) {
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

fn doubled(out: &mut Vec<u8>, text: &[u8], which: &[u8]) {
    for &byte in text {
        if which.contains(&byte) {
            out.push(byte);
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(form: Form, value: &str) -> String {
        let mut out = Vec::new();
        text(&mut out, form, value.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_would_end_a_value_is_escaped() {
        assert_eq!(written(Form::Line, "a\tb\nc\r\\N'é"), "a\\tb\\nc\\r\\\\N'é");
        assert_eq!(written(Form::Mysql, "it's"), "'it''s'");
        assert_eq!(written(Form::Mysql, "a\\'"), "_utf8mb4 x'615c27'");
        assert_eq!(written(Form::Postgresql, "it's \\"), "E'it''s \\\\'");
        assert_eq!(written(Form::Postgresql, "it's"), "'it''s'");
    }
}
