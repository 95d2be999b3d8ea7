//! Changes to Lua's standard library: `print` writes to the host, `io.stdout` is unbuffered, and a coroutine that a script
//! creates can call the server.

use mlua::{Function, Lua, Table};

use crate::compile;
use crate::raw::{self, Call, CallResult, CallReturn, NO_RESULT};

/// If a nested coroutine waits for the result of a request, the coroutines that resumed it yield too, down to the one that
/// Rust resumes. The result returns the same way. Other yields of the script are unchanged.
const COROUTINES: &str = r"
local request_marker, yield_request, resume, create = ...
local running, status = coroutine.running, coroutine.status
local function pass_requests(inner, ok, ...)
   if ok and (...) == request_marker then
      return pass_requests(inner, resume(inner, yield_request()))
   end
   return ok, ...
end
function coroutine.resume(inner, ...)
   return pass_requests(inner, resume(inner, ...))
end
local function return_or_raise(ok, ...)
   if ok then return ... end
   error((...), 0)
end
function coroutine.wrap(body)
   local inner = create(body)
   return function(...) return return_or_raise(pass_requests(inner, resume(inner, ...))) end
end
";

/// Prints its argument, a string. A raw function, because finalizers may call it while their state closes.
pub(super) fn print(call: &Call) -> CallResult {
    call.context().host.print_bytes(call.bytes(1).unwrap_or_default());
    NO_RESULT
}

const PRINT: &str = include_str!("lua/print.lua");

pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let globals = lua.globals();
    let print: Function = compile::load(lua, "=print", PRINT.as_bytes())?.call(raw::function(lua, print)?)?;
    globals.set("print", print)?;
    lua.load("io.stdout:setvbuf('no')").exec()?;
    let coroutine = globals.get::<Table>("coroutine")?;
    let (resume, create) = (coroutine.get::<Function>("resume")?, coroutine.get::<Function>("create")?);
    let yield_request = raw::function(lua, |_| Ok(CallReturn::Yield))?;
    compile::load(lua, "=coroutine", COROUTINES.as_bytes())?.call((
        raw::request_marker_value(),
        yield_request,
        resume,
        create,
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::error::ScriptError;
    use crate::testing::{RecordingHost, failure, printed, users};

    #[test]
    fn print_joins_with_tabs_and_calls_tostring() {
        assert_eq!(printed("print(1, 'two', nil, true, 0.5)"), "1\ttwo\tnil\ttrue\t0.5\n");
        let text = "print(setmetatable({}, {__tostring = function() return 'me' end}))";
        assert_eq!(printed(text), "me\n");
        let text = "local usual = tostring function tostring(v) return '<' .. usual(v) .. '>' end print(1, {} ~= nil)";
        assert_eq!(printed(text), "<1>\t<true>\n");
    }

    #[test]
    fn tostring_must_return_a_string() {
        let text = "
            local usual = print
            local failing = setmetatable({}, {__tostring = function() error('no') end})
            usual(pcall(function() usual(failing) end))
            local place = tostring
            function tostring(value) return value == 5 and {} or place(value) end
            usual(pcall(function() usual(5) end))";
        let output = printed(text);
        let expected =
            "false\ttest.lua:3: no\nfalse\ttest.lua:7: 'tostring' must return a string to 'print'\n";
        assert_eq!(output, expected);
    }

    #[test]
    fn finalizers_can_print_while_the_state_closes() {
        let text = "local state = newproxy(true)
            getmetatable(state).__gc = function() print('closed', sysbench.tid, nil) end held = state";
        assert_eq!(printed(text), "closed\t0\tnil\n");
        let host = Arc::new(RecordingHost::default());
        drop(users(text, &host, 2));
        let output = host.printed.lock().unwrap().clone();
        let mut lines: Vec<_> = output.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["closed\t0\tnil", "closed\t1\tnil"]);
    }

    #[test]
    fn coroutines_of_the_script_keep_luas_semantics() {
        let text = "
            local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error('at ' .. b) end)
            print(coroutine.resume(co, 1)) print(coroutine.resume(co, 5)) print(coroutine.status(co))
            local next_of = coroutine.wrap(function() coroutine.yield(nil, 2) return 'end' end)
            print(next_of()) print(next_of()) print(pcall(next_of))";
        let output = printed(text);
        let lines: Vec<_> = output.lines().collect();
        assert_eq!(lines[0], "true\t2");
        assert_eq!(lines[1], "false\ttest.lua:2: at 5");
        assert_eq!(lines[2..5], ["dead", "nil\t2", "end"]);
        assert!(lines[5].starts_with("false\tcannot resume dead coroutine"), "{}", lines[5]);
    }

    #[test]
    fn errors_contain_line_numbers_and_luas_messages() {
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
