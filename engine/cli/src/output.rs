//! Standard output: records as JSON Lines.

use std::io::{self, StdoutLock, Write};

use dbdyno_door::Record;
use dbdyno_drive::Sink;

/// Writes a line per record and flushes it, so that a reader sees it at once and a crash loses nothing.
pub struct JsonLines {
    out: StdoutLock<'static>,
    line: Vec<u8>,
}

impl Default for JsonLines {
    /// Locks standard output, for good.
    fn default() -> Self {
        Self { out: io::stdout().lock(), line: Vec::new() }
    }
}

impl Sink for JsonLines {
    fn record(&mut self, record: &Record) -> bool {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record).expect("a record is JSON");
        self.line.push(b'\n');
        // A reader that is gone is no error of ours; the run ends.
        self.out.write_all(&self.line).and_then(|()| self.out.flush()).is_ok()
    }
}
