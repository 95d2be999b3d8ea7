//! Which statements make a transaction, with which parameters, and how many rows each promises.
//!
//! Facts from sysbench's bundled scripts: the order of the groups, one table per group, the row that is deleted
//! is inserted again. The contract is ours, and exact: a range that begins near the end of the table promises
//! only the rows that are there.

use dbdyno_door::plan::{OltpOptions, WorkloadName};
use dbdyno_door::record::StatementKind;
use dbdyno_draw::key::Keys;
use dbdyno_draw::{Rng, text};
use dbdyno_wire::Value;

use crate::kind::Kind;

/// Times a kind stands in a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The kind.
    pub kind: Kind,
    /// How often; never 0.
    pub per_event: u32,
}

/// A workload of the OLTP family.
#[derive(Clone, Debug)]
pub struct Oltp {
    shares: Vec<Share>,
    /// One entry per statement: position of its kind in `shares`, and whether a new table is drawn for it.
    steps: Vec<(usize, bool)>,
    tables: u32,
    rows: u32,
    range: u32,
    keys: Keys,
}

/// One statement to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Position of the kind in [`Oltp::shares`].
    pub kind: usize,
    /// Number of the prepared statement, in the order of [`Oltp::statements`].
    pub statement: usize,
    /// Its parameters.
    pub values: Vec<Value>,
    /// Rows it promises to return or change.
    pub rows_expected: u64,
}

/// The transaction under way on one connection.
#[derive(Debug)]
pub struct Event {
    step: usize,
    table: u32,
    /// The row that was deleted and must come back.
    deleted: u32,
    rng: Rng,
    call: Call,
}

impl Oltp {
    /// The workload `name` with `options`.
    pub fn new(name: WorkloadName, options: &OltpOptions) -> Self {
        let shares = shares(name, options);
        let mut steps = Vec::new();
        for (position, share) in shares.iter().enumerate() {
            // sysbench draws one table per group; delete and insert are one group, repeated as pairs.
            if share.kind == Kind::Insert {
                continue;
            }
            for repeat in 0..share.per_event {
                let pair = share.kind == Kind::Delete;
                steps.push((position, repeat == 0 && share.kind.has_table()));
                if pair {
                    steps.push((position + 1, false));
                }
            }
        }
        Self {
            shares,
            steps,
            tables: options.tables,
            rows: options.table_size,
            range: options.range_size,
            keys: Keys::Uniform { rows: options.table_size },
        }
    }

    /// The statement kinds that run, in order.
    pub fn shares(&self) -> &[Share] {
        &self.shares
    }

    /// SQL of every statement to prepare, in the order that [`Call::statement`] counts: kind by kind, and table
    /// by table within a kind.
    pub fn statements(&self) -> impl Iterator<Item = (Kind, String)> + '_ {
        self.shares.iter().flat_map(|share| {
            let tables = if share.kind.has_table() { self.tables } else { 1 };
            (1..=tables).map(|table| (share.kind, share.kind.sql(table)))
        })
    }

    /// The kinds as the records describe them.
    pub fn describe(&self) -> Vec<StatementKind> {
        let describe = |share: &Share| StatementKind {
            kind: share.kind.name().into(),
            sql: share.kind.sql(1),
            per_event: share.per_event,
            prepared: true,
        };
        self.shares.iter().map(describe).collect()
    }

    /// The transactions of one user.
    pub fn events(&self, rng: Rng) -> Event {
        let call = Call { kind: 0, statement: 0, values: Vec::new(), rows_expected: 0 };
        Event { step: 0, table: 1, deleted: 0, rng, call }
    }

    fn statement(&self, kind: usize, table: u32) -> usize {
        let before: usize = self.shares[..kind]
            .iter()
            .map(|share| if share.kind.has_table() { self.tables as usize } else { 1 })
            .sum();
        before + if self.shares[kind].kind.has_table() { table as usize - 1 } else { 0 }
    }
}

fn shares(name: WorkloadName, options: &OltpOptions) -> Vec<Share> {
    let reads = matches!(name, WorkloadName::OltpReadOnly | WorkloadName::OltpReadWrite);
    let writes = matches!(name, WorkloadName::OltpWriteOnly | WorkloadName::OltpReadWrite);
    let point_only = name == WorkloadName::OltpPointSelect;
    let ranges = reads && options.range_selects;
    let transaction = u32::from(!options.skip_trx && !point_only);
    let when = |condition: bool, times: u32| if condition { times } else { 0 };
    [
        (Kind::Begin, transaction),
        (Kind::Point, if point_only { 1 } else { when(reads, options.point_selects) }),
        (Kind::SimpleRange, when(ranges, options.simple_ranges)),
        (Kind::SumRange, when(ranges, options.sum_ranges)),
        (Kind::OrderRange, when(ranges, options.order_ranges)),
        (Kind::DistinctRange, when(ranges, options.distinct_ranges)),
        (Kind::IndexUpdate, when(writes, options.index_updates)),
        (Kind::NonIndexUpdate, when(writes, options.non_index_updates)),
        (Kind::Delete, when(writes, options.delete_inserts)),
        (Kind::Insert, when(writes, options.delete_inserts)),
        (Kind::Commit, transaction),
    ]
    .into_iter()
    .filter(|&(_, per_event)| per_event > 0)
    .map(|(kind, per_event)| Share { kind, per_event })
    .collect()
}

impl Event {
    /// Forgets what was sent, so that the next call is the first of a new transaction.
    pub fn restart(&mut self) {
        self.step = 0;
    }

    /// The statement that [`Event::next`] returned last.
    pub fn last(&self) -> &Call {
        &self.call
    }

    /// The next statement, or `None` at the end of the transaction; after that a new one begins.
    pub fn next(&mut self, oltp: &Oltp) -> Option<&Call> {
        let Some(&(position, draw_table)) = oltp.steps.get(self.step) else {
            self.step = 0;
            return None;
        };
        self.step += 1;
        if draw_table {
            self.table = 1 + self.rng.below(u64::from(oltp.tables)) as u32;
        }
        let kind = oltp.shares[position].kind;
        self.call.kind = position;
        self.call.statement = oltp.statement(position, self.table);
        self.call.values.clear();
        self.call.rows_expected = self.fill(kind, oltp);
        Some(&self.call)
    }

    /// Puts the parameters into `call` and returns the number of rows promised.
    fn fill(&mut self, kind: Kind, oltp: &Oltp) -> u64 {
        let values = &mut self.call.values;
        match kind {
            Kind::Begin | Kind::Commit => return 0,
            Kind::Point | Kind::IndexUpdate => values.push(id(oltp.keys.draw(&mut self.rng))),
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => {
                let low = oltp.keys.draw(&mut self.rng);
                values.push(id(low));
                values.push(Value::Int(i64::from(low) + i64::from(oltp.range) - 1));
                if kind != Kind::SumRange {
                    return u64::from(oltp.range.min(oltp.rows - low + 1));
                }
            }
            Kind::NonIndexUpdate => {
                values.push(Value::Text(text::c(&mut self.rng).to_vec()));
                values.push(id(oltp.keys.draw(&mut self.rng)));
            }
            Kind::Delete => {
                self.deleted = oltp.keys.draw(&mut self.rng);
                values.push(id(self.deleted));
            }
            Kind::Insert => {
                values.push(id(self.deleted));
                values.push(id(oltp.keys.draw(&mut self.rng)));
                values.push(Value::Text(text::c(&mut self.rng).to_vec()));
                values.push(Value::Text(text::pad(&mut self.rng).to_vec()));
            }
        }
        1
    }
}

fn id(value: u32) -> Value {
    Value::Int(i64::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(name: WorkloadName, options: &OltpOptions) -> Vec<&'static str> {
        let oltp = Oltp::new(name, options);
        let mut event = oltp.events(Rng::new(1, &[]));
        let mut kinds = Vec::new();
        while let Some(call) = event.next(&oltp) {
            kinds.push(oltp.shares()[call.kind].kind.name());
        }
        kinds
    }

    #[test]
    fn read_write_is_twenty_statements_in_sysbenchs_order() {
        let kinds = kinds(WorkloadName::OltpReadWrite, &OltpOptions::default());
        assert_eq!(kinds.len(), 20);
        assert_eq!(kinds[..2], ["begin", "point_select"]);
        assert_eq!(
            kinds[11..],
            [
                "simple_range",
                "sum_range",
                "order_range",
                "distinct_range",
                "index_update",
                "non_index_update",
                "delete",
                "insert",
                "commit"
            ]
        );
    }

    #[test]
    fn options_drop_what_they_name() {
        let options =
            OltpOptions { skip_trx: true, range_selects: false, delete_inserts: 2, ..Default::default() };
        let all = kinds(WorkloadName::OltpReadWrite, &options);
        assert_eq!(all.len(), 10 + 2 + 4);
        assert_eq!(all[12..], ["delete", "insert", "delete", "insert"]);
        assert_eq!(kinds(WorkloadName::OltpPointSelect, &OltpOptions::default()), ["point_select"]);
        assert_eq!(kinds(WorkloadName::OltpReadOnly, &OltpOptions::default()).len(), 16);
        assert_eq!(kinds(WorkloadName::OltpWriteOnly, &OltpOptions::default()).len(), 6);
    }

    #[test]
    fn the_deleted_row_comes_back_to_the_same_table() {
        let options = OltpOptions { tables: 8, ..Default::default() };
        let oltp = Oltp::new(WorkloadName::OltpWriteOnly, &options);
        let statements: Vec<_> = oltp.statements().map(|(_, sql)| sql).collect();
        let mut event = oltp.events(Rng::new(1, &[]));
        for _ in 0..100 {
            let mut deleted = None;
            while let Some(call) = event.next(&oltp) {
                let sql = &statements[call.statement];
                let table = sql.split("sbtest").nth(1).map(|rest| rest.split(' ').next().unwrap().to_owned());
                if sql.starts_with("DELETE") {
                    deleted = Some((table, call.values[0].clone()));
                } else if sql.starts_with("INSERT") {
                    assert_eq!(deleted, Some((table, call.values[0].clone())));
                }
            }
        }
    }

    #[test]
    fn a_range_at_the_end_promises_what_is_there() {
        let options = OltpOptions { table_size: 100, ..Default::default() };
        let oltp = Oltp::new(WorkloadName::OltpReadOnly, &options);
        let mut event = oltp.events(Rng::new(1, &[]));
        while let Some(call) = event.next(&oltp) {
            if let [Value::Int(low), Value::Int(high)] = call.values[..] {
                assert_eq!(high, low + 99);
                let sum = oltp.shares()[call.kind].kind == Kind::SumRange;
                assert_eq!(call.rows_expected, if sum { 1 } else { (100 - low + 1) as u64 });
            }
        }
    }
}
