//! The common representation of log entries, and a reader of lines.

use std::io::BufRead;

/// One entry of a log: what a connection did.
#[derive(Debug)]
pub(super) struct LogEntry<'a> {
    /// Number of the connection in the log.
    pub(super) connection: u64,
    pub(super) action: LogAction<'a>,
}

#[derive(Debug)]
pub(super) enum LogAction<'a> {
    /// The connection changed to this database.
    Database(&'a str),
    /// The connection sent this statement.
    Statement(&'a str),
    /// The connection was closed or reset.
    Closed,
}

/// Passes every line, without its line break, to `on_line`. Invalid UTF-8 becomes the replacement character.
pub(super) fn each_line(mut input: impl BufRead, mut on_line: impl FnMut(&str)) -> std::io::Result<()> {
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        on_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}
