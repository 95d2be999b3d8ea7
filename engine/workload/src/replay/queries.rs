//! Reads a file of SQL statements, which end at semicolons outside quotes and comments.

use std::io::BufRead;

use dbdyno_schema::placeholders::{Quoting, quoted_or_comment_length};

use super::entry::{LogAction, LogEntry};

/// Passes every statement to `on_entry`, as if one connection had sent them all.
pub(super) fn read(
    mut input: impl BufRead,
    quoting: Quoting,
    on_entry: &mut impl FnMut(LogEntry<'_>),
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut begin, mut at) = (0, 0);
    let mut send = |sql: &str| on_entry(LogEntry { connection: 0, action: LogAction::Statement(sql) });
    while at < text.len() {
        match quoted_or_comment_length(&text, at, quoting) {
            0 if text.as_bytes()[at] == b';' => {
                send(&text[begin..at]);
                at += 1;
                begin = at;
            }
            0 => at += 1,
            length => at += length,
        }
    }
    send(&text[begin..]);
    Ok(())
}
