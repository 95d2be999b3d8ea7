//! The parameters of a transaction's statements, and the number of rows that each statement should return or change.
//!
//! As in sysbench's bundled scripts, groups of statements have a fixed order, each group uses one table, and the
//! deleted row is inserted again. The expected number of rows is exact: for a range that begins near the end of the
//! table, only existing rows count.

use dbdyno_random::key::Keys;
use dbdyno_random::{Rng, text};
use dbdyno_schema::description::StatementDescription;
use dbdyno_schema::placeholders::Quoting;
use dbdyno_schema::plan::{Plan, StatementMode, Workload, WorkloadName};
use dbdyno_schema::record::StatementKind;
use dbdyno_wire::Value;

use crate::bulk::Bulk;
use crate::call::{Call, Statement, UserIndex};
use crate::composition::{KindCount, composition};
use crate::kind::{Dialect, Kind, TableChoice};
use crate::new_ids::{NewIds, NewRowIds};
use crate::positions::positions;

/// A workload of the OLTP family.
#[derive(Clone, Debug)]
pub struct Oltp {
    workload: Workload,
    composition: Vec<KindCount>,
    /// For each statement of a transaction, the position of its kind in `composition`, and whether to choose a random
    /// table before it.
    steps: Vec<(usize, bool)>,
    /// Number of the first statement of each kind.
    first_statement: Vec<usize>,
    seed: u64,
    dialect: Dialect,
    new_row_ids: NewRowIds,
}

/// The current transaction of one connection.
#[derive(Debug)]
pub struct Event {
    step: usize,
    table: u32,
    /// Id of the row that was deleted and will be inserted again.
    deleted: u64,
    /// Distribution of the ids in parameters.
    keys: Keys,
    /// Ids of added rows, if the table has no AUTO_INCREMENT.
    new_ids: NewIds,
    rng: Rng,
    call: Call,
    /// Rows of bulk_insert that have not been sent.
    bulk: Option<Bulk>,
}

impl Oltp {
    /// The workload of a plan. `new_row_ids` is the rule for the ids of added rows.
    pub fn from_plan(plan: &Plan, new_row_ids: NewRowIds) -> Self {
        Self {
            dialect: Dialect::from_target(&plan.target),
            new_row_ids,
            ..Self::new(&plan.workload, plan.seed)
        }
    }

    /// A workload with this seed, in MySQL's SQL.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        let options = &workload.options;
        let composition = composition(workload.name, options);
        let mut steps = Vec::new();
        for (position, count) in composition.iter().enumerate() {
            // One table is chosen per group. A delete and its insert form one group, which is repeated as a pair.
            if count.kind == Kind::Insert {
                continue;
            }
            for repeat in 0..count.per_event {
                steps.push((position, repeat == 0 && count.kind.tables() == TableChoice::Any));
                if composition.get(position + 1).is_some_and(|next| next.kind == Kind::Insert) {
                    steps.push((position + 1, false));
                }
            }
        }
        let mut next = 0;
        let mut first_statement = Vec::with_capacity(composition.len());
        for count in &composition {
            first_statement.push(next);
            next += if count.kind.tables() == TableChoice::Any { options.tables as usize } else { 1 };
        }
        Self {
            workload: workload.clone(),
            composition,
            steps,
            first_statement,
            seed,
            dialect: Dialect::default(),
            new_row_ids: NewRowIds::default(),
        }
    }

    /// All statements, by kind and then by table; [`Call::statement`] is an index of this list.
    pub fn statements(&self) -> impl Iterator<Item = Statement> + '_ {
        let options = &self.workload.options;
        self.composition.iter().flat_map(move |count| {
            let statement = |table| Statement {
                sql: count.kind.sql(table, options, self.dialect),
                types: count.kind.types(options),
                prepared: self.prepares(count),
            };
            (1..=self.copies(count.kind)).map(statement)
        })
    }

    /// Numbers of the statements in the order in which the bundled scripts prepare them.
    pub fn preparation_order(&self) -> Vec<usize> {
        let is_point_select_first = self.workload.name == WorkloadName::OltpReadOnly;
        let rank = |kind: Kind| match kind {
            Kind::PointSelect if is_point_select_first => 0,
            Kind::Begin => 1,
            Kind::Commit => 2,
            _ => 3,
        };
        let mut numbers: Vec<(u8, usize)> = Vec::new();
        for (count, first) in self.composition.iter().zip(&self.first_statement) {
            let copies = self.copies(count.kind) as usize;
            numbers.extend((*first..first + copies).map(|number| (rank(count.kind), number)));
        }
        numbers.sort_by_key(|&(rank, _)| rank);
        numbers.into_iter().map(|(_, number)| number).collect()
    }

    /// The statement kinds, for the record `hello`.
    pub fn describe(&self) -> Vec<StatementKind> {
        let describe = |count: &KindCount| StatementKind {
            kind: count.kind.name().into(),
            sql: count.kind.sql(1, &self.workload.options, self.dialect),
            per_event: count.per_event,
            per_connection: self.copies(count.kind),
            prepared: self.prepares(count),
        };
        self.composition.iter().map(describe).collect()
    }

    /// The statement kinds, for the output of `describe`.
    pub(crate) fn describe_statements(&self) -> Vec<StatementDescription> {
        let describe = |count: &KindCount| {
            let sql = count.kind.sql(1, &self.workload.options, self.dialect);
            StatementDescription {
                kind: count.kind.name().into(),
                per_transaction: count.per_event,
                prepared: self.prepares(count),
                parameters: positions(&sql, Quoting::Mysql),
                rows: count.rows,
                sql,
            }
        };
        self.composition.iter().map(describe).collect()
    }

    /// The transactions of one user.
    pub fn events(&self, user: UserIndex) -> Event {
        let rows = self.workload.options.table_size;
        let (low, high) = match self.workload.name {
            // Every connection reads a separate part of the rows.
            WorkloadName::SelectRandomPoints | WorkloadName::SelectRandomRanges => {
                // Adjacent parts share one id.
                let edge = |part: u64| (u128::from(rows) * u128::from(part) / u128::from(user.users)) as u64;
                (edge(user.global), edge(user.global + 1))
            }
            _ => (1, rows),
        };
        Event {
            step: 0,
            table: 1,
            deleted: 0,
            keys: Keys::new(&self.workload.keys, low, high),
            new_ids: NewIds::new(self.new_row_ids, self.seed, user),
            rng: Rng::new(self.seed, &[u64::from_be_bytes(*b"virtuser"), user.global]),
            call: Call::default(),
            bulk: (self.workload.name == WorkloadName::BulkInsert)
                .then(|| Bulk::new(format!("sbtest{}", user.global + 1), self.new_row_ids)),
        }
    }

    /// Number of different statements of a kind on each connection: one per table that the kind may use.
    fn copies(&self, kind: Kind) -> u32 {
        if kind.tables() == TableChoice::Any { self.workload.options.tables } else { 1 }
    }

    fn prepares(&self, count: &KindCount) -> bool {
        self.workload.statements == StatementMode::Prepared
            && ![Kind::NewRow, Kind::BulkInsert].contains(&count.kind)
    }

    #[inline]
    fn statement(&self, kind: usize, table: u32) -> usize {
        let offset =
            if self.composition[kind].kind.tables() == TableChoice::Any { table as usize - 1 } else { 0 };
        self.first_statement[kind] + offset
    }
}

impl Event {
    /// Restarts the transaction: the next call is its first.
    pub fn restart(&mut self) {
        self.step = 0;
    }

    /// The statement that [`Event::next`] returned last.
    pub fn last(&self) -> &Call {
        &self.call
    }

    /// The next statement, or `None` at the end of the transaction; after that a new one begins.
    pub fn next(&mut self, oltp: &Oltp) -> Option<&Call> {
        let Some(&(position, new_table)) = oltp.steps.get(self.step) else {
            return self.end_or_bulk();
        };
        self.step += 1;
        if new_table {
            self.table = 1 + self.rng.below(u64::from(oltp.workload.options.tables)) as u32;
        }
        let KindCount { kind, rows, .. } = oltp.composition[position];
        self.call.kind = position;
        self.call.statement = oltp.statement(position, self.table);
        self.call.values.clear();
        self.call.rows_expected = rows;
        self.fill(kind, oltp);
        Some(&self.call)
    }

    /// Ends the transaction. If the event's row does not fit into the buffer of bulk_insert, returns the INSERT that sends
    /// the buffered rows first.
    fn end_or_bulk(&mut self) -> Option<&Call> {
        let stored = std::mem::take(&mut self.step) > 0;
        let bulk = self.bulk.as_mut()?;
        let values = &mut self.call.values;
        if stored || values.is_empty() {
            bulk.begin(values);
        }
        if bulk.add(values) {
            return None;
        }
        self.step = 1; // The next call adds the event's row to the empty buffer.
        self.remaining_insert()
    }

    /// The INSERT of the buffered rows that no event has sent; `None` if the buffer is empty.
    pub fn remaining_insert(&mut self) -> Option<&Call> {
        let rows = self.bulk.as_ref().map_or(0, |bulk| bulk.rows);
        self.call.rows_expected = Some(rows);
        (rows > 0).then_some(&self.call)
    }

    /// Whether events buffer rows for a later INSERT.
    #[inline]
    pub fn has_row_buffer(&self) -> bool {
        self.bulk.is_some()
    }

    /// The statement that selects the last id of the user's own table, if new ids continue after it.
    pub fn last_id_sql(&self) -> Option<String> {
        self.bulk.as_ref().and_then(Bulk::last_id_sql)
    }

    /// Continues ids after `last`.
    pub fn continue_ids_after(&mut self, last: u64) {
        if let Some(bulk) = &mut self.bulk {
            bulk.continue_ids_after(last);
        }
    }

    /// Appends the parameters to `call` and corrects the expected rows of a range near the end of the table.
    fn fill(&mut self, kind: Kind, oltp: &Oltp) {
        let options = &oltp.workload.options;
        match kind {
            Kind::Begin | Kind::Commit | Kind::BulkInsert => {}
            Kind::PointSelect | Kind::IndexUpdate => self.push_key(),
            Kind::SimpleRange | Kind::SumRange | Kind::OrderRange | Kind::DistinctRange => {
                let low = self.keys.draw(&mut self.rng);
                self.push(low);
                self.push(low + options.range_size - 1);
                if kind != Kind::SumRange {
                    self.call.rows_expected = Some(options.range_size.min(options.table_size - low + 1));
                }
            }
            Kind::NonIndexUpdate => {
                self.push_text();
                self.push_key();
            }
            Kind::Delete => {
                self.deleted = self.keys.draw(&mut self.rng);
                self.push(self.deleted);
            }
            Kind::Insert => {
                self.push(self.deleted);
                self.push_row();
            }
            Kind::NewRow => {
                let id = if options.auto_inc { 0 } else { self.new_ids.next() };
                if !(options.auto_inc && oltp.dialect == Dialect::Postgresql) {
                    self.call.values.push(Value::Int(id));
                }
                self.push_row();
            }
            Kind::RandomPoints => (0..options.random_points).for_each(|_| self.push_key()),
            Kind::RandomRanges => {
                for _ in 0..options.number_of_ranges {
                    let low = self.keys.draw(&mut self.rng);
                    self.push(low);
                    self.push(low + u64::from(options.delta));
                }
            }
        }
    }

    #[inline]
    fn push(&mut self, value: u64) {
        self.call.values.push(Value::Int(value as i64));
    }

    #[inline]
    fn push_key(&mut self) {
        let key = self.keys.draw(&mut self.rng);
        self.push(key);
    }

    fn push_text(&mut self) {
        self.call.values.push(Value::Text(text::c_value(&mut self.rng).to_vec()));
    }

    /// Appends values for the columns k, c and pad.
    fn push_row(&mut self) {
        self.push_key();
        self.push_text();
        self.call.values.push(Value::Text(text::pad_value(&mut self.rng).to_vec()));
    }
}

#[cfg(test)]
mod tests {
    use dbdyno_schema::plan::OltpOptions;

    use super::*;

    const USER: UserIndex = UserIndex { global: 0, users: 1 };

    fn oltp(name: WorkloadName, options: &OltpOptions) -> Oltp {
        let workload = Workload {
            name,
            options: options.clone(),
            keys: Default::default(),
            statements: Default::default(),
            sql: None,
            script: None,
        };
        Oltp::new(&workload, 1)
    }

    fn kinds(name: WorkloadName, options: &OltpOptions) -> Vec<&'static str> {
        let oltp = oltp(name, options);
        let mut event = oltp.events(USER);
        let mut kinds = Vec::new();
        while let Some(call) = event.next(&oltp) {
            kinds.push(oltp.composition[call.kind].kind.name());
        }
        kinds
    }

    #[test]
    fn read_write_is_twenty_statements_in_order() {
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
    fn options_remove_statements() {
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
    fn the_deleted_row_is_inserted_into_the_same_table() {
        let options = OltpOptions { tables: 8, ..Default::default() };
        let oltp = oltp(WorkloadName::OltpWriteOnly, &options);
        let statements: Vec<_> = oltp.statements().map(|statement| statement.sql).collect();
        let mut event = oltp.events(USER);
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
    fn a_range_at_the_end_of_the_table_expects_only_existing_rows() {
        let options = OltpOptions { table_size: 100, ..Default::default() };
        let oltp = oltp(WorkloadName::OltpReadOnly, &options);
        let mut event = oltp.events(USER);
        while let Some(call) = event.next(&oltp) {
            if let [Value::Int(low), Value::Int(high)] = call.values[..] {
                assert_eq!(high, low + 99);
                let sum = oltp.composition[call.kind].kind == Kind::SumRange;
                assert_eq!(call.rows_expected, Some(if sum { 1 } else { (100 - low + 1) as u64 }));
            }
        }
    }

    #[test]
    fn single_statement_workloads_have_no_transaction() {
        use WorkloadName::*;
        for (name, kind) in [
            (OltpUpdateIndex, "index_update"),
            (OltpUpdateNonIndex, "non_index_update"),
            (OltpDelete, "delete"),
            (OltpInsert, "new_row"),
            (SelectRandomPoints, "random_points"),
            (SelectRandomRanges, "random_ranges"),
        ] {
            assert_eq!(kinds(name, &OltpOptions::default()), [kind]);
        }
    }

    #[test]
    fn ids_of_new_rows_are_unique_and_differ_from_loaded_ids() {
        let options = OltpOptions { auto_inc: false, ..Default::default() };
        let oltp = oltp(WorkloadName::OltpInsert, &options);
        let mut ids = std::collections::HashSet::new();
        for index in 0..4 {
            let mut event = oltp.events(UserIndex { global: index, users: 4 });
            for _ in 0..100 {
                let Value::Int(id) = event.next(&oltp).unwrap().values[0] else { panic!() };
                assert!((i64::from(i32::MIN)..0).contains(&id), "{id}");
                assert!(ids.insert(id), "{id} twice");
                assert!(event.next(&oltp).is_none());
            }
        }
    }

    #[test]
    fn random_points_and_ranges_have_as_many_parameters_as_placeholders() {
        let options = OltpOptions { random_points: 3, number_of_ranges: 2, delta: 7, ..Default::default() };
        for (name, parameters) in
            [(WorkloadName::SelectRandomPoints, 3), (WorkloadName::SelectRandomRanges, 4)]
        {
            let oltp = oltp(name, &options);
            let sql = oltp.statements().next().unwrap().sql;
            let mut event = oltp.events(UserIndex { global: 2, users: 5 });
            let values = event.next(&oltp).unwrap().values.clone();
            assert_eq!((values.len(), sql.matches('?').count()), (parameters, parameters), "{sql}");
            // The third of five users reads ids 4,000 to 6,000 of 10,000.
            let Value::Int(first) = values[0] else { panic!() };
            assert!((4000..=6000).contains(&first), "{first}");
        }
    }
}
