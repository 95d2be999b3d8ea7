//! The slow query log of MySQL and MariaDB.
//!
//! An entry consists of lines that begin with `#`, optional statements `use` and `SET timestamp`, and the statement up
//! to a semicolon.

use std::io::BufRead;

use super::entry::{Entry, Fact, each_line};

#[derive(Default)]
struct SlowEntry {
    connection: u64,
    database: Option<String>,
    sql: String,
    /// Whether the lines that begin with `#` have ended.
    in_body: bool,
    closed: bool,
}

/// Passes every entry to `take`.
pub(super) fn read(input: impl BufRead, take: &mut impl FnMut(Entry<'_>)) -> std::io::Result<()> {
    let mut current: Option<SlowEntry> = None;
    each_line(input, |line| {
        let begins = line.starts_with("# Time: ") || line.starts_with("# User@Host: ");
        if begins && current.as_ref().is_none_or(|current| current.in_body) {
            flush(current.replace(SlowEntry::default()), take);
        }
        // A server that reopens the file writes three header lines again.
        if line.ends_with("started with:") && line.contains(", Version: ") {
            flush(current.take(), take);
        }
        let Some(current) = &mut current else { return };
        if !current.in_body && line.starts_with('#') {
            current.header(line);
        } else {
            current.body(line);
        }
    })?;
    flush(current, take);
    Ok(())
}

impl SlowEntry {
    fn header(&mut self, line: &str) {
        let after = |word: &str| {
            let rest = line.split_once(word)?.1.trim_start();
            Some(rest.split([' ', '\t']).next().unwrap_or(rest))
        };
        let id = if line.starts_with("# User@Host: ") { after("  Id:") } else { after("# Thread_id: ") };
        if let Some(connection) = id.and_then(|id| id.parse().ok()) {
            self.connection = connection;
        }
        if let Some(name) = after(" Schema: ").filter(|name| !name.is_empty()) {
            self.database = Some(name.into());
        }
        if line.starts_with("# administrator command: ") {
            self.in_body = true;
            self.closed = line.contains(": Quit");
        }
    }

    fn body(&mut self, line: &str) {
        if line.starts_with("# administrator command: ") {
            self.closed = line.contains(": Quit");
            return;
        }
        if !std::mem::replace(&mut self.in_body, true) || self.sql.is_empty() {
            if let Some(name) = line.strip_prefix("use ").and_then(|rest| rest.strip_suffix(';')) {
                self.database = Some(name.trim_matches('`').into());
                return;
            }
            if line.starts_with("SET timestamp=") && line.ends_with(';') {
                return;
            }
        } else {
            self.sql.push('\n');
        }
        self.sql.push_str(line);
    }
}

fn flush(current: Option<SlowEntry>, take: &mut impl FnMut(Entry<'_>)) {
    let Some(SlowEntry { connection, database, sql, closed, .. }) = current else { return };
    if let Some(name) = &database {
        take(Entry { connection, fact: Fact::Database(name) });
    }
    let sql = sql.trim_end();
    let sql = sql.strip_suffix(';').unwrap_or(sql);
    if !sql.is_empty() {
        take(Entry { connection, fact: Fact::Statement(sql) });
    }
    if closed {
        take(Entry { connection, fact: Fact::Closed });
    }
}
