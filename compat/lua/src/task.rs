//! A script's functions under way.

use std::rc::Rc;

use mlua::{Function, Thread};

use crate::context::Context;
use crate::current;
use crate::error::ScriptError;
use crate::raw::{Back, Coroutine, Told};
use crate::sql::{Answer, Request};
use crate::vm::Vm;

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

/// A function in a coroutine, to be called as often as one likes.
pub struct Task {
    // Before the state, which closes with its last user.
    function: Function,
    thread: Thread,
    coroutine: Coroutine,
    /// A coroutine that has failed cannot be used again.
    failed: bool,
    vm: Rc<Vm>,
    context: Rc<Context>,
}

impl Task {
    /// Calls of `function`, in the globals that are current.
    pub(crate) fn new(vm: &Rc<Vm>, context: &Rc<Context>, function: Function) -> mlua::Result<Self> {
        let thread = vm.lua().create_thread(function.clone())?;
        let coroutine = Coroutine::of(&thread);
        let (vm, context) = (Rc::clone(vm), Rc::clone(context));
        Ok(Self { function, thread, coroutine, failed: false, vm, context })
    }

    /// Calls the function.
    #[inline]
    pub fn begin(&mut self, arguments: &[i64]) -> Step {
        if self.failed
            && let Err(error) = self.renew()
        {
            return Step::Failed(ScriptError::Message(error.to_string()));
        }
        let back = current::within(&self.vm.current, &self.context, || self.coroutine.begin(arguments));
        self.step(back)
    }

    /// Goes on after [`Step::Wants`].
    #[inline]
    pub fn answer(&mut self, answer: Answer) -> Step {
        let told = match answer {
            Answer::Nothing => Told::Nothing,
            Answer::Flag(flag) => Told::Flag(flag),
        };
        let back = current::within(&self.vm.current, &self.context, || self.coroutine.go_on(told));
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
                self.failed = true;
                Step::Failed(ScriptError::Message("attempt to yield from outside a coroutine".into()))
            }
            Back::Failed => {
                self.failed = true;
                Step::Failed(ScriptError::of(&self.coroutine.error(self.vm.lua())))
            }
        }
    }

    #[cold]
    fn renew(&mut self) -> mlua::Result<()> {
        let thread = self.vm.lua().create_thread(self.function.clone())?;
        let coroutine = Coroutine::of(&thread);
        coroutine.take_globals_of(&self.coroutine);
        (self.thread, self.coroutine) = (thread, coroutine);
        self.failed = false;
        Ok(())
    }
}
