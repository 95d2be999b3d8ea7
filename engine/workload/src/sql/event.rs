//! The transactions of one user.

use std::sync::Arc;

use dbdyno_random::Rng;
use dbdyno_schema::plan::{ResultType, TransactionPauses};
use dbdyno_wire::Value;

use super::compiled::{Compiled, Slot, Sql, Times};
use super::source::SourceState;
use crate::call::{Call, UserIndex};

/// The current transaction of one connection.
#[derive(Debug)]
pub struct Event {
    /// Number of the current transaction in the plan's list. A restart after an error does not change it, so that errors
    /// do not change the mix of transactions.
    transaction: Option<usize>,
    step: usize,
    /// The step at which a loop begins or ends next.
    loop_edge: usize,
    /// Number of the current or next loop.
    loop_number: usize,
    /// Number of the current repetition, from 1; 0 outside loops.
    repetition: u64,
    /// Number of repetitions of the current loop.
    repetitions: u64,
    /// Number of the transaction that ended last.
    previous: Option<usize>,
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
            loop_edge: 0,
            loop_number: 0,
            repetition: 0,
            repetitions: 0,
            previous: None,
            executed: 0,
            executed_max: compiled.each.unwrap_or(u64::MAX),
            values: compiled.sources.initial_values(user),
            rng_at_start: rng.clone(),
            rng,
            state: compiled.sources.initial_state(user),
            call: Call::default(),
        }
    }

    /// Restarts the transaction with the same random values.
    pub fn restart(&mut self) {
        (self.step, self.loop_edge, self.loop_number, self.repetition) = (0, 0, 0, 0);
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
        let steps = &compiled.transactions[transaction].steps;
        if self.step == self.loop_edge {
            self.pass_loop_edge(compiled, transaction);
        }
        let Some(step) = steps.get(self.step) else {
            (self.transaction, self.previous) = (None, Some(transaction));
            self.restart();
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
                Slot::Repetition => *value = Value::Int(self.repetition.max(1) as i64),
                Slot::QuestionMark => *value = Value::Verbatim(b"?".to_vec()),
            }
        }
        Some(&self.call)
    }

    /// Begins, repeats or ends the loop at the current step.
    fn pass_loop_edge(&mut self, compiled: &Compiled, transaction: usize) {
        self.loop_edge = usize::MAX;
        while let Some(current) = compiled.transactions[transaction].loops.get(self.loop_number) {
            if self.repetition == 0 {
                if self.step < current.first {
                    self.loop_edge = current.first;
                    return;
                }
                for &parameter in &current.draws {
                    compiled.sources.draw(parameter, &mut self.rng, &mut self.state, &mut self.values);
                }
                self.repetitions = self.times(current.times);
            }
            if self.repetition < self.repetitions {
                self.repetition += 1;
                (self.step, self.loop_edge) = (current.first, current.end);
                return;
            }
            (self.step, self.repetition) = (current.end, 0);
            self.loop_number += 1;
        }
    }

    fn times(&self, times: Times) -> u64 {
        match times {
            Times::Number(number) => number,
            Times::Parameter(parameter) => match self.values[parameter] {
                Value::Int(number) => number.max(0) as u64,
                _ => 0,
            },
        }
    }

    /// How long the user waits before its next transaction, which this chooses.
    pub(crate) fn pauses(&mut self, sql: &Sql) -> TransactionPauses {
        let compiled = &*sql.0;
        if !compiled.has_pauses {
            return TransactionPauses::default();
        }
        let next =
            self.transaction.or_else(|| self.choose(compiled)).map(|next| &compiled.transactions[next]);
        let previous = self.previous.map(|previous| &compiled.transactions[previous]).or(next);
        TransactionPauses {
            think_us: previous.map_or(0, |transaction| transaction.think_us),
            keying_us: next.map_or(0, |transaction| transaction.keying_us),
        }
    }

    fn choose(&mut self, compiled: &Compiled) -> Option<usize> {
        self.transaction = compiled.picker.next(self.executed, &mut self.rng);
        self.rng_at_start = self.rng.clone();
        self.state.begin();
        self.transaction
    }

    /// Stores values from the first row of the last statement's result.
    pub(crate) fn store_result(&mut self, sql: &Sql, row: &[Option<Vec<u8>>]) {
        let steps = self.transaction.map(|transaction| &sql.0.transactions[transaction].steps);
        let Some(step) = steps.and_then(|steps| steps.get(self.step.wrapping_sub(1))) else { return };
        for result in &*step.result_parameters {
            let text = row.get(result.column).and_then(Option::as_deref);
            self.values[result.parameter] = match (text, result.r#type) {
                (None, _) => Value::Null,
                (Some(text), ResultType::Text) => Value::Text(text.to_vec()),
                (Some(text), ResultType::Integer) => {
                    let number = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
                    number.map_or(Value::Null, Value::Int)
                }
            };
        }
    }
}
