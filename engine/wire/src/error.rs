//! Errors of statements and connections, common to all protocols.

use std::io;

use dbdyno_schema::record::ErrorClass;
use thiserror::Error;

use crate::{mysql, postgres};

/// An error of a statement or a connection.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// The server answered with an error.
    #[error("the server answered with error {}: {message}", number_and_state(*code, state))]
    Server {
        /// The server's error number; 0 for PostgreSQL, whose errors have no numbers.
        code: u16,
        /// SQLSTATE; `HY000` if the server sends none.
        state: String,
        /// The server's message.
        message: String,
        /// Whether the error ends the connection: PostgreSQL's FATAL and PANIC.
        is_fatal: bool,
    },
    /// The server does not answer, or the connection broke.
    #[error("{0}")]
    Lost(String),
    /// The server violated the protocol, or requested data that dbdyno never sends.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The client cannot open the connection as requested, or refuses to open it.
    #[error("{text}")]
    Refused {
        /// The error number that MySQL's own clients use in this case.
        code: u16,
        /// What the client refuses, and why.
        text: String,
        /// How to fix it.
        fix: String,
    },
}

impl From<io::Error> for WireError {
    fn from(error: io::Error) -> Self {
        // If an I/O error contains a protocol error of the compression layer, return that error.
        if let Some(inner) = error.get_ref().and_then(|inner| inner.downcast_ref::<WireError>()) {
            return inner.clone();
        }
        WireError::Lost(match error.kind() {
            io::ErrorKind::UnexpectedEof => "the server closed the connection".into(),
            _ => format!("the connection broke: {error}"),
        })
    }
}

impl WireError {
    pub(crate) fn refused(code: u16, text: impl Into<String>, fix: impl Into<String>) -> Self {
        WireError::Refused { code, text: text.into(), fix: fix.into() }
    }

    /// The server's error number, if any.
    pub fn code(&self) -> Option<u16> {
        match self {
            WireError::Server { code, .. } if *code != 0 => Some(*code),
            _ => None,
        }
    }

    /// SQLSTATE of the server's error, if any.
    pub fn state(&self) -> Option<&str> {
        match self {
            WireError::Server { state, .. } => Some(state),
            _ => None,
        }
    }

    /// The class of an error of a statement. A failed connection attempt has the class [`ErrorClass::Refused`] instead.
    pub fn class(&self) -> ErrorClass {
        match self {
            WireError::Lost(_) | WireError::Server { is_fatal: true, .. } => ErrorClass::Lost,
            WireError::Server { code: 0, state, .. } => postgres::errors::class(state),
            WireError::Server { code, .. } => mysql::errors::class(*code),
            WireError::Refused { .. } => ErrorClass::Refused,
            WireError::Protocol(_) => ErrorClass::Other,
        }
    }

    /// Whether the server cannot prepare this statement, but can execute it as text.
    pub fn is_unsupported_prepared(&self) -> bool {
        self.code() == Some(mysql::errors::ER_UNSUPPORTED_PS)
    }

    /// How to fix the error, if known.
    pub fn fix(&self) -> Option<&str> {
        match self {
            WireError::Server { code: 0, state, .. } => postgres::errors::fix(state),
            WireError::Server { code, .. } => mysql::errors::fix(*code),
            WireError::Lost(_) => {
                Some("check that the server runs and listens at this address, and see its error log")
            }
            WireError::Refused { fix, .. } => Some(fix),
            WireError::Protocol(_) => {
                Some("check that a server of the target's protocol listens at this address")
            }
        }
    }
}

fn number_and_state(number: u16, state: &str) -> String {
    if number == 0 { state.to_owned() } else { format!("{number} ({state})") }
}
