//! The transactions of one user.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_wire::Value;

use super::compiled::{Compiled, Slot, Sql};
use super::source::SourceState;
use crate::call::{Call, UserIndex};

/// The current transaction of one connection.
#[derive(Debug)]
pub struct Event {
    /// Number of the current transaction in the plan's list. A restart after an error does not change it, so that errors
    /// do not change the mix of transactions.
    transaction: Option<usize>,
    step: usize,
    /// Number of transactions that have ended.
    executed: u64,
    /// Maximum number of transactions.
    executed_max: u64,
    /// Values of the parameters, by parameter number.
    values: Vec<Value>,
    rng: Rng,
    /// State of `rng` when the transaction began. A restart repeats its random values; sequences continue.
    rng_at_start: Rng,
    state: SourceState,
    call: Call,
}

impl Event {
    pub(super) fn new(compiled: &Arc<Compiled>, user: UserIndex) -> Self {
        let rng = Rng::new(compiled.seed, &[u64::from_be_bytes(*b"sqlusers"), user.global]);
        Self {
            transaction: None,
            step: 0,
            executed: 0,
            executed_max: compiled.each.unwrap_or(u64::MAX),
            values: compiled.sources.initial_values(),
            rng_at_start: rng.clone(),
            rng,
            state: compiled.sources.initial_state(user),
            call: Call::default(),
        }
    }

    /// Restarts the transaction with the same random values.
    pub fn restart(&mut self) {
        self.step = 0;
        if self.transaction.is_some() {
            self.rng = self.rng_at_start.clone();
            self.state.restart();
        }
    }

    /// Whether the user has completed all its transactions.
    pub(crate) fn is_done(&self) -> bool {
        self.executed >= self.executed_max
    }

    /// The statement that [`Event::next`] returned last.
    pub fn last(&self) -> &Call {
        &self.call
    }

    /// The next statement, or `None` at the end of the transaction; after that a new one begins.
    pub fn next(&mut self, sql: &Sql) -> Option<&Call> {
        let compiled = &*sql.0;
        let transaction = match self.transaction {
            Some(transaction) => transaction,
            None => self.choose(compiled)?,
        };
        let Some(step) = compiled.transactions[transaction].get(self.step) else {
            (self.transaction, self.step) = (None, 0);
            self.executed += 1;
            return None;
        };
        self.step += 1;
        for &parameter in &*step.draws {
            compiled.sources.draw(parameter, &mut self.rng, &mut self.state, &mut self.values);
        }
        let call = &mut self.call;
        (call.kind, call.statement) = (step.kind, step.statement);
        call.class = Some(step.class);
        call.rows_expected = match step.rows_parameter.map(|number| &self.values[number]) {
            Some(Value::Int(rows)) => u64::try_from(*rows).ok(),
            _ => step.rows,
        };
        call.is_result_used = !step.result_parameters.is_empty();
        let slots = &compiled.statements[step.statement].slots;
        call.values.resize(slots.len(), Value::Null);
        for (value, slot) in call.values.iter_mut().zip(slots) {
            match slot {
                Slot::Parameter(number) => value.clone_from(&self.values[*number]),
                Slot::QuestionMark => *value = Value::Verbatim(b"?".to_vec()),
            }
        }
        Some(&self.call)
    }

    fn choose(&mut self, compiled: &Compiled) -> Option<usize> {
        self.transaction = compiled.picker.next(self.executed, &mut self.rng);
        self.rng_at_start = self.rng.clone();
        self.state.begin();
        self.transaction
    }

    /// Stores values from the first row of the last statement's result.
    pub(crate) fn store_result(&mut self, sql: &Sql, row: &[Option<Vec<u8>>]) {
        let steps = self.transaction.map(|transaction| &sql.0.transactions[transaction]);
        let Some(step) = steps.and_then(|steps| steps.get(self.step.wrapping_sub(1))) else { return };
        for &(parameter, column) in &*step.result_parameters {
            self.values[parameter] = match row.get(column) {
                Some(Some(text)) => Value::Text(text.clone()),
                _ => Value::Null,
            };
        }
    }
}
