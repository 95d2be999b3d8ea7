//! Statements sent as text, with literals instead of placeholders.

use dbdyno_schema::placeholders::Quoting;

use crate::Value;

/// Appends `template` with a literal of one of `values` in place of each `?`.
///
/// # Panics
/// If there are fewer values than placeholders. The workload has checked the numbers, so this does not happen.
pub fn fill(out: &mut Vec<u8>, template: &str, values: &[Value], quoting: Quoting) {
    let mut pieces = template.split('?');
    out.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    let mut values = values.iter();
    for piece in pieces {
        match values.next().expect("a value for each placeholder") {
            Value::Null => out.extend_from_slice(b"NULL"),
            Value::Verbatim(text) => out.extend_from_slice(text),
            Value::Int(number) => out.extend_from_slice(itoa::Buffer::new().format(*number).as_bytes()),
            Value::Text(text) => quote(out, text, quoting),
        }
        out.extend_from_slice(piece.as_bytes());
    }
}

/// The statement that [`fill`] writes.
pub fn to_sql(template: &str, values: &[Value], quoting: Quoting) -> String {
    let mut sql = Vec::new();
    fill(&mut sql, template, values, quoting);
    String::from_utf8_lossy(&sql).into_owned()
}

/// Appends a string literal for a server with default settings. MySQL interprets backslash escapes; PostgreSQL does not
/// since 9.1 (standard_conforming_strings).
fn quote(out: &mut Vec<u8>, text: &[u8], quoting: Quoting) {
    out.push(b'\'');
    for &byte in text {
        match (quoting, byte) {
            (Quoting::Mysql, b'\'' | b'\\') => out.extend_from_slice(&[b'\\', byte]),
            (Quoting::Mysql, 0) => out.extend_from_slice(b"\\0"),
            (Quoting::Postgresql, b'\'') => out.extend_from_slice(b"''"),
            _ => out.push(byte),
        }
    }
    out.push(b'\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_replace_placeholders() {
        let values = [Value::Text(b"it's \\ \0".to_vec()), Value::Int(-7)];
        let template = "UPDATE t SET c=? WHERE id=?";
        let mysql = "UPDATE t SET c='it\\'s \\\\ \\0' WHERE id=-7";
        assert_eq!(to_sql(template, &values, Quoting::Mysql), mysql);
        let postgresql = "UPDATE t SET c='it''s \\ \0' WHERE id=-7";
        assert_eq!(to_sql(template, &values, Quoting::Postgresql), postgresql);
    }
}
