//! Prepared statements of a session.

/// A prepared statement.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Whether it returns rows, by the server's description.
    pub(super) returns_rows: bool,
    /// Whether the server has it.
    pub(super) on_server: bool,
    /// For a script: its text, with `$1` and so on, and the number of its parameters.
    pub(super) script: Option<Box<(Vec<u8>, u16)>>,
    /// Whether the script has closed it.
    pub(super) closed: bool,
}
