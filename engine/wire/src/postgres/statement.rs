//! The state of a prepared statement.

/// A prepared statement of a session.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Whether it returns rows, according to the server's description.
    pub(super) returns_rows: bool,
    /// Whether it is prepared on the server.
    pub(super) is_on_server: bool,
    /// For a script: the text, with `$1`, `$2`, …, and the number of parameters.
    pub(super) script: Option<Box<(Vec<u8>, u16)>>,
    /// Whether the script has closed it.
    pub(super) is_closed: bool,
}
