//! Requests of a script to its server, and their answers.

/// The rest of a request (texts, parameters) is in [`Sql`](super::Sql).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    Connect(ConnectionId),
    /// Close the connection and open it again.
    Reconnect(ConnectionId),
    Disconnect(ConnectionId),
    /// Run [`Sql::with_text`](super::Sql::with_text).
    Query(ConnectionId),
    Prepare(StatementId),
    Execute(StatementId),
    CloseStatement(StatementId),
    /// Go to the next result set of the last statement.
    NextResult(ConnectionId),
    /// `sb_more_events`: wait until the next event is due; false where the run is over.
    NextEvent,
}

/// Index of a connection within one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(pub u32);

/// Index of a statement within one user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub u32);

/// What interface.lua learns of a request at once; errors and rows it reads afterwards.
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
    /// Whether the event restarts, rather than the run end.
    pub ignorable: bool,
}

/// How a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementMode {
    /// The server does not know it yet.
    Unprepared,
    /// By the server's number.
    Prepared(u32),
    /// As text that includes the parameters.
    Text,
}

/// What an execution needs besides the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    pub connection: ConnectionId,
    pub mode: StatementMode,
    /// Whether the message includes the parameters' types.
    pub types: bool,
}

/// How a string is quoted in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// MySQL: a backslash before a quote.
    Backslashes,
    /// Standard SQL: a quote is doubled.
    Doubled,
}
