//! The buffer of `bulk_insert`: rows (n, n) that a connection sends together in one INSERT of up to 512 KiB.
//!
//! As in sysbench's script, every connection has a separate table, and an event adds one row. If the row does not fit,
//! the event first sends the buffered rows; the user sends the remaining rows after its last event. Most events therefore
//! take no time, and a few take the time of an INSERT. Ids continue after the last stored row, so that two runs do not
//! collide, unless the caller chooses another rule ([`NewRowIds`]).

use dbdyno_wire::Value;

use crate::new_ids::NewRowIds;

/// Maximum bytes of one INSERT.
const STATEMENT_BYTES: usize = 512 * 1024;
/// Bytes of an INSERT without the table name and the rows.
const KEYWORDS_BYTES: usize = "INSERT INTO  VALUES".len();

/// The buffer of one connection.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    table: String,
    /// Whether ids continue after those of the stored rows.
    continues_ids: bool,
    /// Number of the next row.
    next: u64,
    /// Rows in the buffer.
    pub(crate) rows: u64,
}

impl Bulk {
    pub(crate) fn new(table: String, new_row_ids: NewRowIds) -> Self {
        Self { table, continues_ids: new_row_ids == NewRowIds::Unused, next: 1, rows: 0 }
    }

    /// The statement that selects the id of the last stored row; `None` if ids do not continue after it.
    pub(crate) fn last_id_sql(&self) -> Option<String> {
        self.continues_ids.then(|| format!("SELECT COALESCE(MAX(id), 0) FROM {}", self.table))
    }

    /// Continues ids after `last`.
    pub(crate) fn continue_ids_after(&mut self, last: u64) {
        self.next = last + 1;
    }

    /// Begins an INSERT without rows: sets its two parameters, the table and the rows.
    pub(crate) fn begin(&mut self, values: &mut Vec<Value>) {
        self.rows = 0;
        match values.as_mut_slice() {
            [_, Value::Verbatim(rows)] => rows.clear(),
            _ => {
                *values = vec![Value::Verbatim(self.table.clone().into_bytes()), Value::Verbatim(Vec::new())]
            }
        }
    }

    /// Adds a row. Returns false if it does not fit, so that the caller must send the buffered rows first.
    #[inline]
    pub(crate) fn add(&mut self, values: &mut [Value]) -> bool {
        let [_, Value::Verbatim(rows)] = values else { return true };
        let mut number = itoa::Buffer::new();
        let digits = number.format(self.next).as_bytes();
        let begin = if self.rows == 0 { b"(".as_slice() } else { b",(" };
        let bytes = begin.len() + 2 * digits.len() + ",)".len();
        if self.rows > 0 && rows.len() + bytes > STATEMENT_BYTES - KEYWORDS_BYTES - self.table.len() {
            return false;
        }
        for piece in [begin, digits, b",", digits, b")"] {
            rows.extend_from_slice(piece);
        }
        (self.next, self.rows) = (self.next + 1, self.rows + 1);
        true
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::plan::{Workload, WorkloadName};

    use crate::{Oltp, UserIndex};

    use super::*;

    fn oltp() -> Oltp {
        let workload = Workload {
            name: WorkloadName::BulkInsert,
            options: Default::default(),
            keys: Default::default(),
            statements: Default::default(),
            sql: None,
            script: None,
        };
        Oltp::new(&workload, 1)
    }

    fn text(value: &Value) -> &str {
        let Value::Verbatim(bytes) = value else { panic!("{value:?}") };
        str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn each_event_adds_a_row_and_few_send_an_insert() {
        let oltp = oltp();
        let mut event = oltp.events(UserIndex { global: 2, users: 4 });
        assert_eq!(event.last_id_sql().unwrap(), "SELECT COALESCE(MAX(id), 0) FROM sbtest3");
        event.continue_ids_after(10);
        let (mut events, mut sent) = (0, Vec::new());
        while sent.len() < 2 {
            events += 1;
            event.restart();
            while let Some(call) = event.next(&oltp) {
                let rows = text(&call.values[1]);
                let sent_bytes = rows.len() + "INSERT INTO sbtest3 VALUES".len();
                assert!((512 * 1024 - 16..=512 * 1024).contains(&sent_bytes), "{sent_bytes}");
                assert_eq!(text(&call.values[0]), "sbtest3");
                assert_eq!(rows.matches('(').count() as u64, call.rows_expected.unwrap());
                sent.push((call.rows_expected.unwrap(), rows[..8].to_owned()));
            }
        }
        // The last event's row is in the buffer for the next INSERT.
        assert_eq!(sent[0].0 + sent[1].0, events - 1);
        assert_eq!(sent[0].1, "(11,11),");
        assert!(sent[1].1.starts_with(&format!("({},", 11 + sent[0].0)), "{:?}", sent[1]);
    }

    #[test]
    fn a_failed_insert_is_sent_again_without_another_row() {
        let oltp = oltp();
        let mut event = oltp.events(UserIndex { global: 0, users: 1 });
        let first = loop {
            if let Some(call) = event.next(&oltp) {
                break call.clone();
            }
        };
        event.restart(); // The statement met a deadlock.
        assert_eq!(event.next(&oltp), Some(&first));
        assert_eq!(event.next(&oltp), None);
        assert_eq!(event.remaining_insert().unwrap().rows_expected, Some(1));
    }

    #[test]
    fn remaining_rows_are_sent_at_the_end() {
        let oltp = oltp();
        let mut event = oltp.events(UserIndex { global: 0, users: 1 });
        assert_eq!(event.remaining_insert(), None);
        for _ in 0..3 {
            assert_eq!(event.next(&oltp), None);
        }
        let call = event.remaining_insert().unwrap();
        assert_eq!((text(&call.values[1]), call.rows_expected), ("(1,1),(2,2),(3,3)", Some(3)));
    }
}
