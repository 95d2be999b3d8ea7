//! Reads PostgreSQL's log, as text or as CSV.
//!
//! PostgreSQL logs a statement as `statement: …`, or as `execute NAME: …` and its parameters in a DETAIL line. A duration
//! may precede either text. Entries for parse and bind, which `log_min_duration_statement` adds, are ignored.

use std::io::BufRead;

use dbdyno_schema::placeholders::{Quoting, quoted_or_comment_length};

use super::entry::{LogAction, LogEntry, each_line};

/// Column numbers of the CSV log.
const DATABASE: usize = 2;
const PROCESS: usize = 3;
const SEVERITY: usize = 11;
const MESSAGE: usize = 13;
const DETAIL: usize = 14;

/// Severities of messages. In the text log, the severity follows the line prefix.
const SEVERITIES: [&str; 14] = [
    "LOG",
    "DETAIL",
    "ERROR",
    "STATEMENT",
    "HINT",
    "FATAL",
    "PANIC",
    "WARNING",
    "NOTICE",
    "INFO",
    "CONTEXT",
    "QUERY",
    "LOCATION",
    "DEBUG",
];

/// Passes every entry of a CSV log to `on_entry`.
pub(super) fn read_csv(input: impl BufRead, on_entry: &mut impl FnMut(LogEntry<'_>)) -> std::io::Result<()> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(input);
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record)? {
        let text = |index: usize| String::from_utf8_lossy(record.get(index).unwrap_or_default());
        let Ok(connection) = text(PROCESS).parse() else { continue };
        if text(SEVERITY) != "LOG" {
            continue;
        }
        if !text(DATABASE).is_empty() {
            on_entry(LogEntry { connection, action: LogAction::Database(&text(DATABASE)) });
        }
        emit(connection, &text(MESSAGE), &text(DETAIL), on_entry);
    }
    Ok(())
}

/// Passes every entry of a text log to `on_entry`.
pub(super) fn read_text(input: impl BufRead, on_entry: &mut impl FnMut(LogEntry<'_>)) -> std::io::Result<()> {
    let mut pending: Option<(u64, String, String)> = None;
    // Whether a continuation line belongs to the last DETAIL.
    let mut in_detail = false;
    each_line(input, |line| {
        let Some((connection, severity, message)) = parse_header(line) else {
            if let Some((_, text, detail)) = &mut pending {
                let target = if in_detail { detail } else { text };
                target.push('\n');
                target.push_str(line.strip_prefix('\t').unwrap_or(line));
            }
            return;
        };
        in_detail = severity == "DETAIL";
        if let (true, Some((process, _, detail))) = (in_detail, &mut pending) {
            if *process == connection {
                detail.push_str(message);
            }
            return;
        }
        if let Some((connection, text, detail)) = pending.take() {
            emit(connection, &text, &detail, on_entry);
        }
        if severity == "LOG" {
            if let Some(name) = parse_database(line) {
                on_entry(LogEntry { connection, action: LogAction::Database(name) });
            }
            pending = Some((connection, message.to_owned(), String::new()));
        }
    })?;
    if let Some((connection, text, detail)) = pending {
        emit(connection, &text, &detail, on_entry);
    }
    Ok(())
}

/// Names of the database in prefixes.
const DATABASE_FIELDS: [&str; 4] = ["db", "database", "dbname", "d"];

/// Process id, severity and message, if a message begins on this line.
fn parse_header(line: &str) -> Option<(u64, &str, &str)> {
    if !line.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let (prefix, message) = line.split_once(":  ")?;
    let severity = prefix.rsplit([' ', '\t']).next()?;
    if !SEVERITIES.contains(&severity.trim_end_matches(|char: char| char.is_ascii_digit())) {
        return None;
    }
    let (_, rest) = prefix.split_once('[')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    Some((rest[..digits].parse().ok()?, severity, message))
}

/// The database in a prefix with `db=%d`, as pgBadger's manual has it, or with `%u@%d`, as in Debian.
fn parse_database(line: &str) -> Option<&str> {
    let (prefix, _) = line.split_once(" LOG:  ")?;
    let (_, name) = named_database(prefix).or_else(|| prefix.rsplit(' ').next()?.split_once('@'))?;
    let is_known = !name.is_empty() && name != "[unknown]";
    is_known.then(|| name.trim_end_matches(']'))
}

/// The name and the value of the first `db=value` in a prefix.
fn named_database(prefix: &str) -> Option<(&str, &str)> {
    let fields = prefix.split([' ', '\t', ',', ';', '|', '(', ')']);
    fields.filter_map(|field| field.split_once('=')).find(|(name, _)| {
        let name = name.trim_start_matches('[');
        DATABASE_FIELDS.iter().any(|known| name.eq_ignore_ascii_case(known))
    })
}

/// Passes the log action that a message describes to `on_entry`, if there is one.
fn emit(connection: u64, message: &str, detail: &str, on_entry: &mut impl FnMut(LogEntry<'_>)) {
    if message.starts_with("disconnection:") {
        return on_entry(LogEntry { connection, action: LogAction::Closed });
    }
    let message = match message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms  ")) {
        Some((_, rest)) => rest,
        None => message,
    };
    if let Some(sql) = message.strip_prefix("statement: ") {
        return on_entry(LogEntry { connection, action: LogAction::Statement(sql) });
    }
    let executed = message.strip_prefix("execute ").filter(|rest| !rest.starts_with("fetch from "));
    if let Some((_, sql)) = executed.and_then(|rest| rest.split_once(": ")) {
        let values = parse_parameters(detail);
        on_entry(LogEntry { connection, action: LogAction::Statement(&substitute(sql, &values)) });
    }
}

/// The values of `parameters: $1 = '5', $2 = NULL`, as literals.
fn parse_parameters(detail: &str) -> Vec<&str> {
    let detail = detail.trim_start();
    let Some(mut rest) = ["parameters: ", "Parameters: "].iter().find_map(|word| detail.strip_prefix(word))
    else {
        return Vec::new();
    };
    let mut values = Vec::new();
    while let Some((_, value)) = rest.split_once(" = ") {
        let length = match quoted_or_comment_length(value, 0, Quoting::Postgresql) {
            0 => value.find(", $").unwrap_or(value.len()),
            // A value with a doubled quote counts as two adjacent strings.
            mut length => {
                while value[length..].starts_with('\'') {
                    length += quoted_or_comment_length(value, length, Quoting::Postgresql);
                }
                length
            }
        };
        values.push(&value[..length]);
        rest = &value[length..];
    }
    values
}

/// The statement with values instead of `$1`, `$2`, …
fn substitute(sql: &str, values: &[&str]) -> String {
    let (mut out, mut begin, mut at) = (String::with_capacity(sql.len()), 0, 0);
    while at < sql.len() {
        let skipped = quoted_or_comment_length(sql, at, Quoting::Postgresql);
        if skipped > 0 {
            at += skipped;
            continue;
        }
        let digits = match sql.as_bytes()[at] {
            b'$' => sql[at + 1..].bytes().take_while(u8::is_ascii_digit).count(),
            _ => 0,
        };
        let number = sql.get(at + 1..at + 1 + digits).and_then(|text| text.parse::<usize>().ok());
        match number.and_then(|number| values.get(number.checked_sub(1)?)) {
            Some(value) => {
                out.push_str(&sql[begin..at]);
                out.push_str(value);
                at += 1 + digits;
                begin = at;
            }
            None => at += 1,
        }
    }
    out.push_str(&sql[begin..]);
    out
}
