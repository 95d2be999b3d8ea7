//! Reads the general query log of MySQL and MariaDB.
//!
//! An entry begins with a line `time, tab, connection number, space, command, tab, argument`; further lines continue
//! the argument. MySQL writes the time of every entry. MariaDB writes the time of the first entry in each second, and
//! two tabs for the others.

use std::io::BufRead;

use super::entry::{LogAction, LogEntry, each_line};

/// Names of commands in the logs of both servers. A line without such a name continues the previous argument.
const COMMANDS: [&str; 38] = [
    "Sleep",
    "Quit",
    "Init DB",
    "Query",
    "Field List",
    "Create DB",
    "Drop DB",
    "Refresh",
    "Shutdown",
    "Statistics",
    "Processlist",
    "Connect",
    "Kill",
    "Debug",
    "Ping",
    "Time",
    "Delayed insert",
    "Change user",
    "Binlog Dump",
    "Table Dump",
    "Connect Out",
    "Register Slave",
    "Register Replica",
    "Prepare",
    "Execute",
    "Long Data",
    "Close stmt",
    "Reset stmt",
    "Set option",
    "Fetch",
    "Daemon",
    "Binlog Dump GTID",
    "Reset Connection",
    "Reset connection",
    "Bulk_execute",
    "Slave_worker",
    "Slave_SQL",
    "Error",
];

/// Passes every entry of the log to `on_entry`.
pub(super) fn read(input: impl BufRead, on_entry: &mut impl FnMut(LogEntry<'_>)) -> std::io::Result<()> {
    let mut pending: Option<(u64, String)> = None;
    let flush = |pending: &mut Option<(u64, String)>, on_entry: &mut dyn FnMut(LogEntry<'_>)| {
        if let Some((connection, sql)) = pending.take() {
            on_entry(LogEntry { connection, action: LogAction::Statement(&sql) });
        }
    };
    each_line(input, |line| {
        let Some((connection, command, argument)) = parse_header(line) else {
            if is_preamble(line) {
                flush(&mut pending, on_entry);
            } else if let Some((_, sql)) = &mut pending {
                sql.push('\n');
                sql.push_str(line);
            }
            return;
        };
        flush(&mut pending, on_entry);
        let action = match command {
            // "Execute" entries contain a prepared statement with its values, so "Prepare" entries are ignored.
            "Query" | "Execute" => {
                pending = Some((connection, argument.to_owned()));
                return;
            }
            "Init DB" => LogAction::Database(argument),
            "Connect" | "Change user" => match parse_database(argument) {
                Some(name) => LogAction::Database(name),
                None => LogAction::Closed,
            },
            "Quit" | "Reset Connection" | "Reset connection" => LogAction::Closed,
            _ => return,
        };
        on_entry(LogEntry { connection, action });
    })?;
    flush(&mut pending, on_entry);
    Ok(())
}

/// Whether the line is part of the header that a server writes when it opens the file.
fn is_preamble(line: &str) -> bool {
    line.ends_with("started with:") && line.contains(", Version: ")
}

/// Connection, command and argument, if an entry begins on this line.
fn parse_header(line: &str) -> Option<(u64, &str, &str)> {
    let rest = strip_time(line)?.trim_start_matches(' ');
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let connection = rest[..digits].parse().ok()?;
    let rest = rest[digits..].strip_prefix(' ')?;
    let (command, argument) = rest.split_once('\t').unwrap_or((rest, ""));
    COMMANDS.contains(&command).then_some((connection, command, argument))
}

fn strip_time(line: &str) -> Option<&str> {
    let (time, rest) = line.split_once('\t')?;
    let has_shape = |digits: &[usize], others: &[(usize, u8)]| {
        let bytes = time.as_bytes();
        digits.iter().all(|&at| bytes.get(at).is_some_and(u8::is_ascii_digit))
            && others.iter().all(|&(at, byte)| bytes.get(at) == Some(&byte))
    };
    match time {
        "" => rest.strip_prefix('\t'),
        _ if has_shape(&[0, 3, 5, 8, 11], &[(4, b'-'), (7, b'-'), (10, b'T'), (13, b':')]) => Some(rest),
        _ if has_shape(&[0, 1, 2, 3, 4, 5, 8], &[(6, b' '), (9, b':'), (12, b':')]) => Some(rest),
        _ => None,
    }
}

/// The database in `user@host on database using …`.
fn parse_database(argument: &str) -> Option<&str> {
    let (_, rest) = argument.split_once(" on ")?;
    let name = rest.split(" using ").next().unwrap_or(rest).trim();
    (!name.is_empty() && name != "using").then_some(name)
}
