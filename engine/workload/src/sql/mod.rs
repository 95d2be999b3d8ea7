//! Compiles user-defined SQL into the calls that the runner executes.
//!
//! # Layout
//! - this file: the compiler; `compiled`: its result.
//! - `event`: the transactions of one user.
//! - `source`: the sources of parameters; `recent`: the rows that a user has inserted last; [`columns`]: CSV files, read before a run.

pub mod columns;
mod compiled;
mod event;
mod recent;
pub(crate) mod source;

use std::collections::HashMap;
use std::sync::Arc;

use dbdyno_schema::Plan;
use dbdyno_schema::description::StatementDescription;
use dbdyno_schema::placeholders::{Fragment, Quoting, first_word, fragments};
use dbdyno_schema::plan::{
    LoopTimes, ParameterSource, SqlStatement, SqlTransaction, SqlWorkload, StatementLoop, StatementMode,
};
use dbdyno_schema::record::{StatementClass, StatementKind};
use dbdyno_wire::scripted::Type;

pub use self::columns::Columns;
pub use self::compiled::Sql;
use self::compiled::{Compiled, Loop, ResultParameter, Slot, Step, Template, Times, Transaction};
pub use self::event::Event;
use self::source::Sources;
use crate::call::{Statement, UserIndex};
use crate::picker::TransactionPicker;
use crate::positions::positions;

impl Sql {
    /// The workload `custom` of a plan that has no errors. `prepared` is the mode of statements that do not set `mode`.
    pub(crate) fn new(custom: &SqlWorkload, prepared: bool, columns: &Columns, plan: &Plan) -> Self {
        let sources = Sources::new(&custom.parameters, columns);
        let quoting = plan.target.quoting();
        let mut compiler = Compiler::new(custom, prepared, quoting, &sources);
        let transactions = (0..custom.transactions.len()).map(|index| compiler.transaction(index)).collect();
        let weights: Vec<f64> = custom.transactions.iter().map(|transaction| transaction.weight).collect();
        Self(Arc::new(Compiled {
            transactions,
            picker: TransactionPicker::new(custom, weights.len(), &weights, plan),
            statements: compiler.statements,
            kinds: compiler.kinds,
            sources,
            session: custom.session.clone(),
            teardown: custom.teardown.clone(),
            has_pauses: custom.has_pauses(),
            each: custom.each,
            seed: plan.seed,
        }))
    }

    /// Every distinct statement, with a `?` for each parameter.
    pub fn statements(&self) -> Vec<Statement> {
        let kind = |slot: &Slot| match slot {
            Slot::Parameter(number) => self.0.sources.value_type(*number),
            Slot::Repetition => Type::Int,
            Slot::QuestionMark => Type::Text,
        };
        let statement = |template: &Template| Statement {
            sql: template.sql.clone(),
            types: template.slots.iter().map(kind).collect(),
            prepared: template.prepared,
        };
        self.0.statements.iter().map(statement).collect()
    }

    /// The statement kinds for the records.
    pub fn describe(&self) -> Vec<StatementKind> {
        self.0.kinds.clone()
    }

    /// Every statement of the plan's transactions, as the plan writes it.
    pub(crate) fn describe_statements(&self, plan: &Plan) -> Vec<StatementDescription> {
        let transactions =
            plan.workload.custom_sql().map(|custom| custom.transactions.as_slice()).unwrap_or_default();
        let written = transactions.iter().flat_map(|transaction| {
            transaction
                .statements
                .iter()
                .enumerate()
                .map(move |(index, one)| (one, transaction.repetitions(index)))
        });
        let mut steps = self.0.transactions.iter().flat_map(|transaction| &transaction.steps);
        let describe = |(statement, repetitions): (&SqlStatement, Option<u32>)| {
            // Each repeat of a statement is a separate step.
            let step = steps.next().expect("a statement compiles to a step for each repeat");
            for _ in 1..statement.repeat {
                steps.next();
            }
            let mut parameters = positions(&statement.sql, plan.target.quoting());
            parameters.retain(|parameter| parameter.name.is_some());
            StatementDescription {
                kind: self.0.kinds[step.kind].kind.clone(),
                sql: statement.sql.clone(),
                per_transaction: statement.repeat * repetitions.unwrap_or(1),
                prepared: self.0.statements[step.statement].prepared,
                parameters,
                rows: statement.rows,
            }
        };
        written.map(describe).collect()
    }

    /// Statements that every connection sends first.
    pub(crate) fn session(&self) -> &[String] {
        &self.0.session
    }

    /// Statements that every connection sends last.
    pub(crate) fn teardown(&self) -> &[String] {
        &self.0.teardown
    }

    /// The transactions of one user.
    pub fn events(&self, user: UserIndex) -> Event {
        Event::new(&self.0, user)
    }
}

/// Compiles transactions.
struct Compiler<'a> {
    custom: &'a SqlWorkload,
    sources: &'a Sources,
    prepared: bool,
    quoting: Quoting,
    statements: Vec<Template>,
    statement_numbers: HashMap<Template, usize>,
    kinds: Vec<StatementKind>,
    kind_numbers: HashMap<String, usize>,
}

impl<'a> Compiler<'a> {
    fn new(custom: &'a SqlWorkload, prepared: bool, quoting: Quoting, sources: &'a Sources) -> Self {
        Self {
            custom,
            sources,
            prepared,
            quoting,
            statements: Vec::new(),
            statement_numbers: HashMap::new(),
            kinds: Vec::new(),
            kind_numbers: HashMap::new(),
        }
    }

    fn transaction(&mut self, index: usize) -> Transaction {
        let plan = &self.custom.transactions[index];
        let mut drawn = Vec::new();
        let (mut steps, mut loops) = (Vec::new(), Vec::<Loop>::new());
        for (position, statement) in plan.statements.iter().enumerate() {
            let number = position as u32 + 1;
            let current = plan.loops.iter().find(|one| (one.first..=one.last).contains(&number));
            let mut used = Vec::new();
            if let Some(begun) = current.filter(|one| one.first == number) {
                let times = self.times(&begun.times);
                used.extend(if let Times::Parameter(parameter) = times { Some(parameter) } else { None });
                loops.push(Loop { first: steps.len(), end: steps.len(), times, draws: Vec::new() });
            }
            let result_parameters: Arc<[_]> = self.result_parameters(index, position).into();
            let template = self.template(statement, !result_parameters.is_empty());
            // A parameter gets a value before its first use, and a parameter in `draw` before every repeat.
            let named = statement.draw.iter().filter_map(|name| self.parameter_number(name));
            let drawn_each_time = self.parameters_to_redraw(named);
            used.extend(drawn_each_time.iter().flat_map(|parameter| self.sources.inputs(*parameter)));
            used.extend(template.slots.iter().filter_map(|slot| match slot {
                Slot::Parameter(parameter) => Some(*parameter),
                Slot::Repetition | Slot::QuestionMark => None,
            }));
            drawn.extend_from_slice(&drawn_each_time);
            let mut first = self.parameters_to_draw(used.into_iter(), &drawn);
            drawn.extend_from_slice(&first);
            if current.is_some() {
                // A repetition must not draw them again.
                loops.last_mut().into_iter().for_each(|begun| begun.draws.append(&mut first));
            }
            first.extend_from_slice(&drawn_each_time);
            first.sort_by_key(|parameter| self.depth(*parameter));
            steps.extend(self.steps(
                statement,
                (index, position),
                template,
                (&first, &drawn_each_time),
                result_parameters,
            ));
            if current.is_some() {
                loops.last_mut().into_iter().for_each(|begun| begun.end = steps.len());
            }
        }
        loops.iter_mut().for_each(|one| one.draws.sort_by_key(|parameter| self.depth(*parameter)));
        Transaction { steps, loops, keying_us: plan.keying_us, think_us: plan.think_us }
    }

    /// The steps of the statement at `place`, one for each repeat. `draws` has the parameters that get a new value before
    /// the first one, and those before each other.
    fn steps(
        &mut self,
        statement: &SqlStatement,
        place: (usize, usize),
        template: Template,
        draws: (&[usize], &[usize]),
        result_parameters: Arc<[ResultParameter]>,
    ) -> Vec<Step> {
        let class = statement_class(&statement.sql, self.quoting);
        let (number, is_new) = self.number(template);
        let rows_parameter = statement.rows_parameter.as_deref().and_then(|name| self.parameter_number(name));
        let times = self.custom.transactions[place.0].repetitions(place.1).unwrap_or(0);
        let name = self.custom.statement_name(place.0, place.1);
        let kind = self.kind(&name, (statement, times), number, is_new);
        let step = |draws: &[usize]| Step {
            kind,
            statement: number,
            rows: statement.rows,
            rows_parameter,
            class,
            draws: draws.into(),
            result_parameters: Arc::clone(&result_parameters),
        };
        let mut steps = vec![step(draws.0)];
        let repeated = step(draws.1);
        steps.extend((1..statement.repeat).map(|_| repeated.clone()));
        steps
    }

    fn times(&self, times: &LoopTimes) -> Times {
        match times {
            LoopTimes::Number(number) => Times::Number(u64::from(*number)),
            LoopTimes::Parameter(name) => Times::Parameter(
                self.parameter_number(name).expect("Plan::problems rejects unknown parameters"),
            ),
        }
    }

    /// How many other parameters must get their values before this one.
    fn depth(&self, parameter: usize) -> usize {
        self.sources.inputs(parameter).iter().map(|input| 1 + self.depth(*input)).max().unwrap_or(0)
    }

    fn parameter_number(&self, parameter: &str) -> Option<usize> {
        self.custom.parameters.keys().position(|key| key == parameter)
    }

    /// The `parameters` that need a separate new value, in the order in which to draw them. Excludes parameters that are not
    /// drawn, and those that get their value from the same line of a file as another one.
    fn parameters_to_redraw(&self, parameters: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut drawn: Vec<usize> = Vec::new();
        for parameter in parameters.filter(|parameter| self.sources.is_drawn(*parameter)) {
            if !drawn.iter().any(|other| self.sources.are_drawn_together(parameter, *other)) {
                drawn.push(parameter);
            }
        }
        drawn.sort_by_key(|parameter| self.depth(*parameter));
        drawn
    }

    /// The `parameters` and those on which they depend that do not get a value with a parameter in `before`.
    fn parameters_to_draw(&self, parameters: impl Iterator<Item = usize>, before: &[usize]) -> Vec<usize> {
        let mut needed = Vec::new();
        for parameter in parameters {
            needed.push(parameter);
            let mut next = needed.len() - 1;
            while let Some(parameter) = needed.get(next) {
                needed.extend_from_slice(self.sources.inputs(*parameter));
                next += 1;
            }
        }
        let has_value =
            |one: &usize| before.iter().any(|other| self.sources.are_drawn_together(*one, *other));
        needed.retain(|parameter| !has_value(parameter));
        self.parameters_to_redraw(needed.into_iter())
    }

    /// Parameters that get their value from the result of a statement and are used after it.
    fn result_parameters(&self, transaction: usize, position: usize) -> Vec<ResultParameter> {
        let name = self.custom.statement_name(transaction, position);
        let transaction = &self.custom.transactions[transaction];
        let later = &transaction.statements[position + 1..];
        let uses = |parameter: &str| {
            let in_text = |statement: &SqlStatement| {
                fragments(&statement.sql, self.quoting).contains(&Fragment::Parameter(parameter))
            };
            let repeats =
                |one: &StatementLoop| matches!(&one.times, LoopTimes::Parameter(name) if name == parameter);
            later.iter().any(in_text) || transaction.loops.iter().any(repeats)
        };
        let result_parameter =
            |(number, (parameter, generator)): (usize, (&String, &ParameterSource))| match generator {
                ParameterSource::Result { statement, column, r#type }
                    if *statement == name && uses(parameter) =>
                {
                    Some(ResultParameter { parameter: number, column: *column as usize - 1, r#type: *r#type })
                }
                _ => None,
            };
        self.custom.parameters.iter().enumerate().filter_map(result_parameter).collect()
    }

    fn template(&self, statement: &SqlStatement, is_result_used: bool) -> Template {
        let requested = statement.mode.map_or(self.prepared, |mode| mode == StatementMode::Prepared);
        let fragments = fragments(&statement.sql, self.quoting);
        // In a statement prepared for PostgreSQL every `?` becomes a parameter, even in quotes, so such a statement is
        // sent as text.
        let marked = self.quoting == Quoting::Postgresql && statement.sql.contains('?');
        let prepared = requested && !is_result_used && !marked;
        let (mut sql, mut slots) = (String::with_capacity(statement.sql.len()), Vec::new());
        for fragment in fragments {
            match fragment {
                Fragment::Parameter(name) => {
                    let number =
                        self.parameter_number(name).expect("Plan::problems rejects unknown parameters");
                    let is_repetition = self.sources.is_repetition(number);
                    slots.push(if is_repetition { Slot::Repetition } else { Slot::Parameter(number) });
                    sql.push('?');
                }
                Fragment::Text(text) => {
                    if !prepared {
                        slots.extend(text.matches('?').map(|_| Slot::QuestionMark));
                    }
                    sql.push_str(text);
                }
                Fragment::QuestionMark => {
                    slots.push(Slot::QuestionMark);
                    sql.push('?');
                }
            }
        }
        Template { sql, prepared, slots }
    }

    /// The number of a statement text, and whether the text is new. Equal texts have one number.
    fn number(&mut self, template: Template) -> (usize, bool) {
        let next = self.statements.len();
        let number = *self.statement_numbers.entry(template.clone()).or_insert(next);
        if number == next {
            self.statements.push(template);
        }
        (number, number == next)
    }

    /// Adds a statement to the kind `name`, and returns the number of the kind.
    fn kind(
        &mut self,
        name: &str,
        (statement, times): (&SqlStatement, u32),
        number: usize,
        is_new: bool,
    ) -> usize {
        let kind = *self.kind_numbers.entry(name.to_owned()).or_insert_with(|| {
            self.kinds.push(StatementKind {
                kind: name.to_owned(),
                sql: statement.sql.clone(),
                per_event: 0,
                per_connection: 0,
                prepared: self.statements[number].prepared,
            });
            self.kinds.len() - 1
        });
        let described = &mut self.kinds[kind];
        // With several transactions, only some events send the statement; a loop may depend on a parameter.
        if has_fixed_count(&self.custom.transactions) {
            described.per_event += statement.repeat * times;
        }
        if is_new || described.per_connection == 0 {
            described.per_connection += 1;
        }
        kind
    }
}

/// Whether every transaction has the same number of statements.
fn has_fixed_count(transactions: &[SqlTransaction]) -> bool {
    let is_fixed = |one: &StatementLoop| matches!(one.times, LoopTimes::Number(_));
    matches!(transactions, [only] if only.loops.iter().all(is_fixed))
}

/// The class of a statement, determined by its first word.
pub(crate) fn statement_class(sql: &str, quoting: Quoting) -> StatementClass {
    match first_word(sql, quoting).as_str() {
        "SELECT" | "WITH" | "SHOW" | "TABLE" | "VALUES" | "EXPLAIN" | "DESCRIBE" | "DESC" | "HANDLER" => {
            StatementClass::Read
        }
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" | "MERGE" | "LOAD" => StatementClass::Write,
        _ => StatementClass::Other,
    }
}

#[cfg(test)]
mod tests;
