//! What a script asks of the server, and what it is answered.

/// What a script wants from the world. The rest of it (texts, parameters) waits in [`Sql`](super::Sql).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Open a connection.
    Connect(ConnectionId),
    /// Close it and open it anew.
    Reconnect(ConnectionId),
    /// Close it.
    Disconnect(ConnectionId),
    /// Run the text that waits.
    Query(ConnectionId),
    /// Prepare a statement.
    Prepare(StatementId),
    /// Execute it.
    Execute(StatementId),
    /// Forget it.
    Forget(StatementId),
    /// Go on to the next of several results of the last statement.
    NextResult(ConnectionId),
    /// Say whether another event is due, as soon as one is: `sb_more_events`.
    NextEvent,
}

/// A connection of one state, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionId(pub u32);

/// A statement of one state, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatementId(pub u32);

/// What a request came to, as far as the script's call is told at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It is done; there are no rows.
    Nothing,
    /// Rows (yes), or it failed (no).
    Flag(bool),
}

/// Why a statement failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlError {
    /// The error number.
    pub code: u16,
    /// SQLSTATE.
    pub state: String,
    /// The words.
    pub message: String,
    /// Whether the event is to start anew, rather than the run to end.
    pub ignorable: bool,
}

/// How a statement travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The server does not know it yet.
    Unprepared,
    /// Prepared, under the server's number.
    Prepared(u32),
    /// As text with the parameters put in.
    Text,
}

/// What an execution needs beside the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// On which connection.
    pub connection: ConnectionId,
    /// How it travels.
    pub way: Way,
    /// Whether the server is to be told the parameters' types.
    pub types: bool,
}

/// How a string is put into a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quoting {
    /// As MySQL reads it: a backslash before a quote.
    Backslashes,
    /// As the standard has it: a quote twice.
    Doubled,
}
