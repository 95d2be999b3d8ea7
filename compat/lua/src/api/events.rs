//! The function that runs one event, and `thread_run`, which scripts may call, wrap or replace.

use mlua::{Function, Lua, Table};

use crate::compile;
use crate::context::{Context, EventFunctions};
use crate::raw::{self, NO_RESULT};
use crate::sql::{Request, request};

pub(super) fn install(lua: &Lua, context: &Context) -> mlua::Result<()> {
    let restart = raw::function(lua, |call| {
        call.context().handler.restart_event();
        NO_RESULT
    })?;
    let chunk = compile::load(lua, "sysbench.lua", include_bytes!("lua/events.lua"))?;
    let (run_event, default_thread_run) = chunk.call(restart)?;
    let _ = context.event_functions.set(EventFunctions { run_event, default_thread_run });
    Ok(())
}

/// The functions of `ffi.C` that a `thread_run` calls.
pub(super) fn symbols(lua: &Lua) -> mlua::Result<Table> {
    let symbols = lua.create_table()?;
    symbols.raw_set("sb_more_events", raw::function(lua, |call| request(call, Request::NextEvent))?)?;
    let start = raw::function(lua, |call| {
        call.context().handler.start_event();
        NO_RESULT
    })?;
    let stop = raw::function(lua, |call| {
        call.context().handler.stop_event();
        NO_RESULT
    })?;
    symbols.raw_set("sb_event_start", start)?;
    symbols.raw_set("sb_event_stop", stop)?;
    Ok(symbols)
}

pub(crate) fn event_function(context: &Context) -> Function {
    context.event_functions.get().expect("`install` comes first").run_event.clone()
}

/// The `thread_run` that the script defines; `None` if it keeps the default.
pub(crate) fn own_thread_run(lua: &Lua, context: &Context) -> mlua::Result<Option<Function>> {
    let function: Option<Function> = lua.globals().get("thread_run")?;
    let default = context.event_functions.get().map(|functions| &functions.default_thread_run);
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
