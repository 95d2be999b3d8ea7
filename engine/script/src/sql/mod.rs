//! `sysbench.sql`: drivers, connections, statements, parameters, results.

use std::cell::RefCell;
use std::rc::Rc;

use mlua::Lua;

use crate::Context;

/// What a script wants from the world. The rest of it (texts, parameters) waits in [`Sql`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Open connection number `connection`.
    Connect {
        /// Its number in this state.
        connection: u32,
    },
}

/// What a request came to, as far as the script's call is told at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Nothing.
    Nothing,
    /// Yes or no.
    Flag(bool),
}

/// Connections and statements of one state.
#[derive(Default)]
pub struct Sql {
    request: RefCell<Option<Request>>,
}

impl Sql {
    pub(crate) fn take_request(&self) -> Request {
        self.request.take().expect("a coroutine is left with a request")
    }
}

pub(crate) fn install(_lua: &Lua, _context: &Rc<Context>) -> mlua::Result<()> {
    Ok(())
}
