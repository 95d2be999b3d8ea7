//! What differs in Lua's own library: `print` goes through the front, `io` is unbuffered, and coroutines of the script
//! pass on the requests made inside them.

use std::rc::Rc;

use mlua::{Function, Lua, Table, Value, Variadic};

use crate::Context;
use crate::chunks;
use crate::raw::{self, Call, Pushed, Raw, Returns};

/// Leaves the coroutine on behalf of one inside it, whose request waits.
struct PassOn;

impl Raw for PassOn {
    fn call(_call: &Call) -> Returns {
        Ok(Pushed::Left)
    }
}

/// A coroutine inside a coroutine that was left for a request must itself be left for it, down to the one that is
/// resumed by hand; the answer travels back the same way. What the script yields and resumes is untouched.
const COROUTINES: &str = r"
local mark, pass_on, resume, create = ...
local running, status = coroutine.running, coroutine.status
local function back(inner, fine, ...)
   if fine and (...) == mark then
      return back(inner, resume(inner, pass_on()))
   end
   return fine, ...
end
function coroutine.resume(inner, ...)
   return back(inner, resume(inner, ...))
end
local function results(fine, ...)
   if fine then return ... end
   error((...), 0)
end
function coroutine.wrap(body)
   local inner = create(body)
   return function(...) return results(back(inner, resume(inner, ...))) end
end
";

pub(crate) fn install(lua: &Lua, context: &Rc<Context>) -> mlua::Result<()> {
    let globals = lua.globals();
    let front = context.front.clone();
    globals.set(
        "print",
        lua.create_function(move |lua, values: Variadic<Value>| {
            // Looked up at each call, as Lua does: a script may have one of its own.
            let tostring = lua.globals().raw_get::<Function>("tostring")?;
            let mut line = Vec::new();
            for (position, value) in values.iter().enumerate() {
                if position > 0 {
                    line.push(b'\t');
                }
                line.extend_from_slice(&tostring.call::<mlua::String>(value)?.as_bytes());
            }
            line.push(b'\n');
            front.print_bytes(&line);
            Ok(())
        })?,
    )?;
    lua.load("io.stdout:setvbuf('no')").exec()?;
    let coroutine = globals.get::<Table>("coroutine")?;
    let (resume, create) = (coroutine.get::<Function>("resume")?, coroutine.get::<Function>("create")?);
    let pass_on = raw::function::<PassOn>(lua)?;
    chunks::load(lua, "=coroutine", COROUTINES.as_bytes())?.call((raw::mark_value(), pass_on, resume, create))
}

#[cfg(test)]
mod tests {
    use crate::task::ScriptError;
    use crate::testing::{failure, printed};

    #[test]
    fn print_joins_with_tabs_and_asks_tostring() {
        assert_eq!(printed("print(1, 'two', nil, true, 0.5)"), "1\ttwo\tnil\ttrue\t0.5\n");
        let text = "print(setmetatable({}, {__tostring = function() return 'me' end}))";
        assert_eq!(printed(text), "me\n");
        let text = "local usual = tostring function tostring(v) return '<' .. usual(v) .. '>' end print(1, {} ~= nil)";
        assert_eq!(printed(text), "<1>\t<true>\n");
    }

    #[test]
    fn coroutines_of_the_script_work_as_ever() {
        let text = "
            local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error('at ' .. b) end)
            print(coroutine.resume(co, 1)) print(coroutine.resume(co, 5)) print(coroutine.status(co))
            local next_of = coroutine.wrap(function() coroutine.yield(nil, 2) return 'end' end)
            print(next_of()) print(next_of()) print(pcall(next_of))";
        let seen = printed(text);
        let lines: Vec<_> = seen.lines().collect();
        assert_eq!(lines[0], "true\t2");
        assert_eq!(lines[1], "false\ttest.lua:2: at 5");
        assert_eq!(lines[2..5], ["dead", "nil\t2", "end"]);
        assert!(lines[5].starts_with("false\tcannot resume dead coroutine"), "{}", lines[5]);
    }

    #[test]
    fn errors_have_their_place_and_luas_words() {
        let message = |text| match failure(text) {
            ScriptError::Message(message) => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(message("#!/usr/bin/env sysbench\nerror('no')"), "test.lua:2: no");
        assert_eq!(message("x = = 1"), "test.lua:1: unexpected symbol near '='");
        assert_eq!(message("error({})"), "(not a string)");
        assert_eq!(failure("error({errcode = sysbench.error.RESTART_EVENT})"), ScriptError::Restart);
    }
}
