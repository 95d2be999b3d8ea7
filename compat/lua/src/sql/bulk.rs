//! Collects the rows of a bulk insert. A connection sends them as one INSERT of up to 512 KiB.

/// Maximum bytes of one INSERT.
const INSERT_BYTES_MAX: usize = 512 * 1024;

/// The rows that a connection has collected and not sent.
#[derive(Default)]
pub(super) struct BulkInsert {
    prefix: Vec<u8>,
    /// The INSERT so far.
    text: Vec<u8>,
    /// Rows in `text`.
    rows: u64,
}

impl BulkInsert {
    pub(super) fn new(prefix: &[u8]) -> Self {
        Self { prefix: prefix.to_vec(), text: prefix.to_vec(), rows: 0 }
    }

    /// Adds a row. If the row does not fit, first moves the collected rows into `out`, so that the caller sends them,
    /// and returns true.
    pub(super) fn add(&mut self, row: &[u8], out: &mut Vec<u8>) -> bool {
        let is_full = self.rows > 0 && self.text.len() + row.len() + 1 > INSERT_BYTES_MAX;
        if is_full {
            self.finish(out);
        }
        if self.rows > 0 {
            self.text.push(b',');
        }
        self.text.extend_from_slice(row);
        self.rows += 1;
        is_full
    }

    /// Moves the collected rows into `out`, so that the caller sends them. Returns false if there are none.
    pub(super) fn finish(&mut self, out: &mut Vec<u8>) -> bool {
        if self.rows == 0 {
            return false;
        }
        out.clear();
        std::mem::swap(&mut self.text, out);
        self.text.clear();
        self.text.extend_from_slice(&self.prefix);
        self.rows = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sent_when_the_next_does_not_fit() {
        let (mut bulk, mut out) = (BulkInsert::new(b"INSERT INTO t VALUES"), Vec::new());
        assert!(!bulk.finish(&mut out));
        let row = vec![b'x'; 1000];
        let sent: Vec<usize> = (0..2000).filter(|_| bulk.add(&row, &mut out)).collect();
        // (524288 - 20 + 1) / 1001 = 523 rows fit.
        assert_eq!(sent, [523, 1046, 1569]);
        assert_eq!(out.len(), 20 + 523 * 1001 - 1);
        assert!(bulk.finish(&mut out));
        assert_eq!(out.len(), 20 + (2000 - 1569) * 1001 - 1);
        assert!(out.starts_with(b"INSERT INTO t VALUESxxx"));
    }
}
