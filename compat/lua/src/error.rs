//! Errors raised by a script's functions.

use mlua::Value;

/// Why a function of a script failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The function raised a table with `errcode` RESTART_EVENT.
    #[error("the event restarts")]
    Restart,
    /// The message that the function raised, with the line in the script.
    #[error("{0}")]
    Message(String),
}

impl ScriptError {
    /// The text that sysbench prints for a value that a script raised as an error.
    pub(crate) fn from_lua(raised: &Value) -> Self {
        match raised {
            Value::String(text) => ScriptError::Message(text.to_string_lossy()),
            Value::Integer(_) | Value::Number(_) => {
                ScriptError::Message(raised.to_string().unwrap_or_default())
            }
            Value::Table(table) if table.raw_get::<Option<i64>>("errcode").ok().flatten() == Some(1) => {
                ScriptError::Restart
            }
            Value::Error(error) => ScriptError::Message(message(error)),
            _ => ScriptError::Message("(not a string)".into()),
        }
    }
}

impl From<mlua::Error> for ScriptError {
    fn from(error: mlua::Error) -> Self {
        ScriptError::Message(message(&error))
    }
}

/// The message of a Rust error that passed through Lua, without mlua's traceback.
pub(crate) fn message(error: &mlua::Error) -> String {
    match error {
        mlua::Error::CallbackError { cause, .. } => message(cause),
        mlua::Error::RuntimeError(text) => {
            text.split("\nstack traceback:").next().unwrap_or_default().to_owned()
        }
        mlua::Error::SyntaxError { message, .. } => message.clone(),
        other => other.to_string(),
    }
}
