//! What every kind of file is read into, and its lines.

use std::io::BufRead;

/// Something that a log tells of a recorded connection.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    /// Its number.
    pub(super) connection: u64,
    pub(super) told: Told<'a>,
}

/// What it tells.
#[derive(Debug)]
pub(super) enum Told<'a> {
    /// It is in this database from now on.
    Database(&'a str),
    /// It sent this.
    Statement(&'a str),
    /// It is closed, or as new.
    Closed,
}

/// Hands every line, without its end, to `take`. Bytes that are no UTF-8 become the replacement character.
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
