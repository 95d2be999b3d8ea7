//! Collects the statements of a log that dbdyno replays, grouped by transaction.
//!
//! dbdyno replays statements that read or write data, and statements that begin or end transactions. It skips and counts
//! session settings, table definitions, administration, and statements that read or write files; if the plan says so, also
//! those that may write.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use dbdyno_schema::description::RecordedStatement;
use dbdyno_schema::placeholders::{Quoting, first_word, quoted_or_comment_length};
use dbdyno_schema::plan::{Replay, TransactionOrder, limits};
use dbdyno_schema::record::StatementKind;

use super::entry::{LogAction, LogEntry};
use super::normalize::normalize;
use super::recording::{Recording, Text};
use crate::sql::statement_class;

/// Maximum number of statement kinds. All other statements count as one additional kind.
const KINDS_MAX: usize = 200;
/// Maximum characters of the text that describes a kind.
const KIND_TEXT_CHARS_MAX: usize = 1000;

/// Why a statement is skipped if the log does not name its database, and `replay.database` selects one.
const UNKNOWN_DATABASE: &str = "in an unknown database";

/// One recorded connection.
#[derive(Debug, Default)]
struct Session {
    database: Option<String>,
    /// Whether autocommit is off.
    autocommit_off: bool,
    /// The open transaction: its number in the order of starts, and the numbers of its statements' texts.
    open: Option<(usize, Vec<u32>)>,
}

/// The role of a statement in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Data,
    Begin,
    End,
    /// A savepoint statement: part of the open transaction.
    Savepoint,
    Autocommit(bool),
    Use,
    Other,
}

/// Groups the entries of a log into transactions.
#[derive(Debug)]
pub(super) struct TransactionCollector<'a> {
    replay: &'a Replay,
    order: TransactionOrder,
    quoting: Quoting,
    sessions: HashMap<u64, Session>,
    text_numbers: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
    /// How often each text was recorded.
    counts: Vec<u64>,
    /// The transactions in the order in which they ended, each with its number in the order of starts.
    transactions: Vec<(usize, Box<[u32]>)>,
    /// Number of transactions that have started.
    started: usize,
    /// Number of skipped statements, by reason.
    skipped: BTreeMap<String, u64>,
    /// Number of statements in databases that are not replayed, by database.
    databases: BTreeMap<String, u64>,
}

impl<'a> TransactionCollector<'a> {
    pub(super) fn new(replay: &'a Replay, order: TransactionOrder, quoting: Quoting) -> Self {
        Self {
            replay,
            order,
            quoting,
            sessions: HashMap::new(),
            text_numbers: HashMap::new(),
            texts: Vec::new(),
            counts: Vec::new(),
            transactions: Vec::new(),
            started: 0,
            skipped: BTreeMap::new(),
            databases: BTreeMap::new(),
        }
    }

    /// Adds the next entry of the log.
    pub(super) fn add(&mut self, entry: &LogEntry<'_>) {
        let mut session = self.sessions.remove(&entry.connection).unwrap_or_default();
        match entry.action {
            LogAction::Database(name) => session.database = Some(name.to_owned()),
            LogAction::Closed => {
                self.roll_back(&mut session);
                return;
            }
            LogAction::Statement(sql) => self.add_statement(&mut session, sql.trim()),
        }
        self.sessions.insert(entry.connection, session);
    }

    fn add_statement(&mut self, session: &mut Session, sql: &str) {
        let word = first_word(sql, self.quoting);
        if word.is_empty() {
            return; // Empty, or only a comment.
        }
        let role = role(&word, sql);
        if role == Role::Use {
            let name = sql[3..].trim().trim_end_matches(';').trim().trim_matches('`');
            session.database = Some(name.to_owned());
            return;
        }
        if let Some(reason) = self.outside_selection(session) {
            return self.skip(reason.into());
        }
        if sql.contains('\u{fffd}') {
            return self.skip("not in UTF-8".into());
        }
        if sql.len() > limits::SQL_BYTES {
            return self.skip(format!("longer than {} bytes", limits::SQL_BYTES));
        }
        match role {
            Role::Other | Role::Use => self.skip(word),
            Role::Autocommit(on) => {
                self.set_autocommit(session, on);
                self.skip(word);
            }
            Role::Begin => {
                self.end_open_transaction(session, "COMMIT"); // BEGIN commits the open transaction implicitly.
                let number = self.count_text(sql);
                session.open = Some((self.next_start(), vec![number]));
            }
            Role::End => {
                let number = self.count_text(sql);
                match session.open.take() {
                    Some((began, mut statements)) => {
                        statements.push(number);
                        self.transactions.push((began, statements.into()));
                    }
                    None => self.add_single(number),
                }
            }
            Role::Data if self.replay.skip_writes && may_write(&word, sql, self.quoting) => self.skip(word),
            Role::Data | Role::Savepoint => {
                if session.open.is_none() && session.autocommit_off {
                    let begin = self.count_text("BEGIN");
                    session.open = Some((self.next_start(), vec![begin]));
                }
                let number = self.count_text(sql);
                match &mut session.open {
                    Some((_, statements)) => statements.push(number),
                    None => self.add_single(number),
                }
            }
        }
    }

    /// Why `replay.database` does not select the statements of a session; `None` if it does.
    fn outside_selection(&mut self, session: &Session) -> Option<&'static str> {
        let selected = self.replay.database.as_deref()?;
        match session.database.as_deref() {
            Some(name) if name == selected => None,
            Some(name) => {
                *self.databases.entry(name.to_owned()).or_default() += 1;
                Some("in other databases")
            }
            // It may belong to another application.
            None => Some(UNKNOWN_DATABASE),
        }
    }

    /// Switches autocommit. Switching it on commits the open transaction.
    fn set_autocommit(&mut self, session: &mut Session, on: bool) {
        if on && session.autocommit_off {
            self.end_open_transaction(session, "COMMIT");
        }
        session.autocommit_off = !on;
    }

    fn add_single(&mut self, number: u32) {
        let began = self.next_start();
        self.transactions.push((began, [number].into()));
    }

    /// Ends a transaction whose end is missing in the log with the statement `sql`.
    fn end_open_transaction(&mut self, session: &mut Session, sql: &str) {
        if let Some((began, mut statements)) = session.open.take() {
            statements.push(self.count_text(sql));
            self.transactions.push((began, statements.into()));
        }
    }

    /// Ends an open transaction by a rollback, as a server does when the connection closes.
    fn roll_back(&mut self, session: &mut Session) {
        self.end_open_transaction(session, "ROLLBACK");
    }

    fn next_start(&mut self) -> usize {
        self.started += 1;
        self.started
    }

    fn skip(&mut self, why: String) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// Counts one execution of a text, and returns the text's number.
    fn count_text(&mut self, sql: &str) -> u32 {
        if let Some(&number) = self.text_numbers.get(sql) {
            self.counts[number as usize] += 1;
            return number;
        }
        let (text, number): (Arc<str>, _) = (sql.into(), self.texts.len() as u32);
        self.texts.push(Arc::clone(&text));
        self.counts.push(1);
        self.text_numbers.insert(text, number);
        number
    }

    /// Returns everything that the run replays.
    pub(super) fn finish(mut self) -> Result<Recording, String> {
        for mut session in std::mem::take(&mut self.sessions).into_values() {
            self.roll_back(&mut session);
        }
        if self.transactions.is_empty() {
            return Err(self.describe_empty_log());
        }
        self.transactions.sort_by_key(|(began, _)| *began);
        let all = std::mem::take(&mut self.transactions).into_iter().map(|(_, statements)| statements);
        let (mut transactions, mut weights) = (Vec::new(), Vec::new());
        if self.order == TransactionOrder::Weighted {
            let mut numbers: HashMap<Box<[u32]>, usize> = HashMap::new();
            for statements in all {
                let next = weights.len();
                let number = *numbers.entry(statements.clone()).or_insert(next);
                if number == next {
                    transactions.push(statements);
                    weights.push(0.0);
                }
                weights[number] += 1.0;
            }
        } else {
            transactions = all.collect();
        }
        let statements = self.counts.iter().sum();
        let (texts, kinds) = self.rank_kinds();
        let recorded = self.count_writes(&texts, &kinds);
        Ok(Recording { texts, transactions, weights, kinds, recorded, skipped: self.skipped, statements })
    }

    fn describe_empty_log(&self) -> String {
        let skipped: Vec<String> = self.skipped.iter().map(|(why, count)| format!("{count} {why}")).collect();
        let unknown = self.skipped.get(UNKNOWN_DATABASE);
        let names: Vec<&str> = self.databases.keys().map(String::as_str).collect();
        let others = match (unknown, names.is_empty()) {
            (Some(count), true) => format!("{count} statements are {UNKNOWN_DATABASE}"),
            _ => format!("its databases are {}", names.join(", ")),
        };
        match (names.is_empty() && unknown.is_none(), skipped.is_empty()) {
            (false, _) => format!(
                "contains no statement of the database {}, which replay.database selects; {others}",
                self.replay.database.as_deref().unwrap_or_default(),
            ),
            (true, false) => {
                format!("contains no statement that reads or writes data; skipped: {}", skipped.join(", "))
            }
            (true, true) => {
                "contains no statement; check that replay.format is the format of the file".into()
            }
        }
    }

    /// How often each kind was recorded.
    fn count_writes(&self, texts: &[Text], kinds: &[StatementKind]) -> Vec<RecordedStatement> {
        let mut recorded: Vec<RecordedStatement> = kinds
            .iter()
            .enumerate()
            .map(|(rank, kind)| RecordedStatement {
                sql: (rank < KINDS_MAX).then(|| kind.sql.clone()),
                count: 0,
                writes: 0,
            })
            .collect();
        for (text, &count) in texts.iter().zip(&self.counts) {
            let entry = &mut recorded[text.kind as usize];
            entry.count += count;
            if may_write(&first_word(&text.sql, self.quoting), &text.sql, self.quoting) {
                entry.writes += count;
            }
        }
        recorded
    }

    /// The distinct texts, and the statement kinds, most frequent kind first.
    fn rank_kinds(&self) -> (Vec<Text>, Vec<StatementKind>) {
        let mut counts: HashMap<String, u64> = HashMap::new();
        let normalized: Vec<String> = self.texts.iter().map(|sql| normalize(sql, self.quoting)).collect();
        for (text, count) in normalized.iter().zip(&self.counts) {
            *counts.entry(text.clone()).or_default() += count;
        }
        let mut ranked: Vec<(String, u64)> = counts.into_iter().collect();
        ranked.sort_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
        let kind = |name: String, sql: String| StatementKind {
            kind: name,
            sql,
            per_event: 0,
            per_connection: 0,
            prepared: false,
        };
        let mut kinds: Vec<StatementKind> = ranked
            .iter()
            .take(KINDS_MAX)
            .enumerate()
            .map(|(rank, (text, _))| {
                let word = first_word(text, self.quoting).to_ascii_lowercase();
                kind(format!("{}-{word}", rank + 1), text.chars().take(KIND_TEXT_CHARS_MAX).collect())
            })
            .collect();
        if ranked.len() > KINDS_MAX {
            kinds.push(kind("others".into(), "all other statements".into()));
        }
        let ranks: HashMap<&str, usize> =
            ranked.iter().enumerate().map(|(rank, (text, _))| (text.as_str(), rank.min(KINDS_MAX))).collect();
        let texts = self.texts.iter().zip(&normalized).map(|(sql, normalized)| Text {
            sql: Arc::clone(sql),
            kind: ranks[normalized.as_str()] as u32,
            class: statement_class(sql, self.quoting),
        });
        (texts.collect(), kinds)
    }
}

/// The role of a statement, determined by its first word.
fn role(word: &str, sql: &str) -> Role {
    let uppercase_prefix = |length: usize| sql.chars().take(length).collect::<String>().to_ascii_uppercase();
    match word {
        "SELECT" | "WITH" | "TABLE" | "VALUES" => {
            let uppercase = sql.to_ascii_uppercase();
            let writes_files =
                ["INTO OUTFILE", "INTO DUMPFILE"].iter().any(|words| uppercase.contains(words));
            if writes_files { Role::Other } else { Role::Data }
        }
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" | "CALL" | "DO" => Role::Data,
        "BEGIN" => Role::Begin,
        "START"
            if uppercase_prefix(200)
                .split_whitespace()
                .nth(1)
                .is_some_and(|next| next.starts_with("TRANSACTION")) =>
        {
            Role::Begin
        }
        "COMMIT" | "ROLLBACK" | "END" | "ABORT" => {
            let to_savepoint =
                word == "ROLLBACK" && uppercase_prefix(200).split_whitespace().any(|word| word == "TO");
            if to_savepoint { Role::Savepoint } else { Role::End }
        }
        "SAVEPOINT" | "RELEASE" => Role::Savepoint,
        "USE" => Role::Use,
        "SET" => autocommit_value(&uppercase_prefix(200)).map_or(Role::Other, Role::Autocommit),
        _ => Role::Other,
    }
}

/// Whether a statement that begins with `first` may change rows or tables. In doubt it may: a procedure can do anything, and
/// functions of the user in a query, which can too, are the only writes that are not found.
fn may_write(first: &str, sql: &str, quoting: Quoting) -> bool {
    match first {
        "SELECT" | "WITH" | "TABLE" | "VALUES" => {}
        "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "END" | "ABORT" | "SAVEPOINT" | "RELEASE" => {
            return false;
        }
        _ => return true,
    }
    let (mut at, mut before) = (0, "");
    while at < sql.len() {
        let quoted = quoted_or_comment_length(sql, at, quoting);
        let length =
            sql[at..].bytes().take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        if quoted > 0 || length == 0 {
            at += if quoted > 0 { quoted } else { sql[at..].chars().next().map_or(1, char::len_utf8) };
            continue;
        }
        let (word, rest) = (&sql[at..at + length], sql[at + length..].trim_start());
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        let follows = |name: &str| before.eq_ignore_ascii_case(name);
        let writes = if is("INSERT") || is("REPLACE") {
            !rest.starts_with('(') // MySQL has functions of these names.
        } else if is("UPDATE") {
            !follows("FOR") && !follows("KEY") // Locks of a SELECT.
        } else if is("INTO") {
            !rest.starts_with('@') // A variable of the session.
        } else {
            is("DELETE") || is("MERGE")
        };
        if writes {
            return true;
        }
        (at, before) = (at + length, word);
    }
    false
}

/// The value that a SET statement assigns to autocommit. `sql` is in upper case.
fn autocommit_value(sql: &str) -> Option<bool> {
    let (_, rest) = sql.split_once("AUTOCOMMIT")?;
    let value = rest.trim_start().trim_start_matches([':', '=']).trim_start();
    let value: String = value.chars().take_while(char::is_ascii_alphanumeric).collect();
    match value.as_str() {
        "0" | "OFF" | "FALSE" => Some(false),
        "1" | "ON" | "TRUE" => Some(true),
        _ => None,
    }
}
