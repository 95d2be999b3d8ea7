//! `bulk_insert`: rows (n, n) are collected by the client and sent by one INSERT when half a MiB is full.
//!
//! Facts from sysbench's script: every connection has a table of its own; an event is one row appended; a statement
//! is sent by the event that fills the buffer, and what is left at the end is sent after the run. So most events
//! take no time, and a few take that of a whole INSERT. In a table that holds rows already, new ones follow the
//! last: a second run meets none of the first.

use dbdyno_wire::Value;

/// Bytes of the rows of one INSERT: sysbench's half a MiB, less room for the rest of the statement and a row.
const FULL_BYTES: usize = 512 * 1024 - 128;

/// What one connection collects.
#[derive(Clone, Debug)]
pub(crate) struct Bulk {
    table: String,
    /// Number of the next row.
    next: u64,
    /// Rows in the buffer.
    pub(crate) rows: u64,
    /// The buffer is to be sent before anything is added.
    full: bool,
}

impl Bulk {
    /// For the table with this name.
    pub(crate) fn new(table: String) -> Self {
        Self { table, next: 1, rows: 0, full: false }
    }

    /// Asks for the number of the last row that is there.
    pub(crate) fn last_row_sql(&self) -> String {
        format!("SELECT COALESCE(MAX(id), 0) FROM {}", self.table)
    }

    /// Goes on after row number `last`.
    pub(crate) fn follow(&mut self, last: u64) {
        self.next = last + 1;
    }

    /// The parameters of an INSERT with no rows yet: the table and the rows.
    pub(crate) fn begin(&mut self, values: &mut Vec<Value>) {
        (self.rows, self.full) = (0, false);
        match values.as_mut_slice() {
            [_, Value::Verbatim(rows)] => rows.clear(),
            _ => {
                *values = vec![Value::Verbatim(self.table.clone().into_bytes()), Value::Verbatim(Vec::new())]
            }
        }
    }

    /// Adds a row, unless those that are there have still to be sent. Returns whether they have now.
    #[inline]
    pub(crate) fn add(&mut self, values: &mut [Value]) -> bool {
        if self.full {
            return true;
        }
        if let [_, Value::Verbatim(rows)] = values {
            let mut number = itoa::Buffer::new();
            let digits = number.format(self.next).as_bytes();
            for piece in [if self.rows == 0 { b"(".as_slice() } else { b",(" }, digits, b",", digits, b")"] {
                rows.extend_from_slice(piece);
            }
            (self.next, self.rows) = (self.next + 1, self.rows + 1);
            self.full = rows.len() >= FULL_BYTES;
        }
        self.full
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_door::plan::{Workload, WorkloadName};

    use crate::{Oltp, Seat};

    use super::*;

    fn oltp() -> Oltp {
        let workload = Workload {
            name: WorkloadName::BulkInsert,
            options: Default::default(),
            keys: Default::default(),
            statements: Default::default(),
            new_rows: Default::default(),
        };
        Oltp::new(&workload, 1)
    }

    fn text(value: &Value) -> &str {
        let Value::Verbatim(bytes) = value else { panic!("{value:?}") };
        str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn an_event_is_a_row_and_few_send_a_statement() {
        let oltp = oltp();
        let mut event = oltp.events(Seat { index: 2, count: 4 });
        assert_eq!(event.last_row_sql().unwrap(), "SELECT COALESCE(MAX(id), 0) FROM sbtest3");
        event.follow(10);
        let (mut events, mut sent) = (0, Vec::new());
        while sent.len() < 2 {
            events += 1;
            event.restart();
            while let Some(call) = event.next(&oltp) {
                let rows = text(&call.values[1]);
                assert!(rows.len() <= 512 * 1024);
                assert_eq!(text(&call.values[0]), "sbtest3");
                assert_eq!(rows.matches('(').count() as u64, call.rows_expected.unwrap());
                sent.push((call.rows_expected.unwrap(), rows[..8].to_owned()));
            }
        }
        assert_eq!(sent[0].0 + sent[1].0, events);
        assert_eq!(sent[0].1, "(11,11),");
        assert!(sent[1].1.starts_with(&format!("({},", 11 + sent[0].0)), "{:?}", sent[1]);
    }

    #[test]
    fn what_failed_is_sent_again_without_another_row() {
        let oltp = oltp();
        let mut event = oltp.events(Seat { index: 0, count: 1 });
        let first = loop {
            if let Some(call) = event.next(&oltp) {
                break call.clone();
            }
        };
        event.restart(); // The statement met a deadlock.
        assert_eq!(event.next(&oltp), Some(&first));
        assert_eq!(event.next(&oltp), None);
    }

    #[test]
    fn the_rest_is_sent_at_the_end() {
        let oltp = oltp();
        let mut event = oltp.events(Seat { index: 0, count: 1 });
        assert_eq!(event.rest(), None);
        for _ in 0..3 {
            assert_eq!(event.next(&oltp), None);
        }
        let call = event.rest().unwrap();
        assert_eq!((text(&call.values[1]), call.rows_expected), ("(1,1),(2,2),(3,3)", Some(3)));
    }
}
