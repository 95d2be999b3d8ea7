//! What the functions that Lua calls have in common: their arguments, and how they ask for something.

use std::ffi::c_int;

use mlua::ffi::{LUA_TBOOLEAN, LUA_TNIL, LUA_TNUMBER, LUA_TSTRING};

use super::request::{Answer, ConnectionId, Request, StatementId};
use crate::front::Level;
use crate::raw::{Call, NOTHING, ONE, Pushed, Returns};

/// LuaJIT's type of `ffi` values.
pub(super) const LUA_TCDATA: c_int = 10;

/// Leaves the coroutine with `request`; where it cannot be left, has it done at once.
#[inline]
pub(crate) fn want(call: &Call, request: Request) -> Returns {
    let context = call.context();
    if call.can_leave() {
        context.sql.request.set(Some(request));
        return Ok(Pushed::Left);
    }
    match context.world.at_once(context, request) {
        Answer::Nothing => NOTHING,
        Answer::Flag(flag) => {
            call.push_bool(flag);
            ONE
        }
    }
}

/// False, with `alert` in the log, for a call that cannot be made.
pub(super) fn refuse(call: &Call, alert: &str) -> Returns {
    call.context().front.log(Level::Alert, alert);
    call.push_bool(false);
    ONE
}

pub(super) const CLOSED: &str = "attempt to use an already closed connection";

/// The connection that is argument 1, and whether it is open.
#[inline]
pub(super) fn connection(call: &Call) -> Result<(ConnectionId, bool), String> {
    let book = call.context().sql.book.borrow();
    let found = book.connection_of(call.field(1, 1)).ok_or("not a connection")?;
    Ok((found, book.connection(found).open))
}

/// The statement that is argument 1.
#[inline]
pub(super) fn statement(call: &Call) -> Result<StatementId, String> {
    let found = call.context().sql.book.borrow().statement_of(call.field(1, 1));
    found.ok_or_else(|| "attempt to use a closed statement".to_owned())
}

/// Text for the server as argument `index`.
pub(super) fn text<'a>(call: &'a Call, index: c_int, name: &str) -> Result<&'a [u8], String> {
    match call.kind(index) {
        LUA_TSTRING => Ok(call.bytes(index).unwrap_or_default()),
        kind => {
            let word = match kind {
                LUA_TNUMBER => "number",
                LUA_TNIL | -1 => "nil",
                LUA_TBOOLEAN => "boolean",
                LUA_TCDATA => "cdata",
                _ => "table",
            };
            Err(format!("attempt to get length of local '{name}' (a {word} value)"))
        }
    }
}
