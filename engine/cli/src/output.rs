//! Records as JSON Lines.

use std::io::{self, StdoutLock, Write};

use dbdyno_runner::Sink;
use dbdyno_schema::Record;

/// Writes and flushes a line per record, so that a reader sees it immediately and a crash loses nothing.
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
        // If the reader is gone, the run ends without an error.
        self.out.write_all(&self.line).and_then(|()| self.out.flush()).is_ok()
    }
}
