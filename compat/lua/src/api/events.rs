//! The function that runs one event, and `thread_run`, which scripts may call, wrap or replace.

use mlua::{Function, Lua, Table};

use crate::compile;
use crate::context::Context;
use crate::raw::{self, NOTHING};
use crate::sql::{Request, request};

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let restart = raw::function(lua, |call| {
        call.context().handler.restart_event();
        NOTHING
    })?;
    let chunk = compile::load(lua, "sysbench.lua", include_bytes!("lua/events.lua"))?;
    let _ = context.events.set(chunk.call(restart)?);
    Ok(())
}

/// The functions of `ffi.C` that a `thread_run` calls.
pub(super) fn symbols(lua: &Lua) -> mlua::Result<Table> {
    let symbols = lua.create_table()?;
    symbols.raw_set("sb_more_events", raw::function(lua, |call| request(call, Request::NextEvent))?)?;
    let start = raw::function(lua, |call| {
        call.context().handler.start_event();
        NOTHING
    })?;
    let stop = raw::function(lua, |call| {
        call.context().handler.stop_event();
        NOTHING
    })?;
    symbols.raw_set("sb_event_start", start)?;
    symbols.raw_set("sb_event_stop", stop)?;
    Ok(symbols)
}

pub(crate) fn event_function(context: &Context) -> Function {
    context.events.get().expect("`install` comes first").0.clone()
}

/// The `thread_run` that the script defines; `None` if it keeps the default.
pub(crate) fn own_thread_run(lua: &Lua, context: &Context) -> mlua::Result<Option<Function>> {
    let function: Option<Function> = lua.globals().get("thread_run")?;
    let default = context.events.get().map(|(_, default)| default);
    Ok(function.filter(|function| Some(function) != default))
}

#[cfg(test)]
mod tests {
    use crate::testing::state;

    #[test]
    fn custom_thread_run_is_distinguished_from_the_default() {
        let has_own = |text: &str| state(text, &Default::default()).thread_run().unwrap().is_some();
        assert!(!has_own("function event() end assert(type(thread_run) == 'function')"));
        assert!(has_own("local usual = thread_run function thread_run(id) return usual(id) end"));
        assert!(!has_own("thread_run = nil"));
    }
}
