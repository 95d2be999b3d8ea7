//! The life of a user as the script sees it: events, and a loop of the script's own.

use mlua::{Function, Lua, Table};

use crate::chunks;
use crate::raw::{self, Call, NOTHING, Raw, Returns};
use crate::sql::{Request, want};

/// An event is to start anew.
struct Restarted;

impl Raw for Restarted {
    fn call(call: &Call) -> Returns {
        call.context().world.restarted();
        NOTHING
    }
}

/// `sb_more_events`: whether another event is due, as soon as one is.
struct MoreEvents;

impl Raw for MoreEvents {
    fn call(call: &Call) -> Returns {
        want(call, Request::NextEvent)
    }
}

/// `sb_event_start`.
struct EventStart;

impl Raw for EventStart {
    fn call(call: &Call) -> Returns {
        call.context().world.event_start();
        NOTHING
    }
}

/// `sb_event_stop`.
struct EventStop;

impl Raw for EventStop {
    fn call(call: &Call) -> Returns {
        call.context().world.event_stop();
        NOTHING
    }
}

/// The function that plays one event. `event` is looked up every time, as sysbench does.
pub(crate) fn event(lua: &Lua) -> mlua::Result<Function> {
    let chunk = chunks::load(lua, "sysbench.lua", include_bytes!("life.lua"))?;
    chunk.call(raw::function::<Restarted>(lua)?)
}

/// What a script with a `thread_run` of its own calls through `ffi.C`.
pub(crate) fn symbols(lua: &Lua) -> mlua::Result<Table> {
    let symbols = lua.create_table()?;
    symbols.raw_set("sb_more_events", raw::function::<MoreEvents>(lua)?)?;
    symbols.raw_set("sb_event_start", raw::function::<EventStart>(lua)?)?;
    symbols.raw_set("sb_event_stop", raw::function::<EventStop>(lua)?)?;
    Ok(symbols)
}
