//! Calls a function of a script in a coroutine.

use std::rc::Rc;

use mlua::{Function, Thread};

use crate::context::{self, Context};
use crate::error::ScriptError;
use crate::raw::{Coroutine, ReturnValue, Stop};
use crate::sql::{Answer, Request};
use crate::vm::Vm;

/// The state of a call.
#[derive(Debug)]
pub enum Progress {
    /// The call waits for the result of a request ([`Task::resume`]).
    Requested(Request),
    Returned(ReturnValue),
    Failed(ScriptError),
}

/// A function of a script with its coroutine. It can be called any number of times.
pub struct Task {
    // Declared before `vm`, so dropped before the Lua state.
    function: Function,
    thread: Thread,
    coroutine: Coroutine,
    /// Whether the coroutine has failed and must be recreated before the next call.
    has_failed: bool,
    vm: Rc<Vm>,
    context: Rc<Context>,
}

impl Task {
    /// A task that calls `function` with the current globals.
    pub(crate) fn new(vm: &Rc<Vm>, context: &Rc<Context>, function: Function) -> mlua::Result<Self> {
        let thread = vm.lua().create_thread(function.clone())?;
        let coroutine = Coroutine::new(&thread);
        let (vm, context) = (Rc::clone(vm), Rc::clone(context));
        Ok(Self { function, thread, coroutine, has_failed: false, vm, context })
    }

    /// Starts the call.
    #[inline]
    pub fn start(&mut self, arguments: &[i64]) -> Progress {
        if self.has_failed
            && let Err(error) = self.recreate_coroutine()
        {
            return Progress::Failed(ScriptError::Message(error.to_string()));
        }
        let stop = context::with_current(&self.vm.current, &self.context, || self.coroutine.start(arguments));
        self.convert_stop(stop)
    }

    /// Continues after [`Progress::Requested`].
    #[inline]
    pub fn resume(&mut self, answer: Answer) -> Progress {
        let resume = || self.coroutine.resume_with(answer);
        let stop = context::with_current(&self.vm.current, &self.context, resume);
        self.convert_stop(stop)
    }

    #[inline]
    fn convert_stop(&mut self, stop: Stop) -> Progress {
        match stop {
            Stop::Requested => Progress::Requested(self.context.sql.take_request()),
            Stop::Returned => Progress::Returned(self.coroutine.return_value()),
            Stop::Yielded => {
                self.has_failed = true;
                Progress::Failed(ScriptError::Message("attempt to yield from outside a coroutine".into()))
            }
            Stop::Failed => {
                self.has_failed = true;
                Progress::Failed(ScriptError::from_lua(&self.coroutine.take_error(self.vm.lua())))
            }
        }
    }

    #[cold]
    fn recreate_coroutine(&mut self) -> mlua::Result<()> {
        let thread = self.vm.lua().create_thread(self.function.clone())?;
        let coroutine = Coroutine::new(&thread);
        coroutine.use_globals_of(&self.coroutine);
        (self.thread, self.coroutine) = (thread, coroutine);
        self.has_failed = false;
        Ok(())
    }
}
