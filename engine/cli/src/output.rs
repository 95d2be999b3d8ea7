//! Records as JSON Lines.

use std::io::{self, StdoutLock, Write};

use dbdyno_runner::Sink;
use dbdyno_schema::Record;

/// Writes one line per record and flushes it, so that a reader sees it immediately and a crash does not lose it.
pub struct JsonLines<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }
}

impl Default for JsonLines<StdoutLock<'static>> {
    /// Locks standard output until the process exits.
    fn default() -> Self {
        Self::new(io::stdout().lock())
    }
}

impl<W: Write> Sink for JsonLines<W> {
    fn record(&mut self, record: &Record) -> bool {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record).expect("a record is JSON");
        self.line.push(b'\n');
        // False if the reader is gone; the run then ends without an error.
        self.out.write_all(&self.line).and_then(|()| self.out.flush()).is_ok()
    }
}
