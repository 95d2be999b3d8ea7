//! Why a script failed.

use crate::api::cmdline::OptionsError;
use crate::error::ScriptError;
use crate::sql::CONNECT_FAILED;
use dbdyno_schema::record::{ErrorClass, FailedAction, Failure, ServerFailure};

/// Why a script failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LuaFailure {
    /// The chunk is not valid Lua, or raised an error.
    #[error("{0}")]
    Chunk(String),
    /// A function of the script failed.
    #[error("`{function}' function failed: {message}")]
    Function {
        /// The name of the function as sysbench prints it.
        function: String,
        /// The message that the function raised.
        message: String,
    },
    /// The command line does not match the declared options; the text is the message to print.
    #[error("{0}")]
    Usage(String),
    /// The script does not have the function.
    #[error("cannot find the {0}() function")]
    MissingFunction(String),
    /// A command returned false.
    #[error("the command returned false")]
    ReturnedFalse,
}

impl LuaFailure {
    pub(super) fn function(name: &str, error: ScriptError) -> Self {
        LuaFailure::Function { function: name.into(), message: error_text(error) }
    }

    pub(super) fn chunk(error: ScriptError) -> Self {
        LuaFailure::Chunk(error_text(error))
    }

    pub(super) fn options(error: OptionsError) -> Self {
        match error {
            OptionsError::Usage(line) => LuaFailure::Usage(line),
            OptionsError::Script(message) => {
                let function = "sysbench.cmdline.read_cmdline_options".into();
                LuaFailure::Function { function, message }
            }
        }
    }

    /// The failure for the end record. If the script did not catch an error of `driver:connect()`, the failure names
    /// the server that `refused` the connection.
    pub(super) fn to_record(&self, refused: Option<&ServerFailure>) -> Failure {
        let text = self.to_string();
        match refused.filter(|_| text.contains(CONNECT_FAILED)) {
            None => Failure { text, ..Failure::default() },
            Some(server) => Failure {
                text: match server.action {
                    FailedAction::Connect => format!("{text}: {}", server.message),
                    _ => format!("{text}: {}", session_failure(server)),
                },
                code: Some(server.code).filter(|&code| code != 0),
                class: Some(ErrorClass::Refused),
                server: Some(Box::new(server.clone())),
                ..Failure::default()
            },
        }
    }
}

/// Says which statement of the plan's session failed.
pub(super) fn session_failure(failure: &ServerFailure) -> String {
    format!("the session's statement `{}` failed: {}", failure.statement, failure.message)
}

fn error_text(error: ScriptError) -> String {
    match error {
        ScriptError::Restart => "(not a string)".into(),
        ScriptError::Message(message) => message,
    }
}
