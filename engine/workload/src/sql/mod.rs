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
use dbdyno_schema::plan::{ParameterSource, SqlStatement, SqlWorkload, StatementMode};
use dbdyno_schema::record::{StatementClass, StatementKind};
use dbdyno_wire::scripted::Type;

pub use self::columns::Columns;
pub use self::compiled::Sql;
use self::compiled::{Compiled, Slot, Step, Template};
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
            each: custom.each,
            seed: plan.seed,
        }))
    }

    /// Every distinct statement, with a `?` for each parameter.
    pub fn statements(&self) -> Vec<Statement> {
        let kind = |slot: &Slot| match slot {
            Slot::Parameter(number) => self.0.sources.value_type(*number),
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
        let written = transactions.iter().flat_map(|transaction| &transaction.statements);
        let mut steps = self.0.transactions.iter().flatten();
        let describe = |statement: &SqlStatement| {
            // Each repeat is a separate step.
            let step = steps.next().expect("a statement compiles to a step for each repeat");
            for _ in 1..statement.repeat {
                steps.next();
            }
            let mut parameters = positions(&statement.sql, plan.target.quoting());
            parameters.retain(|parameter| parameter.name.is_some());
            StatementDescription {
                kind: self.0.kinds[step.kind].kind.clone(),
                sql: statement.sql.clone(),
                per_transaction: statement.repeat,
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

    fn transaction(&mut self, index: usize) -> Vec<Step> {
        let statements = &self.custom.transactions[index].statements;
        let mut drawn = Vec::new();
        let mut steps = Vec::new();
        for (position, statement) in statements.iter().enumerate() {
            let name = self.custom.statement_name(index, position);
            let later = &statements[position + 1..];
            let result_parameters = self.result_parameters(&name, later);
            let template = self.template(statement, !result_parameters.is_empty());
            // A parameter gets a value before its first use, and a parameter in `draw` before every repeat.
            let named = statement.draw.iter().filter_map(|name| self.parameter_number(name));
            let drawn_each_time = self.parameters_to_draw(named, &[]);
            let used = template.slots.iter().filter_map(|slot| match slot {
                Slot::Parameter(parameter) => Some(*parameter),
                Slot::QuestionMark => None,
            });
            drawn.extend_from_slice(&drawn_each_time);
            let mut first = self.parameters_to_draw(used, &drawn);
            drawn.extend_from_slice(&first);
            first.extend_from_slice(&drawn_each_time);
            let class = statement_class(&statement.sql, self.quoting);
            let (number, is_new) = self.number(template);
            let kind = self.kind(&name, statement, number, is_new);
            let result_parameters: Arc<[_]> = result_parameters.into();
            let rows_parameter =
                statement.rows_parameter.as_deref().and_then(|name| self.parameter_number(name));
            let step = |draws: &[usize]| Step {
                kind,
                statement: number,
                rows: statement.rows,
                rows_parameter,
                class,
                draws: draws.into(),
                result_parameters: Arc::clone(&result_parameters),
            };
            steps.push(step(&first));
            let repeated = step(&drawn_each_time);
            steps.extend((1..statement.repeat).map(|_| repeated.clone()));
        }
        steps
    }

    fn parameter_number(&self, parameter: &str) -> Option<usize> {
        self.custom.parameters.keys().position(|key| key == parameter)
    }

    /// The `parameters` that need a separate new value. Excludes results of statements, and parameters that get
    /// their value from the same line of a file as another parameter in `parameters` or `before`.
    fn parameters_to_draw(&self, parameters: impl Iterator<Item = usize>, before: &[usize]) -> Vec<usize> {
        let mut drawn: Vec<usize> = Vec::new();
        for parameter in parameters {
            let generator = self.custom.parameters.values().nth(parameter);
            let is_result = matches!(generator, Some(ParameterSource::Result { .. }));
            let has_value = |other: &usize| self.sources.are_drawn_together(parameter, *other);
            if !is_result && !before.iter().chain(&drawn).any(has_value) {
                drawn.push(parameter);
            }
        }
        drawn
    }

    /// Parameters that later statements take from the result of the statement `name`, each with its column.
    fn result_parameters(&self, name: &str, later: &[SqlStatement]) -> Vec<(usize, usize)> {
        let uses = |parameter: &str| {
            let in_text = |statement: &SqlStatement| {
                fragments(&statement.sql, self.quoting).contains(&Fragment::Parameter(parameter))
            };
            later.iter().any(in_text)
        };
        let result_parameter =
            |(number, (parameter, generator)): (usize, (&String, &ParameterSource))| match generator {
                ParameterSource::Result { statement, column } if statement == name && uses(parameter) => {
                    Some((number, *column as usize - 1))
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
                    slots.push(Slot::Parameter(
                        self.parameter_number(name).expect("Plan::problems rejects unknown parameters"),
                    ));
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
    fn kind(&mut self, name: &str, statement: &SqlStatement, number: usize, is_new: bool) -> usize {
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
        // With several transactions, only some events send the statement.
        if self.custom.transactions.len() == 1 {
            described.per_event += statement.repeat;
        }
        if is_new || described.per_connection == 0 {
            described.per_connection += 1;
        }
        kind
    }
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
