//! Normalises statements: a number, a string, or a list of them becomes `?`, and white space becomes a single space.

use dbdyno_schema::placeholders::{Quoting, quoted_or_comment_length};

/// Returns the normalised text, which is the same for statements that differ only in values.
pub(super) fn normalize(sql: &str, quoting: Quoting) -> String {
    let mut out = String::with_capacity(sql.len().min(1024));
    let (bytes, mut at) = (sql.as_bytes(), 0);
    while at < bytes.len() {
        let byte = bytes[at];
        let skipped = quoted_or_comment_length(sql, at, quoting);
        if skipped > 0 {
            match byte {
                b'\'' => push_placeholder(&mut out),
                b'"' if quoting == Quoting::Mysql => push_placeholder(&mut out),
                b'`' | b'"' => out.push_str(&sql[at..at + skipped]),
                b'$' => push_placeholder(&mut out),
                _ => push_space(&mut out), // A comment.
            }
            at += skipped;
        } else if byte.is_ascii_whitespace() {
            push_space(&mut out);
            at += 1;
        } else if byte.is_ascii_digit() && !out.ends_with(is_name_char) {
            let length = number_length(&bytes[at..]);
            push_placeholder(&mut out);
            at += length;
        } else {
            let width = sql[at..].chars().next().map_or(1, char::len_utf8);
            out.push_str(&sql[at..at + width]);
            at += width;
        }
    }
    out.truncate(out.trim_end().len());
    out
}

fn is_name_char(char: char) -> bool {
    char.is_alphanumeric() || "_$@.".contains(char)
}

fn push_space(out: &mut String) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
}

/// Number of bytes of the number that begins here.
fn number_length(bytes: &[u8]) -> usize {
    let mut at = 0;
    while at < bytes.len() {
        let exponent =
            matches!(bytes[at], b'+' | b'-') && matches!(bytes[at - 1], b'e' | b'E') && bytes[1] != b'x';
        if !(bytes[at].is_ascii_alphanumeric() || bytes[at] == b'.' || exponent) {
            break;
        }
        at += 1;
    }
    at
}

/// Appends a `?`, unless the text already ends with a list of them: `(?, ?, ?)` becomes `(?)`.
fn push_placeholder(out: &mut String) {
    let before = out.trim_end();
    // A string with a doubled quote counts as two adjacent strings.
    if before.len() == out.len() && before.ends_with('?') {
        return;
    }
    if let Some(list) = before.strip_suffix(',') {
        let list = list.trim_end();
        if list.ends_with('?') {
            let length = list.len();
            out.truncate(length);
            return;
        }
    }
    out.push('?');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out() {
        for (sql, expected) in [
            ("SELECT  c FROM sbtest1\n WHERE id=1234", "SELECT c FROM sbtest1 WHERE id=?"),
            ("SELECT 'it''s', \"x\", 1.5e-3 /* 7 */ + 0xff", "SELECT ? + ?"),
            ("SELECT * FROM t WHERE id IN (1, 2,3)", "SELECT * FROM t WHERE id IN (?)"),
            ("INSERT INTO t2 (a, b) VALUES (1,'x')", "INSERT INTO t2 (a, b) VALUES (?)"),
            ("SELECT `a1`, t1.c2 FROM t1 WHERE a=-1 -- why\n", "SELECT `a1`, t1.c2 FROM t1 WHERE a=-?"),
            ("SELECT é1, 'é' FROM t", "SELECT é1, ? FROM t"),
            ("SELECT 1", "SELECT ?"),
            ("", ""),
        ] {
            assert_eq!(normalize(sql, Quoting::Mysql), expected, "{sql}");
        }
        assert_eq!(normalize("SELECT \"a1\", $$x$$", Quoting::Postgresql), "SELECT \"a1\", ?");
    }
}
