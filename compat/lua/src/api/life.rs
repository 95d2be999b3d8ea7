//! `thread_run`: the loop of events, as a function that scripts may call, wrap or replace.

use std::rc::Rc;

use mlua::{Function, Lua};

use crate::Context;
use crate::chunks;
use crate::life;

const CODE: &str = include_str!("lua/life.lua");

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let own: Function = chunks::load(lua, "sysbench.lua", CODE.as_bytes())?.call(life::event(lua)?)?;
    context.keep_thread_run(own);
    Ok(())
}

/// The script's own `thread_run`; `None` where it has left the one of [`install`] in place.
///
/// # Errors
/// It has something else there.
pub fn thread_run(lua: &Lua, context: &Context) -> mlua::Result<Option<Function>> {
    let found: Option<Function> = lua.globals().get("thread_run")?;
    Ok(found.filter(|found| Some(found) != context.thread_run()))
}

#[cfg(test)]
mod tests {
    use crate::testing::state;

    #[test]
    fn a_loop_of_the_scripts_own_is_told_from_the_usual_one() {
        let has_own = |text: &str| state(text, &Default::default()).thread_run().unwrap().is_some();
        assert!(!has_own("function event() end assert(type(thread_run) == 'function')"));
        assert!(has_own("local usual = thread_run function thread_run(id) return usual(id) end"));
        assert!(!has_own("thread_run = nil"));
    }
}
