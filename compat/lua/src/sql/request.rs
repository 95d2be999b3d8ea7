//! Requests of a script to its server, and the answers.

/// A request. The texts and parameters of requests are in [`Sql`](super::Sql).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Connect(ConnectionId),
    /// Close the connection and open it again.
    Reconnect(ConnectionId),
    Disconnect(ConnectionId),
    /// Execute the text of [`Sql::with_text`](super::Sql::with_text).
    Query(ConnectionId),
    Prepare(StatementId),
    Execute(StatementId),
    CloseStatement(StatementId),
    /// Advance to the next result set of the last statement.
    NextResult(ConnectionId),
    /// `sb_more_events`: wait until the next event is due; false if the run is over.
    NextEvent,
}

/// Index of a connection within one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(pub u32);

/// Index of a statement within one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub u32);

/// The answer to a request. interface.lua reads errors and rows by separate calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Success without rows.
    Nothing,
    /// True: there are rows; false: the request failed.
    Flag(bool),
}

/// Why a statement failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlError {
    pub code: u16,
    /// SQLSTATE.
    pub state: String,
    pub message: String,
    /// Whether the event restarts after the error; otherwise the run ends.
    pub ignorable: bool,
}

/// How a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// Not prepared yet; the next execution prepares it.
    Unprepared,
    /// Prepared, with the number that the server assigned.
    Prepared(u32),
    /// Sent as text that includes the parameters.
    Text,
}

/// Everything that an execution needs, except the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    pub connection: ConnectionId,
    pub mode: StatementMode,
    /// Whether the message includes the parameters' types.
    pub sends_types: bool,
}

/// How a string is quoted in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// MySQL: a backslash before a quote.
    Backslashes,
    /// Standard SQL: a quote is doubled.
    Doubled,
}
