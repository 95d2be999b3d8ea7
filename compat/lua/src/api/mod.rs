//! The `sysbench` table and other Lua globals; each module installs one group.

mod base;
pub mod cmdline;
pub mod events;
mod histogram;
mod legacy;
pub mod modules;
pub mod opt;
pub(crate) mod rand;
pub(crate) mod ranges;
pub mod reports;
mod symbols;

use std::rc::Rc;

use mlua::Lua;

use crate::context::Context;

/// Sets the globals that a script needs when its first line runs.
pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let sysbench = lua.create_table()?;
    lua.globals().set("sysbench", &sysbench)?;
    sysbench.set("tid", context.tid)?;
    sysbench.set("version", context.config.version.as_str())?;
    sysbench.set("version_string", context.config.version_string.as_str())?;
    sysbench.set("hooks", lua.create_table()?)?;
    let error = lua.create_table()?;
    error.set("NONE", 0)?;
    error.set("RESTART_EVENT", 1)?;
    sysbench.set("error", error)?;
    base::install(lua)?;
    crate::sql::install(lua, context)?;
    rand::install(lua, context)?;
    symbols::install(lua, context)?;
    cmdline::install(lua, context)?;
    reports::install(lua, context)?;
    legacy::install(lua, context)?;
    events::install(lua, context)?;
    modules::install(lua, context)?;
    Ok(())
}
