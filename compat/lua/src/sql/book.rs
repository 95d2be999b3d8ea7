//! Connections, statements and parameters of one state, by number.

use std::io::Write;

use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::{Parameter, ResultSet, Rows, Type};

use super::bulk::Bulk;
use super::request::{Answer, ConnectionId, Quoting, SqlError, StatementId, Way};

/// `sysbench.sql.error`.
pub(super) const ERROR_NONE: i64 = 0;
pub(super) const ERROR_IGNORABLE: i64 = 1;
pub(super) const ERROR_FATAL: i64 = 2;

/// A parameter's number has its place in the low bits and its generation above, and fits into a double.
const PLACE_BITS: u32 = 32;
const GENERATIONS: u32 = (1 << 20) - 1;

#[derive(Default)]
pub(super) struct Book {
    pub(super) connections: Vec<Connection>,
    statements: Vec<Statement>,
    /// Statements that are closed and make room: scripts may prepare in every event.
    free_statements: Vec<u32>,
    parameters: Vec<Stored>,
    /// Parameters of closed statements.
    free_parameters: Vec<u32>,
    /// The text of a query under way, or of a statement with its parameters in it.
    pub(super) text: Vec<u8>,
}

/// What is known of a connection.
#[derive(Default)]
pub(super) struct Connection {
    pub(super) open: bool,
    /// One of `ERROR_*`, about the last call.
    pub(super) class: i64,
    pub(super) error: SqlError,
    /// The last result: whether there is one that the script may read, its rows, and which comes next.
    pub(super) result_is_live: bool,
    pub(super) row_count: u64,
    pub(super) rows: Rows,
    pub(super) next_row: usize,
    /// Where its rows end: those of a further result may follow.
    pub(super) rows_end: usize,
    /// Results of the same statement that follow, the next one last.
    pub(super) parts: Vec<ResultSet>,
    pub(super) bulk: Option<Bulk>,
}

impl Connection {
    #[inline]
    pub(super) fn succeeded(&mut self, outcome: Outcome, rows: Option<Rows>) -> Answer {
        self.class = ERROR_NONE;
        self.result_is_live = outcome.returns_rows;
        self.row_count = outcome.rows;
        self.parts.clear();
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

    /// The statement that has succeeded had all of these results. Returns what the first of them was.
    pub(super) fn several(&mut self, mut parts: Vec<ResultSet>) -> Option<Outcome> {
        parts.reverse();
        self.parts = parts;
        self.next_part()
    }

    /// Goes on to the next of several results, and returns what it was.
    pub(super) fn next_part(&mut self) -> Option<Outcome> {
        let ResultSet { returns_rows, rows, columns, first_row } = self.parts.pop()?;
        self.class = ERROR_NONE;
        (self.result_is_live, self.row_count) = (returns_rows, rows);
        (self.rows.columns, self.next_row) = (columns, first_row);
        self.rows_end = self.parts.last().map_or(self.rows.ends.len(), |next| next.first_row);
        Some(Outcome { returns_rows, rows, bytes: 0 })
    }

    pub(super) fn failed(&mut self, error: SqlError) -> Answer {
        self.class = if error.ignorable { ERROR_IGNORABLE } else { ERROR_FATAL };
        self.error = error;
        self.result_is_live = false;
        self.parts.clear();
        Answer::Flag(false)
    }
}

/// What is known of a prepared statement.
pub(super) struct Statement {
    pub(super) connection: ConnectionId,
    pub(super) sql: Vec<u8>,
    pub(super) way: Way,
    /// Placeholders in it.
    pub(super) parameters: u16,
    /// Numbers of the parameters that are bound.
    pub(super) bound: Vec<u32>,
    pub(super) types_sent: bool,
    /// Numbers of the parameters made for it.
    owned: Vec<u32>,
}

/// A parameter and its value.
pub(super) struct Stored {
    kind: Type,
    value: Held,
    /// The value of a string, up to `length_max` bytes; kept to save the allocation.
    text: Vec<u8>,
    length_max: usize,
    /// How often its place was given to another; part of the number that the script holds.
    generation: u32,
}

#[derive(Clone, Copy)]
enum Held {
    Null,
    Int(i64),
    Double(f64),
    Text,
}

impl Stored {
    #[inline]
    fn parameter(&self) -> Parameter<'_> {
        match self.value {
            Held::Null => Parameter::Null(self.kind),
            Held::Int(number) => Parameter::Int(number),
            Held::Double(number) => Parameter::Double(number),
            Held::Text => Parameter::Text(&self.text),
        }
    }

    pub(super) fn kind(&self) -> Type {
        self.kind
    }

    pub(super) fn set_null(&mut self) {
        self.value = Held::Null;
    }

    /// Takes a number; false where strings are expected.
    #[inline]
    pub(super) fn set_number(&mut self, number: f64) -> bool {
        self.value = match self.kind {
            // As C converts: towards zero.
            Type::Int => Held::Int(number as i64),
            Type::Double => Held::Double(number),
            Type::Text => return false,
        };
        true
    }

    /// Takes an integer of more bits than a number has.
    pub(super) fn set_integer(&mut self, number: i64) -> bool {
        self.value = match self.kind {
            Type::Int => Held::Int(number),
            Type::Double => Held::Double(number as f64),
            Type::Text => return false,
        };
        true
    }

    /// Lets `write` write a string, which is cut to its length.
    pub(super) fn set_text(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.text.clear();
        write(&mut self.text);
        self.text.truncate(self.length_max);
        self.value = Held::Text;
    }
}

/// The parameters of a statement, in order.
#[derive(Clone)]
pub struct Bound<'a> {
    parameters: &'a [Stored],
    bound: std::slice::Iter<'a, u32>,
}

impl<'a> Iterator for Bound<'a> {
    type Item = Parameter<'a>;

    #[inline]
    fn next(&mut self) -> Option<Parameter<'a>> {
        self.bound.next().map(|&number| self.parameters[number as usize].parameter())
    }
}

impl Book {
    pub(super) fn add_connection(&mut self) -> ConnectionId {
        self.connections.push(Connection::default());
        ConnectionId(self.connections.len() as u32 - 1)
    }

    /// A connection by the number that a script handed in.
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

    /// A connection is open, or not; what was prepared on the one before it is unknown to the server.
    pub(super) fn opened(&mut self, connection: ConnectionId, open: bool) {
        let found = self.connection_mut(connection);
        found.open = open;
        found.result_is_live = false;
        found.parts.clear();
        for statement in self.statements.iter_mut().filter(|statement| statement.connection == connection) {
            if let Way::Prepared(_) = statement.way {
                statement.way = Way::Unprepared;
            }
        }
    }

    pub(super) fn add_statement(&mut self, connection: ConnectionId, sql: &[u8]) -> StatementId {
        let statement = Statement {
            connection,
            sql: sql.to_vec(),
            way: Way::Unprepared,
            parameters: 0,
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

    /// Forgets a statement and its parameters. The script has thrown away its number.
    pub(super) fn remove_statement(&mut self, statement: StatementId) {
        let found = self.statement_mut(statement);
        found.bound.clear();
        found.way = Way::Unprepared;
        let owned = std::mem::take(&mut found.owned);
        for number in owned {
            let stored = &mut self.parameters[number as usize];
            stored.generation = stored.generation.wrapping_add(1);
            self.free_parameters.push(number);
        }
        self.free_statements.push(statement.0);
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

    /// Makes a parameter and returns the number for the script to hold.
    pub(super) fn add_parameter(&mut self, statement: StatementId, kind: Type, length_max: usize) -> i64 {
        let mut stored = Stored { kind, value: Held::Null, text: Vec::new(), length_max, generation: 0 };
        let place = match self.free_parameters.pop() {
            Some(free) => {
                stored.generation = self.parameters[free as usize].generation;
                self.parameters[free as usize] = stored;
                free
            }
            None => {
                self.parameters.push(stored);
                self.parameters.len() as u32 - 1
            }
        };
        self.statement_mut(statement).owned.push(place);
        i64::from(place) | i64::from(self.parameters[place as usize].generation & GENERATIONS) << PLACE_BITS
    }

    /// The place of the parameter with the number that a script holds; `None` where its statement was closed.
    #[inline]
    pub(super) fn place_of(&self, number: Option<i64>) -> Option<u32> {
        let number = number?;
        let place = (number & ((1 << PLACE_BITS) - 1)) as u32;
        let stored = self.parameters.get(place as usize)?;
        (i64::from(stored.generation & GENERATIONS) == number >> PLACE_BITS).then_some(place)
    }

    #[inline]
    pub(super) fn parameter_mut(&mut self, number: Option<i64>) -> Option<&mut Stored> {
        let place = self.place_of(number)?;
        self.parameters.get_mut(place as usize)
    }

    #[inline]
    pub(super) fn bound(&self, statement: StatementId) -> Bound<'_> {
        Bound { parameters: &self.parameters, bound: self.statement(statement).bound.iter() }
    }

    /// Puts the parameters into the statement's text. Every `?` counts, as sysbench counts them.
    pub(super) fn put_in(&mut self, statement: StatementId, quoting: Quoting) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let mut parameters = self.bound(statement);
        for &byte in &self.statement(statement).sql {
            match (byte, if byte == b'?' { parameters.next() } else { None }) {
                (_, Some(parameter)) => literal(&mut text, parameter, quoting),
                (byte, None) => text.push(byte),
            }
        }
        self.text = text;
    }
}

fn literal(out: &mut Vec<u8>, parameter: Parameter<'_>, quoting: Quoting) {
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
