//! Why a command line cannot be used.

use super::registry::Usage;

/// Why a command line cannot be used: the exit code is 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A line for standard error.
    Usage(String),
    /// A FATAL line of the log.
    Fatal(String),
    /// A line for standard output.
    Plain(String),
}

impl From<Usage> for Refused {
    fn from(usage: Usage) -> Self {
        Refused::Usage(usage.0)
    }
}
