//! Errors in the options. The program prints the message and exits with code 1.

/// An invalid option, and where sysbench prints the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// A line for standard error.
    Usage(String),
    /// A FATAL line of the log.
    Fatal(String),
    /// A line for standard output.
    Plain(String),
}

impl From<String> for OptionError {
    fn from(line: String) -> Self {
        OptionError::Usage(line)
    }
}
