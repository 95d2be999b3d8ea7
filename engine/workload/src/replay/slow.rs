//! Reads the slow query log of MySQL and MariaDB.
//!
//! An entry consists of lines that begin with `#`, optional statements `use` and `SET timestamp`, and the statement up
//! to a semicolon.

use std::io::BufRead;

use super::entry::{LogAction, LogEntry, each_line};

#[derive(Default)]
struct SlowEntry {
    connection: u64,
    database: Option<String>,
    sql: String,
    /// Whether the lines that begin with `#` have ended.
    in_body: bool,
    closed: bool,
}

/// Passes every entry to `on_entry`.
pub(super) fn read(input: impl BufRead, on_entry: &mut impl FnMut(LogEntry<'_>)) -> std::io::Result<()> {
    let mut current: Option<SlowEntry> = None;
    each_line(input, |line| {
        let begins = line.starts_with("# Time: ") || line.starts_with("# User@Host: ");
        if begins && current.as_ref().is_none_or(|current| current.in_body) {
            flush(current.replace(SlowEntry::default()), on_entry);
        }
        // A server that reopens the file writes three header lines again.
        if line.ends_with("started with:") && line.contains(", Version: ") {
            flush(current.take(), on_entry);
        }
        let Some(current) = &mut current else { return };
        if !current.in_body && line.starts_with('#') {
            current.read_header(line);
        } else {
            current.read_body(line);
        }
    })?;
    flush(current, on_entry);
    Ok(())
}

impl SlowEntry {
    fn read_header(&mut self, line: &str) {
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

    fn read_body(&mut self, line: &str) {
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

fn flush(current: Option<SlowEntry>, on_entry: &mut impl FnMut(LogEntry<'_>)) {
    let Some(SlowEntry { connection, database, sql, closed, .. }) = current else { return };
    if let Some(name) = &database {
        on_entry(LogEntry { connection, action: LogAction::Database(name) });
    }
    let sql = sql.trim_end();
    let sql = sql.strip_suffix(';').unwrap_or(sql);
    if !sql.is_empty() {
        on_entry(LogEntry { connection, action: LogAction::Statement(sql) });
    }
    if closed {
        on_entry(LogEntry { connection, action: LogAction::Closed });
    }
}
