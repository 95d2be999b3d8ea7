//! Why a function of a script failed.

use mlua::Value;

/// Why a function of a script failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// The event is to start anew: a table with `errcode` RESTART_EVENT was raised.
    #[error("the event starts anew")]
    Restart,
    /// The message that was raised, with its place in the script.
    #[error("{0}")]
    Message(String),
}

impl ScriptError {
    /// What was raised, as sysbench tells it.
    pub(crate) fn of(raised: &Value) -> Self {
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

/// The words of an error of ours that went through Lua.
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

/// An error of ours, as the script's.
pub(crate) fn told(error: mlua::Error) -> ScriptError {
    ScriptError::Message(message(&error))
}
