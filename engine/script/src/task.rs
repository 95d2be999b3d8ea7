//! A script's functions under way.

use std::ffi::CStr;
use std::rc::Rc;

use mlua::{Function, Lua, Thread, Value};

use crate::Context;
use crate::context;
use crate::raw::{Back, Coroutine, Told};
use crate::sql::{Answer, Request};

/// What a coroutine comes back with.
#[derive(Debug)]
pub enum Step {
    /// It wants something from the world, and goes on with the answer ([`Task::answer`]).
    Wants(Request),
    /// The function has returned.
    Done(Returned),
    /// The function has failed.
    Failed(ScriptError),
}

/// What a function returned first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// Nothing, or nil.
    Nothing,
    /// The boolean false.
    False,
    /// Anything else.
    True,
}

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

/// A coroutine in which one function after the other runs.
pub struct Task {
    lua: Lua,
    context: Rc<Context>,
    thread: Thread,
    coroutine: Coroutine,
}

impl Task {
    pub(crate) fn new(lua: &Lua, context: &Rc<Context>) -> mlua::Result<Self> {
        // Any function will do: it is replaced before it could run.
        let nothing = lua.globals().get::<Function>("print")?;
        let thread = lua.create_thread(nothing)?;
        let coroutine = Coroutine::of(&thread);
        Ok(Self { lua: lua.clone(), context: Rc::clone(context), thread, coroutine })
    }

    /// Calls the global function `name`. `None` where there is none.
    pub fn call_global(&mut self, name: &CStr, arguments: &[i64]) -> Option<Step> {
        self.coroutine.begin_global(name, arguments).then(|| {
            let back = context::within(&self.context, || self.coroutine.resume(arguments.len() as _));
            self.step(back)
        })
    }

    /// Calls `function` without arguments.
    pub fn call(&mut self, function: &Function) -> Step {
        if let Err(error) = self.renew(function) {
            return Step::Failed(ScriptError::Message(error.to_string()));
        }
        let back = context::within(&self.context, || self.coroutine.resume(0));
        self.step(back)
    }

    /// Goes on after [`Step::Wants`].
    #[inline]
    pub fn answer(&mut self, answer: Answer) -> Step {
        let told = match answer {
            Answer::Nothing => Told::Nothing,
            Answer::Flag(flag) => Told::Flag(flag),
        };
        let back = context::within(&self.context, || self.coroutine.go_on(told));
        self.step(back)
    }

    #[inline]
    fn step(&mut self, back: Back) -> Step {
        match back {
            Back::Left => Step::Wants(self.context.sql.take_request()),
            Back::Ended if self.coroutine.result_is_true() => Step::Done(Returned::True),
            Back::Ended if self.coroutine.result_is_false() => Step::Done(Returned::False),
            Back::Ended => Step::Done(Returned::Nothing),
            Back::Yielded => {
                self.fail(ScriptError::Message("attempt to yield from outside a coroutine".into()))
            }
            Back::Failed => {
                let error = self.error();
                self.fail(error)
            }
        }
    }

    /// A coroutine that failed is of no use any more.
    #[cold]
    fn fail(&mut self, error: ScriptError) -> Step {
        match self.lua.globals().raw_get::<Function>("print").and_then(|nothing| self.renew(&nothing)) {
            Ok(()) => Step::Failed(error),
            Err(error) => Step::Failed(ScriptError::Message(error.to_string())),
        }
    }

    fn renew(&mut self, function: &Function) -> mlua::Result<()> {
        self.thread = self.lua.create_thread(function.clone())?;
        self.coroutine = Coroutine::of(&self.thread);
        Ok(())
    }

    /// The error that the coroutine has failed with.
    #[cold]
    fn error(&self) -> ScriptError {
        ScriptError::of(&self.coroutine.error(&self.lua))
    }
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
