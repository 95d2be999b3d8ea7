//! Connections and statements of one state, as the driver sees them.

use std::cell::{Cell, RefCell};

use dbdyno_wire::Outcome;
use dbdyno_wire::scripted::{ResultSet, Rows};

use super::book::{Book, Bound, ERROR_NONE};
use super::request::{Answer, ConnectionId, Execution, Quoting, Request, SqlError, StatementId, Way};

/// Connections and statements of one state.
#[derive(Default)]
pub struct Sql {
    pub(super) book: RefCell<Book>,
    pub(super) request: Cell<Option<Request>>,
    pub(super) abandoned: RefCell<Vec<ConnectionId>>,
    pub(super) has_abandoned: Cell<bool>,
}

impl Sql {
    /// The request with which a coroutine was left.
    #[inline]
    pub(crate) fn take_request(&self) -> Request {
        self.request.take().expect("a coroutine is left with a request")
    }

    /// The text of [`Request::Query`] for `with` to read.
    #[inline]
    pub fn with_text<T>(&self, with: impl FnOnce(&[u8]) -> T) -> T {
        with(&self.book.borrow().text)
    }

    /// The text of a statement.
    pub fn statement_text(&self, statement: StatementId) -> Vec<u8> {
        self.book.borrow().statement(statement).sql.clone()
    }

    /// On which connection a statement runs, and how.
    #[inline]
    pub fn execution(&self, statement: StatementId) -> Execution {
        let book = self.book.borrow();
        let found = book.statement(statement);
        Execution { connection: found.connection, way: found.way, types: !found.types_sent }
    }

    /// The parameters of a statement, for `with` to write; the server knows their types afterwards.
    #[inline]
    pub fn with_parameters<T>(&self, statement: StatementId, with: impl FnOnce(Bound<'_>) -> T) -> T {
        let mut book = self.book.borrow_mut();
        book.statement_mut(statement).types_sent = true;
        with(book.bound(statement))
    }

    /// The text of a statement with its parameters put in.
    pub fn with_literals<T>(
        &self,
        statement: StatementId,
        quoting: Quoting,
        with: impl FnOnce(&[u8]) -> T,
    ) -> T {
        let mut book = self.book.borrow_mut();
        book.put_in(statement, quoting);
        with(&book.text)
    }

    /// Whether the parameters that are bound are as many as the placeholders.
    pub fn is_bound(&self, statement: StatementId) -> bool {
        let book = self.book.borrow();
        let found = book.statement(statement);
        found.bound.len() == usize::from(found.parameters)
    }

    /// Takes the memory for the rows of a connection's next result.
    pub fn take_rows(&self, connection: ConnectionId) -> Rows {
        std::mem::take(&mut self.book.borrow_mut().connection_mut(connection).rows)
    }

    /// A statement on `connection` has an outcome; `rows` where they were kept.
    #[inline]
    pub fn succeeded(&self, connection: ConnectionId, outcome: Outcome, rows: Option<Rows>) -> Answer {
        self.book.borrow_mut().connection_mut(connection).succeeded(outcome, rows)
    }

    /// The statement on `connection` that has succeeded had several results. Returns what the first of them was.
    pub fn several(&self, connection: ConnectionId, parts: Vec<ResultSet>) -> Option<Outcome> {
        self.book.borrow_mut().connection_mut(connection).several(parts)
    }

    /// Goes on to the next of several results on `connection`, and returns what it was; `None` where there is none.
    pub fn next_part(&self, connection: ConnectionId) -> Option<Outcome> {
        self.book.borrow_mut().connection_mut(connection).next_part()
    }

    /// A statement on `connection` has failed.
    pub fn failed(&self, connection: ConnectionId, error: SqlError) -> Answer {
        self.book.borrow_mut().connection_mut(connection).failed(error)
    }

    /// A statement could not be prepared: an error of the interface, which has no number of its own.
    pub fn refused(&self, connection: ConnectionId, error: SqlError) -> Answer {
        let mut book = self.book.borrow_mut();
        let found = book.connection_mut(connection);
        let ignorable = error.ignorable;
        let answer = found.failed(error);
        if !ignorable {
            found.class = ERROR_NONE;
        }
        answer
    }

    /// Whether a statement has placeholders and something is bound to them.
    pub fn has_parameters(&self, statement: StatementId) -> bool {
        !self.book.borrow().statement(statement).bound.is_empty()
    }

    /// A connection is open, or not.
    pub fn opened(&self, connection: ConnectionId, open: bool) {
        self.book.borrow_mut().opened(connection, open);
    }

    /// A statement travels like this from now on.
    pub fn prepared(&self, statement: StatementId, way: Way, parameters: u16) {
        let mut book = self.book.borrow_mut();
        let found = book.statement_mut(statement);
        (found.way, found.parameters, found.types_sent) = (way, parameters, false);
    }

    /// Connections that the script has forgotten without closing them.
    #[inline]
    pub fn take_abandoned(&self) -> Vec<ConnectionId> {
        if !self.has_abandoned.replace(false) {
            return Vec::new();
        }
        let mut abandoned = self.abandoned.take();
        abandoned.retain(|&connection| self.book.borrow().connection(connection).open);
        abandoned
    }
}
