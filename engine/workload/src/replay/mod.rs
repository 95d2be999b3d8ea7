//! Replay of statements from a log or a file.
//!
//! A log may have millions of lines. dbdyno reads it once, before the run, and stores distinct texts and a list of
//! transactions. It sends every statement as text and prepares none.
//!
//! # Layout
//! - this file: the transactions of one user; `recording`: the statements in memory.
//! - `general`, `slow`, `postgresql`, `queries`: readers of one file format each; `entry`: their common result.
//! - `collector`: which statements are replayed, grouped by transaction.
//! - `normalize`: texts with placeholders instead of values, by which statements are counted.

mod collector;
mod entry;
mod general;
mod normalize;
mod postgresql;
mod queries;
mod recording;
mod slow;

use std::io::BufRead;
use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_schema::Plan;
use dbdyno_schema::placeholders::Quoting;
use dbdyno_schema::plan::{LogFormat, Replay, SqlWorkload, TransactionOrder};
use dbdyno_schema::record::StatementKind;
use dbdyno_wire::Value;
use dbdyno_wire::scripted::Type;

use self::collector::TransactionCollector;
use self::entry::LogEntry;
pub use self::recording::Recording;
use crate::call::{Call, Statement, UserIndex};
use crate::picker::TransactionPicker;

/// Reads a file of recorded statements.
///
/// # Errors
/// The file cannot be read, or it contains no statement to replay.
pub fn read(
    replay: &Replay,
    order: TransactionOrder,
    quoting: Quoting,
    input: impl BufRead,
) -> Result<Recording, String> {
    let mut collector = TransactionCollector::new(replay, order, quoting);
    let mut on_entry = |entry: LogEntry<'_>| collector.add(&entry);
    match replay.format {
        LogFormat::Queries => queries::read(input, quoting, &mut on_entry),
        LogFormat::GeneralLog => general::read(input, &mut on_entry),
        LogFormat::SlowLog => slow::read(input, &mut on_entry),
        LogFormat::PostgresqlLog => postgresql::read_text(input, &mut on_entry),
        LogFormat::PostgresqlCsv => postgresql::read_csv(input, &mut on_entry),
    }
    .map_err(|error| error.to_string())?;
    collector.finish()
}

/// Recorded statements as a workload.
#[derive(Clone, Debug)]
pub struct ReplayProgram(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    recording: Arc<Recording>,
    picker: TransactionPicker,
    session: Vec<String>,
    teardown: Vec<String>,
    each: Option<u64>,
    seed: u64,
}

/// Maximum attempts of a transaction before a user continues with the next one, because a statement that failed when it
/// was recorded fails every time.
const ATTEMPTS_MAX: u32 = 3;

impl ReplayProgram {
    /// The workload of a plan whose SQL workload is `custom`; it replays `recording`.
    pub(crate) fn new(custom: &SqlWorkload, recording: Arc<Recording>, plan: &Plan) -> Self {
        Self(Arc::new(Shared {
            picker: TransactionPicker::new(custom, recording.transactions.len(), &recording.weights, plan),
            recording,
            session: custom.session.clone(),
            teardown: custom.teardown.clone(),
            each: custom.each,
            seed: plan.seed,
        }))
    }

    /// The only statement, `?`: its parameter is the complete text of a recorded statement.
    pub(crate) fn statements(&self) -> Vec<Statement> {
        vec![Statement { sql: "?".into(), types: vec![Type::Text], prepared: false }]
    }

    /// The statement kinds for the records.
    pub(crate) fn describe(&self) -> Vec<StatementKind> {
        self.0.recording.kinds.clone()
    }

    /// Statements that every connection sends first.
    pub(crate) fn session(&self) -> &[String] {
        &self.0.session
    }

    /// Statements that every connection sends last.
    pub(crate) fn teardown(&self) -> &[String] {
        &self.0.teardown
    }

    /// The transactions of one user.
    pub(crate) fn events(&self, user: UserIndex) -> Event {
        let mut event = Event {
            transaction: None,
            step: 0,
            attempts: 0,
            executed: 0,
            executed_max: self.0.each.unwrap_or(u64::MAX),
            exhausted: false,
            rng: Rng::new(self.0.seed, &[u64::from_be_bytes(*b"replayed"), user.global]),
            call: Call { values: vec![Value::Verbatim(Vec::new())], ..Call::default() },
        };
        event.reserve(&self.0);
        event
    }
}

/// The current transaction of one connection.
#[derive(Debug)]
pub struct Event {
    transaction: Option<usize>,
    step: usize,
    /// Number of restarts of the current transaction.
    attempts: u32,
    /// Number of transactions that have ended.
    executed: u64,
    /// Maximum number of transactions.
    executed_max: u64,
    /// Whether the list has no further transactions.
    exhausted: bool,
    rng: Rng,
    call: Call,
}

impl Event {
    /// Restarts the current transaction.
    pub(crate) fn restart(&mut self) {
        if self.step > 0 {
            self.attempts += 1;
        }
        self.step = 0;
    }

    /// Whether the user has completed all its transactions.
    pub(crate) fn is_done(&self) -> bool {
        self.exhausted || self.executed >= self.executed_max
    }

    /// The statement that [`Event::next`] returned last.
    pub(crate) fn last(&self) -> &Call {
        &self.call
    }

    /// The next statement, or `None` at the end of the transaction; after that a new one begins.
    pub(crate) fn next(&mut self, program: &ReplayProgram) -> Option<&Call> {
        let shared = &*program.0;
        let recording = &*shared.recording;
        if self.attempts >= ATTEMPTS_MAX {
            self.end(shared);
        }
        if self.exhausted {
            return None;
        }
        let transaction = match self.transaction {
            Some(transaction) => transaction,
            None => self.choose(shared)?,
        };
        let Some(&number) = recording.transactions[transaction].get(self.step) else {
            self.end(shared);
            return None;
        };
        self.step += 1;
        let text = &recording.texts[number as usize];
        (self.call.kind, self.call.class) = (text.kind as usize, Some(text.class));
        if let [Value::Verbatim(sql)] = self.call.values.as_mut_slice() {
            sql.clear();
            sql.extend_from_slice(text.sql.as_bytes());
        }
        Some(&self.call)
    }

    fn end(&mut self, shared: &Shared) {
        (self.transaction, self.step, self.attempts) = (None, 0, 0);
        self.executed += 1;
        self.reserve(shared);
    }

    /// If the list is limited, picks the next transaction in advance, so that the user knows when it has completed its
    /// last one.
    fn reserve(&mut self, shared: &Shared) {
        if shared.picker.is_limited() {
            self.exhausted = self.choose(shared).is_none();
        }
    }

    fn choose(&mut self, shared: &Shared) -> Option<usize> {
        self.transaction = shared.picker.next(self.executed, &mut self.rng);
        self.transaction
    }
}

#[cfg(test)]
mod tests;
