//! The interface of 0.5, which 1.0 still has: globals for the database, for the thread and for the script.

use std::rc::Rc;

use mlua::{Function, Lua, Table};

use crate::Context;
use crate::program::Compat;

const CODE: &str = include_str!("lua/legacy.lua");

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    if context.program.compat != Compat::V10 {
        return Ok(());
    }
    let globals = lua.globals();
    globals.set("thread_id", context.tid)?;
    globals.set("test", context.front.script_path())?;
    let code: Function = lua.load(CODE).set_name("sysbench.compat.lua").into_function()?;
    code.call(globals.get::<Table>("sysbench")?)
}
