//! `thread_run`: the loop of events, as a function that scripts may call, wrap or replace.

use std::rc::Rc;

use mlua::{Function, Lua};

use crate::Context;
use crate::life;

const CODE: &str = include_str!("lua/life.lua");
const OWN: &str = "dbdyno.thread_run";

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let code: Function = lua.load(CODE).set_name("sysbench.lua").into_function()?;
    let own: Function = code.call(life::event(lua, context)?)?;
    lua.set_named_registry_value(OWN, own)
}

/// The script's own `thread_run`; `None` where it has left the one of [`install`] in place.
///
/// # Errors
/// Lua's registry was tampered with.
pub fn thread_run(lua: &Lua) -> mlua::Result<Option<Function>> {
    let own: Function = lua.named_registry_value(OWN)?;
    let found: Option<Function> = lua.globals().get("thread_run")?;
    Ok(found.filter(|found| found != &own))
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
