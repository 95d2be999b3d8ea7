//! Whose turn it is in a state, and on a thread.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::context::Context;

/// The context of the user that runs.
#[repr(transparent)]
pub(crate) struct Current(Cell<*const Context>);

impl Default for Current {
    fn default() -> Self {
        Self(Cell::new(std::ptr::null()))
    }
}

impl Current {
    /// Makes `context` the current one; the state must be gone before it. Returns the one before.
    #[inline]
    pub(crate) fn set(&self, context: *const Context) -> *const Context {
        self.0.replace(context)
    }
}

thread_local! {
    static CURRENT: RefCell<Option<Rc<Context>>> = const { RefCell::new(None) };
}

/// The context of the state that runs on this thread, for functions that Lua calls through `ffi`, which get
/// nothing but their arguments.
pub fn current() -> Option<Rc<Context>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Makes `context` the current one, and that of its state, while `work` runs.
#[inline]
pub(crate) fn within<T>(turns: &Current, context: &Rc<Context>, work: impl FnOnce() -> T) -> T {
    // One state may run inside a call of another: a report hook, say.
    let before = CURRENT.replace(Some(Rc::clone(context)));
    let turn = turns.set(Rc::as_ptr(context));
    let done = work();
    turns.set(turn);
    CURRENT.set(before);
    done
}
