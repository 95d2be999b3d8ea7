//! Why a statement or a connection failed.

use dbdyno_schema::record::ErrorClass;
use thiserror::Error;

use crate::{mysql, postgres};

/// Why a statement or a connection failed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum WireError {
    /// The server's own answer.
    #[error("the server answered with error {}: {message}", number_and_state(*code, state))]
    Server {
        /// The server's error number; 0 where its errors have none, as PostgreSQL's.
        code: u16,
        /// SQLSTATE; `HY000` where the server gives none.
        state: String,
        /// The server's words.
        message: String,
        /// Whether it ends the connection, where the server says so: PostgreSQL's FATAL and PANIC.
        is_fatal: bool,
    },
    /// The address does not answer, or the connection broke.
    #[error("{0}")]
    Lost(String),
    /// The server sent what the protocol does not allow, or asked for what we never give.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// What we will not or cannot do to open a connection as it was asked for.
    #[error("{text}")]
    Refused {
        /// The number that MySQL's own clients give it.
        code: u16,
        /// What it is.
        text: String,
        /// What would help.
        way_out: String,
    },
}

impl WireError {
    /// The server's error number, where it gave one.
    pub fn code(&self) -> Option<u16> {
        match self {
            WireError::Server { code, .. } if *code != 0 => Some(*code),
            _ => None,
        }
    }

    /// SQLSTATE of the server's error, where it gave one.
    pub fn state(&self) -> Option<&str> {
        match self {
            WireError::Server { state, .. } => Some(state),
            _ => None,
        }
    }

    /// What the error of a statement means for a run. That of an attempt to connect is [`ErrorClass::Refused`].
    pub fn class(&self) -> ErrorClass {
        match self {
            WireError::Lost(_) | WireError::Server { is_fatal: true, .. } => ErrorClass::Lost,
            WireError::Server { code: 0, state, .. } => postgres::errors::class(state),
            WireError::Server { code, .. } => mysql::errors::class(*code),
            WireError::Refused { .. } => ErrorClass::Refused,
            WireError::Protocol(_) => ErrorClass::Other,
        }
    }
}

fn number_and_state(number: u16, state: &str) -> String {
    if number == 0 { state.to_owned() } else { format!("{number} ({state})") }
}
