//! What a session knows of a prepared statement.

/// A prepared statement.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// Whether it returns rows, as the server has described it.
    pub(super) returns_rows: bool,
    /// Whether the server knows it.
    pub(super) known: bool,
    /// Of a script: its text, with `$1` and so on, and the number of its parameters.
    pub(super) script: Option<Box<(Vec<u8>, u16)>>,
    /// A script has no use for it any more.
    pub(super) forgotten: bool,
}

impl Statement {
    pub(super) fn prepared(returns_rows: bool) -> Self {
        Self { returns_rows, known: true, script: None, forgotten: false }
    }
}
