//! The connections, statements and parameters of one user, which Lua names by number.

use std::cell::{Cell, RefCell, RefMut};
use std::io::Write;

use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::{Parameter, ResultSet, Rows, Type};

use super::bulk::BulkInsert;
use super::request::{
    Answer, ConnectionId, Execution, Quoting, Request, SqlError, StatementId, StatementMode,
};

/// `sysbench.sql.error`.
pub(super) const ERROR_NONE: i64 = 0;
pub(super) const ERROR_IGNORABLE: i64 = 1;
pub(super) const ERROR_FATAL: i64 = 2;

/// A parameter's number contains the index in its low bits and the generation above them, so that the number of a freed
/// parameter is invalid. It fits into a double.
const INDEX_BITS: u32 = 32;
const GENERATION_MASK: u32 = (1 << 20) - 1;

/// The objects of one user. The functions that Lua calls and the session that executes requests share them.
#[derive(Default)]
pub struct Sql {
    pub(super) objects: RefCell<SqlObjects>,
    pub(super) request: Cell<Option<Request>>,
    /// Connections that Lua's garbage collector has freed and that are not closed yet.
    pub(super) unreferenced: RefCell<Vec<ConnectionId>>,
    pub(super) has_unreferenced: Cell<bool>,
}

impl Sql {
    /// Takes the request for which a coroutine has yielded.
    #[inline]
    pub(crate) fn take_request(&self) -> Request {
        self.request.take().expect("a coroutine yields with a request")
    }

    /// Passes the text of [`Request::Query`] to `read`.
    #[inline]
    pub fn with_text<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        read(&self.objects.borrow().text)
    }

    pub fn connection(&self, connection: ConnectionId) -> RefMut<'_, Connection> {
        RefMut::map(self.objects.borrow_mut(), |objects| objects.connection_mut(connection))
    }

    pub fn statement(&self, statement: StatementId) -> RefMut<'_, Statement> {
        RefMut::map(self.objects.borrow_mut(), |objects| objects.statement_mut(statement))
    }

    #[inline]
    pub fn execution(&self, statement: StatementId) -> Execution {
        let objects = self.objects.borrow();
        let statement = objects.statement(statement);
        Execution {
            connection: statement.connection,
            mode: statement.mode,
            sends_types: !statement.types_sent,
        }
    }

    /// Passes the parameters of a statement to `write`. `write` also sends the parameters' types to the server if
    /// necessary.
    #[inline]
    pub fn with_parameters<T>(
        &self,
        statement: StatementId,
        write: impl FnOnce(BoundParameters<'_>) -> T,
    ) -> T {
        let mut objects = self.objects.borrow_mut();
        objects.statement_mut(statement).types_sent = true;
        write(objects.bound(statement))
    }

    /// Passes the text of a statement, with its parameters as literals, to `read`.
    pub fn with_literals<T>(
        &self,
        statement: StatementId,
        quoting: Quoting,
        read: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let mut objects = self.objects.borrow_mut();
        objects.write_literals(statement, quoting);
        read(&objects.text)
    }

    pub fn set_open(&self, connection: ConnectionId, open: bool) {
        self.objects.borrow_mut().set_open(connection, open);
    }

    #[inline]
    pub fn take_unreferenced(&self) -> Vec<ConnectionId> {
        if !self.has_unreferenced.replace(false) {
            return Vec::new();
        }
        let mut unreferenced = self.unreferenced.take();
        unreferenced.retain(|&connection| self.connection(connection).is_open);
        unreferenced
    }
}

#[derive(Default)]
pub(super) struct SqlObjects {
    pub(super) connections: Vec<Connection>,
    statements: Vec<Statement>,
    /// Indexes of closed statements. They are reused, because scripts may prepare statements in every event.
    free_statements: Vec<u32>,
    parameters: Vec<StoredParameter>,
    /// Indexes of the parameters of closed statements, to be reused.
    free_parameters: Vec<u32>,
    /// The text of the current query, or of a statement with its parameters as literals.
    pub(super) text: Vec<u8>,
}

#[derive(Default)]
pub struct Connection {
    pub(super) is_open: bool,
    /// The class of the last call's error, one of `ERROR_*`.
    pub(super) class: i64,
    pub(super) error: SqlError,
    /// Whether the script may read the last result.
    pub(super) result_is_live: bool,
    pub(super) row_count: u64,
    pub rows: Rows,
    pub(super) next_row: usize,
    /// Index in `rows` after the last row of the current result. The rows of further results may follow.
    pub(super) rows_end: usize,
    /// The remaining results of the statement, in reverse order.
    pub(super) result_sets: Vec<ResultSet>,
    pub(super) bulk: Option<BulkInsert>,
}

impl Connection {
    #[inline]
    pub fn succeed(&mut self, outcome: Outcome, rows: Option<Rows>) -> Answer {
        self.class = ERROR_NONE;
        self.result_is_live = outcome.returns_rows;
        self.row_count = outcome.rows;
        self.result_sets.clear();
        if let Some(rows) = rows {
            if outcome.returns_rows {
                self.row_count = rows.ends.len() as u64;
            }
            self.rows_end = rows.ends.len();
            (self.rows, self.next_row) = (rows, 0);
        } else if self.rows.columns != 0 {
            self.rows.clear();
        }
        if outcome.returns_rows { Answer::Flag(true) } else { Answer::Nothing }
    }

    /// Stores the results of a successful statement. Returns the outcome of the first one.
    pub fn set_results(&mut self, mut result_sets: Vec<ResultSet>) -> Option<Outcome> {
        result_sets.reverse();
        self.result_sets = result_sets;
        self.next_result_set()
    }

    /// Advances to the next result and returns its outcome; `None` after the last.
    pub fn next_result_set(&mut self) -> Option<Outcome> {
        let ResultSet { returns_rows, rows, columns, first_row } = self.result_sets.pop()?;
        self.class = ERROR_NONE;
        (self.result_is_live, self.row_count) = (returns_rows, rows);
        (self.rows.columns, self.next_row) = (columns, first_row);
        self.rows_end = self.result_sets.last().map_or(self.rows.ends.len(), |next| next.first_row);
        Some(Outcome { returns_rows, rows, bytes: 0 })
    }

    pub fn fail(&mut self, error: SqlError) -> Answer {
        self.class = if error.ignorable { ERROR_IGNORABLE } else { ERROR_FATAL };
        self.error = error;
        self.result_is_live = false;
        self.result_sets.clear();
        Answer::Flag(false)
    }

    /// Fails a statement that could not be prepared; sysbench reports that without an error class.
    pub fn fail_prepare(&mut self, error: SqlError) -> Answer {
        let ignorable = error.ignorable;
        let answer = self.fail(error);
        if !ignorable {
            self.class = ERROR_NONE;
        }
        answer
    }
}

pub struct Statement {
    pub connection: ConnectionId,
    pub sql: Vec<u8>,
    mode: StatementMode,
    placeholders: u16,
    /// Indexes of the bound parameters.
    bound: Vec<u32>,
    types_sent: bool,
    /// Indexes of the parameters created for the statement.
    owned: Vec<u32>,
}

impl Statement {
    pub fn has_parameters(&self) -> bool {
        !self.bound.is_empty()
    }

    /// Whether every placeholder is bound to a parameter.
    #[inline]
    pub fn is_bound(&self) -> bool {
        self.bound.len() == usize::from(self.placeholders)
    }

    pub fn set_mode(&mut self, mode: StatementMode, placeholders: u16) {
        (self.mode, self.placeholders, self.types_sent) = (mode, placeholders, false);
    }

    pub(super) fn bind(&mut self, parameters: Vec<u32>) {
        (self.bound, self.types_sent) = (parameters, false);
    }
}

pub(super) struct StoredParameter {
    kind: Type,
    value: Value,
    /// The value of a string parameter, at most `length_max` bytes. The buffer is reused.
    text: Vec<u8>,
    length_max: usize,
    /// Number of earlier parameters with this index.
    generation: u32,
}

#[derive(Clone, Copy)]
enum Value {
    Null,
    Int(i64),
    Double(f64),
    Text,
}

impl StoredParameter {
    #[inline]
    fn parameter(&self) -> Parameter<'_> {
        match self.value {
            Value::Null => Parameter::Null(self.kind),
            Value::Int(number) => Parameter::Int(number),
            Value::Double(number) => Parameter::Double(number),
            Value::Text => Parameter::Text(&self.text),
        }
    }

    pub(super) fn kind(&self) -> Type {
        self.kind
    }

    pub(super) fn set_null(&mut self) {
        self.value = Value::Null;
    }

    /// Returns false if the parameter is a string.
    #[inline]
    pub(super) fn set_number(&mut self, number: f64) -> bool {
        self.value = match self.kind {
            // Round towards zero, as in C.
            Type::Int => Value::Int(number as i64),
            Type::Double => Value::Double(number),
            Type::Text => return false,
        };
        true
    }

    /// Like [`Self::set_number`], for integers that a double cannot represent.
    pub(super) fn set_integer(&mut self, number: i64) -> bool {
        self.value = match self.kind {
            Type::Int => Value::Int(number),
            Type::Double => Value::Double(number as f64),
            Type::Text => return false,
        };
        true
    }

    /// Sets the string that `write` appends, cut to the parameter's maximum length.
    pub(super) fn set_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        write(&mut self.text);
        self.text.truncate(self.length_max);
        self.value = Value::Text;
    }
}

/// The parameters of a statement in order.
#[derive(Clone)]
pub struct BoundParameters<'a> {
    parameters: &'a [StoredParameter],
    bound: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for BoundParameters<'a> {
    type Item = Parameter<'a>;

    #[inline]
    fn next(&mut self) -> Option<Parameter<'a>> {
        self.bound.next().map(|&index| self.parameters[index as usize].parameter())
    }
}

impl SqlObjects {
    pub(super) fn add_connection(&mut self) -> ConnectionId {
        self.connections.push(Connection::default());
        ConnectionId(self.connections.len() as u32 - 1)
    }

    /// The connection with the number that the script passed.
    #[inline]
    pub(super) fn connection_of(&self, number: Option<i64>) -> Option<ConnectionId> {
        let number = usize::try_from(number?).ok()?;
        (number < self.connections.len()).then_some(ConnectionId(number as u32))
    }

    #[inline]
    pub(super) fn connection(&self, connection: ConnectionId) -> &Connection {
        &self.connections[connection.0 as usize]
    }

    #[inline]
    pub(super) fn connection_mut(&mut self, connection: ConnectionId) -> &mut Connection {
        &mut self.connections[connection.0 as usize]
    }

    /// Opens or closes a connection. After a reconnect, its statements must be prepared again.
    fn set_open(&mut self, id: ConnectionId, open: bool) {
        let connection = self.connection_mut(id);
        connection.is_open = open;
        connection.result_is_live = false;
        connection.result_sets.clear();
        for statement in self.statements.iter_mut().filter(|statement| statement.connection == id) {
            if let StatementMode::Prepared(_) = statement.mode {
                statement.mode = StatementMode::Unprepared;
            }
        }
    }

    pub(super) fn add_statement(&mut self, connection: ConnectionId, sql: &[u8]) -> StatementId {
        let statement = Statement {
            connection,
            sql: sql.to_vec(),
            mode: StatementMode::Unprepared,
            placeholders: 0,
            bound: Vec::new(),
            types_sent: false,
            owned: Vec::new(),
        };
        match self.free_statements.pop() {
            Some(free) => {
                self.statements[free as usize] = statement;
                StatementId(free)
            }
            None => {
                self.statements.push(statement);
                StatementId(self.statements.len() as u32 - 1)
            }
        }
    }

    /// Frees a statement and its parameters. interface.lua has removed its number from the script's object.
    pub(super) fn remove_statement(&mut self, id: StatementId) {
        let statement = self.statement_mut(id);
        statement.bound.clear();
        statement.mode = StatementMode::Unprepared;
        for index in std::mem::take(&mut statement.owned) {
            let parameter = &mut self.parameters[index as usize];
            parameter.generation = parameter.generation.wrapping_add(1);
            self.free_parameters.push(index);
        }
        self.free_statements.push(id.0);
    }

    #[inline]
    pub(super) fn statement_of(&self, number: Option<i64>) -> Option<StatementId> {
        let number = usize::try_from(number?).ok()?;
        (number < self.statements.len()).then_some(StatementId(number as u32))
    }

    #[inline]
    pub(super) fn statement(&self, statement: StatementId) -> &Statement {
        &self.statements[statement.0 as usize]
    }

    #[inline]
    pub(super) fn statement_mut(&mut self, statement: StatementId) -> &mut Statement {
        &mut self.statements[statement.0 as usize]
    }

    /// Adds a parameter and returns its number for the script.
    pub(super) fn add_parameter(&mut self, statement: StatementId, kind: Type, length_max: usize) -> i64 {
        let mut parameter =
            StoredParameter { kind, value: Value::Null, text: Vec::new(), length_max, generation: 0 };
        let index = match self.free_parameters.pop() {
            Some(free) => {
                parameter.generation = self.parameters[free as usize].generation;
                self.parameters[free as usize] = parameter;
                free
            }
            None => {
                self.parameters.push(parameter);
                self.parameters.len() as u32 - 1
            }
        };
        self.statement_mut(statement).owned.push(index);
        i64::from(index)
            | i64::from(self.parameters[index as usize].generation & GENERATION_MASK) << INDEX_BITS
    }

    /// The index of the parameter with the number that the script passed; `None` if its statement was closed.
    #[inline]
    pub(super) fn parameter_index(&self, number: Option<i64>) -> Option<u32> {
        let number = number?;
        let index = (number & ((1 << INDEX_BITS) - 1)) as u32;
        let parameter = self.parameters.get(index as usize)?;
        (i64::from(parameter.generation & GENERATION_MASK) == number >> INDEX_BITS).then_some(index)
    }

    #[inline]
    pub(super) fn parameter_mut(&mut self, number: Option<i64>) -> Option<&mut StoredParameter> {
        let index = self.parameter_index(number)?;
        self.parameters.get_mut(index as usize)
    }

    #[inline]
    fn bound(&self, statement: StatementId) -> BoundParameters<'_> {
        BoundParameters { parameters: &self.parameters, bound: self.statement(statement).bound.iter() }
    }

    /// Writes the statement's text with literals in place of `?`. As in sysbench, every `?` is a placeholder.
    fn write_literals(&mut self, statement: StatementId, quoting: Quoting) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let mut parameters = self.bound(statement);
        for &byte in &self.statement(statement).sql {
            match (byte, if byte == b'?' { parameters.next() } else { None }) {
                (_, Some(parameter)) => write_literal(&mut text, parameter, quoting),
                (byte, None) => text.push(byte),
            }
        }
        self.text = text;
    }
}

fn write_literal(out: &mut Vec<u8>, parameter: Parameter<'_>, quoting: Quoting) {
    // Writing to a Vec cannot fail.
    let _ = match parameter {
        Parameter::Null(_) => write!(out, "NULL"),
        Parameter::Int(number) => write!(out, "{number}"),
        Parameter::Double(number) => write!(out, "{number:.6}"),
        Parameter::Text(text) => {
            out.push(b'\'');
            for &byte in text {
                match (quoting, byte) {
                    (Quoting::Backslashes, b'\'' | b'\\' | 0) => out.push(b'\\'),
                    (Quoting::Doubled, b'\'') => out.push(byte),
                    _ => {}
                }
                out.push(if byte == 0 && quoting == Quoting::Backslashes { b'0' } else { byte });
            }
            out.push(b'\'');
            Ok(())
        }
    };
}
