//! The common representation of log entries, and a reader of lines.

use std::io::BufRead;

/// One event of a recorded connection.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// Number of the connection in the log.
    pub(super) connection: u64,
    pub(super) fact: Fact<'a>,
}

#[derive(Debug)]
pub(super) enum Fact<'a> {
    /// The connection changed to this database.
    Database(&'a str),
    /// The connection sent this statement.
    Statement(&'a str),
    /// The connection was closed or reset.
    Closed,
}

/// Passes every line, without its line break, to `take`. Invalid UTF-8 becomes the replacement character.
pub(super) fn each_line(mut input: impl BufRead, mut take: impl FnMut(&str)) -> std::io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        take(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}
