"""Odd but legal scripts: what Lua allows and few people write. Both sides run them, and say the same.

The scripts are ours, written for this test.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.differential import Case, same

OPTIONS = """
sysbench.cmdline.options = {
  ["a-b"] = {"x", 5}, seed = {"s", "1,2"},
  v = {"validated", 10, sysbench.cmdline.ARG_INT, function(n, v) return ffi.string(v) ~= "bad" end}
}
local function check()
  local o = sysbench.opt
  setmetatable(o, {__index = function(_, k) error("no option " .. k, 2) end,
    __newindex = function(t, k, v) rawset(t, k, v * 2) end})
  o.fresh = 4
  print(o.a_b, o.fresh, o.v, pcall(function() return o.nope end))
end
function init() check() end
function event() return true end
sysbench.cmdline.commands = {
  check = {check},
  par = {function() io.write("par " .. sysbench.opt.v .. "\\n") end, sysbench.cmdline.PARALLEL_COMMAND},
  args = {function() print(table.concat(sysbench.cmdline.argv, " "), sysbench.cmdline.command) end},
}
"""

BOOLEANS = """
local BOOL = sysbench.cmdline.ARG_BOOL
sysbench.cmdline.options = {
  none = {"no default", nil, BOOL}, one = {"as text", "1", BOOL}, yes = {"as text", "true", BOOL},
  no = {"as text", "off", BOOL}, number = {"a number", 0, BOOL}
}
function event() end
sysbench.cmdline.commands = {show = {function()
  for _, name in ipairs{"none", "one", "yes", "no", "number"} do print(name, sysbench.opt[name]) end
end}}
"""

# Name -> (script, arguments behind its name).
ODD: dict[str, tuple[str, str]] = {
    "coroutines": (
        """
local function squares(n)
  return coroutine.wrap(function() for i = 1, n do coroutine.yield(i, i * i) end end)
end
function init() for a, b in squares(3) do print(a, b) end end
function event()
  local co = coroutine.create(function(x) local y = coroutine.yield(x + 1) error({code = y}) end)
  print(coroutine.resume(co, 1))
  local ok, raised = coroutine.resume(co, 7)
  print(ok, type(raised), raised.code, coroutine.status(co))
  print(select("#", pcall(coroutine.wrap(function() return 1, nil, nil end))))
end
""",
        "run --events=2",
    ),
    "files, dates, bytecode and C types": (
        """
print(os.date("!%Y-%m-%d", os.time{year = 2020, month = 1, day = 2, hour = 12}))
local f = assert(io.open("some.txt", "w")) f:write("line1\\nline2\\n") f:close()
for line in io.lines("some.txt") do io.write("[", line, "]") end print()
print(loadstring(string.dump(function(a) return a * 2 end))(21))
ffi.cdef[[typedef struct { uint8_t r, g, b; } rgb_t; double sqrt(double);]]
print(ffi.new("int[3]", 1, 2, 3)[2], ffi.sizeof("double[4]"), ffi.new("rgb_t", 1, 2, 3).g, ffi.C.sqrt(16))
print(bit.bor(1, 6), bit.tohex(255), 0xffULL, 5LL / 2, 2 ^ 53, 1e15, 10 / 3)
print(xpcall(function() error("deep") end, function(m) return "handled " .. m end))
print(pcall(error), pcall(error, {1}) == false, select(2, pcall(error, "x", 0)))
goto done
print("skipped")
::done::
setfenv(1, setmetatable({}, {__index = _G})) x = 5 print(rawget(_G, "x"), x)
print(require("ffi") == ffi, package.loaded.bit == bit, debug.getinfo(1, "S").short_src)
io.stdout:write("a", "b", 1, "\\n") io.write(1.5, "\\n")
print(("%5.2f|%-5s|%05d|%q"):format(3.14159, "ab", 42, 'q"'))
""",
        "",
    ),
    "print of its own, tostring of its own": (
        """
local usual = print
function print(...) usual(">", ...) end
tostring = function(x) return "T(" .. type(x) .. ")" end
function event() print(1, "a", nil) return true end
""",
        "run",
    ),
    "an error that has a string": (
        'function event() error(setmetatable({}, {__tostring = function() return "custom" end})) end',
        "run",
    ),
    "an event that starts anew": (
        """
local tries = 0
function event()
  tries = tries + 1
  if tries < 4 then error({errcode = sysbench.error.RESTART_EVENT, sql_errno = 1}) end
  print("through after", tries) tries = 0
end
sysbench.hooks.before_restart_event = function(e) print("again", e.sql_errno) end
""",
        "run --events=2",
    ),
    "booleans without a default": (BOOLEANS, "show"),
    "booleans without a default, given": (BOOLEANS, "show --none=off --one=off --yes=0"),
    "booleans without a default, listed": (BOOLEANS, "help"),
    "options with a metatable": (OPTIONS, "run"),
    "options with a metatable, in a command": (OPTIONS, "check --v=50 --a_b=7"),
    # The original has the first option's validator for all, so the one with a validator comes first.
    "a validator refuses": (
        OPTIONS.replace('["a-b"]', '["w-b"]').replace(".a_b", ".w_b").replace("seed", "zeed"),
        "check --v=bad",
    ),
    "a parallel command on two threads": (OPTIONS, "par --threads=2"),
    "argv in a command": (OPTIONS, "args --v=1 --threads=3"),
    "an unknown command": (OPTIONS, "bogus"),
    "its help": (OPTIONS, "help"),
    "a loop of its own": (
        """
local n = 0
function event(id) n = n + 1 return n == 3 end
function thread_run(id)
  while ffi.C.sb_more_events(id) do
    ffi.C.sb_event_start(id)
    local over = event(id)
    ffi.C.sb_event_stop(id)
    if over then break end
  end
  print("ended", n)
  return 5
end
""",
        "run --events=10",
    ),
    "a loop that asks for no leave": (
        """
function event() end
function thread_run(id)
  for i = 1, 5 do
    ffi.C.sb_event_start(id)
    ffi.C.sb_event_stop(id)
  end
end
""",
        "run --events=3 --threads=2",
    ),
    "a checkpoint after a checkpoint": (
        """
ffi.cdef[[int usleep(unsigned int);]]
function event() ffi.C.usleep(50000) end
""",
        "run --time=3 --report-checkpoints=1,2",
    ),
    "events that come at a rate": (
        """
ffi.cdef[[int usleep(unsigned int);]]
function event() ffi.C.usleep(100) end
""",
        "run --rate=50 --events=20 --threads=2 --time=0",
    ),
    "counters": (
        """
ffi.cdef[[void sb_counter_inc(int, sb_counter_type); uint64_t sb_counter_val(int, sb_counter_type);]]
function thread_init(id) ffi.C.sb_counter_inc(id, ffi.C.SB_CNT_RECONNECT) end
function event(id)
  ffi.C.sb_counter_inc(id, "SB_CNT_READ")
  print(ffi.C.sb_counter_val(id, ffi.C.SB_CNT_READ), ffi.C.sb_counter_val(id, ffi.C.SB_CNT_RECONNECT))
end
""",
        "run --events=3",
    ),
    "C's printf between print and write": (
        """
ffi.cdef[[int printf(const char *, ...);]]
print("one") ffi.C.printf("two %d\\n", ffi.cast("int", 2)) io.write("three\\n") print("four")
""",
        "",
    ),
    "a histogram": (
        """
local h = sysbench.histogram.new(10, 1, 100)
h:print()
for i = 1, 100 do h:update(i) end
h:update(0) h:update(1e9)
h:print()
""",
        "",
    ),
    "random numbers at the edges": (
        """
local r = sysbench.rand
io.write(r.uniform(5, 5), " ", r.uniform(5.9, 5.9), " ", r.uniform(-1, -1), " ", r.uniform(1, 0), "\\n")
for _, name in ipairs({"special", "gaussian", "pareto", "default"}) do print(name, r[name](7, 7)) end
print(pcall(r.uniform)) print(pcall(r.uniform, "1", 5)) print(pcall(r.uniform, 1, {}))
print(#r.string("###"), r.string(""), r.string("abc"), r.uniform(5LL, 5ULL))
""",
        "",
    ),
    "chunks of the reports' states": (
        """
ffi.cdef[[int usleep(unsigned int);]]
local state = newproxy(true)
getmetatable(state).__gc = function() print("closed", sysbench.tid) end
-- One string in one call: print writes each value apart, and another thread's words may come in between.
io.write(("chunk %d %s %s\n"):format(sysbench.tid, tostring(sysbench.opt), tostring(state ~= nil)))
function thread_init(id) held = state print("thread_init", id) end
function event() ffi.C.usleep(50000) end
""",
        "run --threads=2 --time=2 --report-interval=1 --report-checkpoints=1,2",
    ),
    "chunks without reports": ('print("chunk", sysbench.tid) function event() end', "run --events=3"),
    "types of sysbench": (
        """
for _, name in ipairs({"sql_value", "sql_row", "sql_bind", "sql_result", "sql_error_t", "sql_bind_type_t",
    "sb_arg_t", "sb_arg_type_t", "sb_counter_type"}) do print(name, ffi.sizeof(name)) end
local places = {sql_value = "len ptr", sql_row = "ptr values",
  sql_bind = "type buffer data_len max_len is_null", sql_driver = "sname lname",
  sql_result = "counter nrows nfields statement ptr row",
  sql_connection = "error sql_errno sql_state sql_errmsg driver", sql_statement = "connection",
  sb_arg_t = "name desc value type validate"}
for _, name in ipairs({"sql_value", "sql_row", "sql_bind", "sql_driver", "sql_result", "sql_connection",
    "sql_statement", "sb_arg_t"}) do
  for field in places[name]:gmatch("%S+") do print(name, field, ffi.offsetof(name, field)) end
end
print(pcall(ffi.cdef, "typedef int sql_row;"))
ffi.cdef[[sql_result *db_query(sql_connection *con, const char *query, size_t len);
int db_bind_param(sql_statement *stmt, sql_bind *params, size_t len);]]
print(ffi.C.db_create("bogus") == nil)
""",
        "",
    ),
    "an unknown option of 0.5": (
        "function event() print(some_option, other, sysbench.opt.some_option, type(time)) return true end",
        "run --some-option=x=y --other",
    ),
}

MODULES = {
    "main.lua": """
package.path = package.path .. "./lib/?.lua"
local a = require("a")
print(a.name, a.b.hello(), a.arguments[1], inner.b == a.b, package.loaded["a"] == a)
print(pcall(require, "broken"))
function event() return require("a").name end
""",
    "lib/a.lua": 'return { name = "a", b = require("inner.b"), arguments = {...} }',
    "inner/b.lua": 'module("inner.b", package.seeall)\nfunction hello() return "hello from " .. _NAME end',
    "broken.lua": "x = = 1",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shims")


@pytest.mark.parametrize("name", ODD)
def test_an_odd_script(folder: Path, name: str) -> None:
    text, arguments = ODD[name]
    case = Case(
        name,
        f"sysbench odd.lua {arguments}",
        files={"odd.lua": text},
        unordered="two threads" in name or "states" in name,
        timed="checkpoint" in name or "states" in name,
    )
    same(folder, case)


def test_modules_that_require_modules(folder: Path) -> None:
    # Files of a case lie in one folder, so the first lines make the others.
    run = "mkdir lib inner; mv a.lua lib; mv b.lua inner; sysbench main.lua run"
    files = {Path(name).name: text for name, text in MODULES.items()}
    same(folder, Case("modules", run, files=files))


@pytest.mark.parametrize("where", ["init", "thread_init", "done"])
def test_an_interrupt_while_nothing_is_measured(folder: Path, where: str) -> None:
    script = f"""
ffi.cdef[[int usleep(unsigned int);]]
function {where}()
  print("there")
  for _ = 1, 3600 do ffi.C.usleep(1000000) end
end
function event() end
"""
    # A shell has it ignored in what it runs in the background.
    run = "env --default-signal=INT sysbench waits.lua --events=1 run >out & "
    run += (
        "until grep -qs there out; do sleep 0.05; done; kill -INT $!; wait $! || code=$?; cat out; exit $code"
    )
    same(folder, Case(where, run, files={"waits.lua": script}))
