//! What this program is called.

/// Its name in messages.
pub(crate) const PROGRAM: &str = "dbdyno-compat";
