"""Scripts of one's own, from files, standard input and shebangs: what they may call, what their errors say.

Each is run by both sides; what it prints is compared. The scripts are ours, written for this test.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.differential import Case, same

EVENTS = "function event() end\n"

# Name -> (script, arguments behind its name).
PLAIN: dict[str, tuple[str, str]] = {
    "no command": ('print("chunk", sysbench.cmdline.command)', ""),
    "a run": (EVENTS, "run --events=5"),
    "life": (
        """
function init() print("init") end
function thread_init(id) print("thread_init", id, sysbench.tid) end
function event(id) print("event", id) end
function thread_done(id) print("thread_done", id) end
function done() print("done") end
print("chunk", sysbench.tid, sysbench.opt)
""",
        "run --events=2",
    ),
    "no event": ("function init() end", "run"),
    "an event that stops": ("function event() return true end", "run"),
    "an event that returns 0": ("function event() return 0 end", "run"),
    "an event that returns false": ("function event() return false end", "run --events=4"),
    "hooks of commands": (
        'function prepare() print("prepare") end\nfunction cleanup() print("cleanup") end\n'
        'function help() print("help") end',
        "prepare",
    ),
    "no prepare": (EVENTS, "prepare"),
    "no cleanup": (EVENTS, "cleanup"),
    "no help": (EVENTS, "help"),
    "an unknown command": (EVENTS, "bogus"),
    "a syntax error": ("function event( end", "run"),
    "a syntax error of another kind": ("x = = 3", ""),
    "an error in the chunk": ('error("chunk fails")', "run"),
    "an error in init": ('function init() error("init fails") end\n' + EVENTS, "run"),
    "an error in thread_init": ('function thread_init() error("fails") end\n' + EVENTS, "run"),
    "an error in event": ('function event() error("event fails") end', "run"),
    "an error that is no string": ("function event() error({}) end", "run"),
    "an error without a place": ('function event() error("bare", 0) end', "run"),
    "an error in done": (EVENTS + 'function done() error("fails") end', "run --events=1"),
    "an error in prepare": ('function prepare() error("fails") end', "prepare"),
    "nil is called": ("function event() nothing() end", "run"),
    "os.exit": ("function event() os.exit(7) end", "run"),
    "options": (
        """
sysbench.cmdline.options = {
  number = {"a number", 5}, text = {"a text", "words"}, flag = {"a flag", true},
  list = {"a list", {"a", "b"}},
  none = {"no default"}, ["with-dash"] = {"a dash", 1.5}, empty = {"empty", ""}, off = {"off", false},
}
function event()
  local o = sysbench.opt
  print(o.number, o.text, o.flag, table.concat(o.list, "+"), o.none, o.with_dash)
  print(o.empty, o.off, o.threads, o.events)
end
""",
        "run --events=1",
    ),
    "options, given": (
        """
sysbench.cmdline.options = {
  number = {"a number", 5}, text = {"a text", "words"}, flag = {"a flag", true},
  list = {"a list", {"a", "b"}},
}
function event()
  local o = sysbench.opt
  print(o.number, o.text, o.flag, table.concat(o.list, "+"), #o.list, type(o.number))
end
""",
        "run --events=1 --number=7.25 --text='x y' --flag=off --list=1,,2,3",
    ),
    "options, help": (
        'sysbench.cmdline.options = {zebra = {"last", 5}, apple = {"first", "x"}, '
        'flag = {"a flag", false}, bare = {"b"}}',
        "help",
    ),
    "options, unknown": ('sysbench.cmdline.options = {number = {"n", 5}}\n' + EVENTS, "run --bogus=1"),
    "options, empty table": ("sysbench.cmdline.options = {}\n" + EVENTS, "run --bogus=1"),
    "options, wrong structure": ("sysbench.cmdline.options = {1, 2}\n" + EVENTS, "run"),
    "options, wrong type": ("sysbench.cmdline.options = 5\n" + EVENTS, "run"),
    "options, general": (
        """
function event()
  local names = {}
  for name, value in pairs(sysbench.opt) do
    if type(value) ~= "table" and name:sub(1, 5) ~= "mysql" then
      names[#names + 1] = name .. "=" .. tostring(value)
    end
  end
  table.sort(names)
  print(table.concat(names, "\\n"))
end
""",
        "run --events=1 --time=7",
    ),
    "options, lists": (
        "function event() print(#sysbench.opt.mysql_host, sysbench.opt.mysql_host[1], "
        'table.concat(sysbench.opt.mysql_ignore_errors, " ")) end',
        "run --events=1",
    ),
    "commands": (
        'sysbench.cmdline.commands = {hello = {function() print("hello", sysbench.cmdline.command) end}}',
        "hello",
    ),
    "commands, failing": ("sysbench.cmdline.commands = {hello = {function() return false end}}", "hello"),
    "commands, with an error": (
        'sysbench.cmdline.commands = {hello = {function() error("no") end}}',
        "hello",
    ),
    "commands, parallel on one thread": (
        'sysbench.cmdline.commands = {hello = {function() print("hello", sysbench.tid) end, '
        "sysbench.cmdline.PARALLEL_COMMAND}}",
        "hello",
    ),
    "commands over run": ('sysbench.cmdline.commands = {run = {function() print("mine") end}}', "run"),
    "argv": (
        "for i = 0, #sysbench.cmdline.argv do print(i, sysbench.cmdline.argv[i]) end "
        "print(sysbench.cmdline.script_path, sysbench.cmdline.command)",
        "run --threads=2 --other=1",
    ),
    "versions": ("print(sysbench.version, sysbench.version_string, sysbench.error.NONE)", ""),
    "constants": (
        """
local c = sysbench.cmdline
print(c.ARG_NULL, c.ARG_BOOL, c.ARG_INT, c.ARG_SIZE, c.ARG_DOUBLE)
print(c.ARG_STRING, c.ARG_LIST, c.ARG_FILE, c.ARG_MAX)
local names = {}
for name in pairs(sysbench) do names[#names + 1] = name end
table.sort(names)
print(table.concat(names, " "))
for _, part in ipairs({"rand", "sql", "histogram", "hooks", "cmdline"}) do
  names = {}
  for name in pairs(sysbench[part]) do names[#names + 1] = tostring(name) end
  table.sort(names)
  print(part, table.concat(names, " "))
end
""",
        "",
    ),
    "random numbers": (
        """
function event()
  local r = sysbench.rand
  for _, draw in ipairs({"default", "uniform", "gaussian", "special", "pareto"}) do
    local low, high = 1e9, -1
    for _ = 1, 2000 do
      local x = r[draw](5, 9)
      low, high = math.min(low, x), math.max(high, x)
    end
    print(draw, low >= 5 and high <= 9 and low < high, type(r[draw](1, 2)))
  end
  print(#r.string("###-@@@"), r.string("###-@@@"):match("^%d%d%d%-%l%l%l$") ~= nil, r.string("abc"))
  print(type(r.unique()), r.uniform_double() < 1, type(r.uniform_uint64()))
end
""",
        "run --events=1",
    ),
    "a histogram": (
        """
function event()
  local h = sysbench.histogram.new(1024, 0.001, 100000)
  for _, v in ipairs({1, 1, 2, 500}) do h:update(v) end
  h:print()
end
""",
        "run --events=1",
    ),
    "thread_run of its own": (
        'function thread_run(id) print("mine", id) end',
        "run",
    ),
    "thread_run around the default": (
        "local default = thread_run\nfunction event() end\n"
        'function thread_run(id) print("before") local x = default(id) print("after") return x end',
        "run --events=3",
    ),
    "report hooks": (
        """
function event() end
function sysbench.hooks.report_cumulative(stat)
  print(stat.events, stat.threads_running, stat.reads, stat.errors, stat.reconnects, stat.latency_pct ~= nil)
  local names = {}
  for name in pairs(stat) do names[#names + 1] = name end
  table.sort(names)
  print(table.concat(names, " "))
end
""",
        "run --events=4",
    ),
    "an error in a report hook": (
        EVENTS + 'function sysbench.hooks.report_cumulative(stat) error("no report") end',
        "run --events=4",
    ),
    "ffi": (
        """
ffi.cdef[[
void sb_counter_inc(int, sb_counter_type);
int usleep(unsigned int);
int printf(const char *, ...);
]]
function event() ffi.C.sb_counter_inc(sysbench.tid, ffi.C.SB_CNT_ERROR) ffi.C.usleep(10) end
""",
        "run --events=3 --verbosity=4",
    ),
    "globals": (
        """
local names = {}
for name in pairs(_G) do names[#names + 1] = name end
table.sort(names)
print(table.concat(names, " "))
""",
        "",
    ),
    "globals of 0.5": (
        "function event() print(thread_id, test, num_threads, max_requests, oltp_tables_count, switch, "
        "mysql_table_engine, sb_rand_uniform(3, 3), #sb_rand_str('###')) end",
        "run --events=1 --oltp-tables-count=7 --switch",
    ),
    "events over threads": ("function event() end", "run --events=40 --threads=4"),
    "an unlimited run warns": ("function event() return true end", "run --time=0"),
    "validate and debug": (EVENTS, "run --events=2 --validate --debug --threads=1"),
    "percentile 0": (EVENTS, "run --events=2 --percentile=0"),
    "print_test_options": (
        'sysbench.cmdline.options = {number = {"n", 5}}\nsysbench.cmdline.print_test_options()',
        "",
    ),
    "command_defined": (
        "sysbench.cmdline.commands = {hello = {function() end, sysbench.cmdline.PARALLEL_COMMAND}}\n"
        'print(sysbench.cmdline.command_defined("hello"), sysbench.cmdline.command_defined("x"), '
        'sysbench.cmdline.command_parallel("hello"))',
        "",
    ),
    "sql without a server": (
        "print(sysbench.sql.type.INT, sysbench.sql.type.VARCHAR, sysbench.sql.error.FATAL)\n"
        "local d = sysbench.sql.driver()\nprint(d:name(), d)",
        "",
    ),
    "an unknown driver": ('local d = sysbench.sql.driver("bogus")', ""),
}

STDIN = {
    "a chunk": ('print("hello from standard input")\n', ""),
    "a dash": ('print("hello", sysbench.cmdline.script_path)\n', "-"),
    "a command behind it is ignored": (EVENTS + 'print("chunk")\n', "- run --bogus"),
    "an error": ('error("no")\n', ""),
    "a syntax error": ("function (\n", "-"),
    "nothing": ("", ""),
    "options": ("print(sysbench.opt)\n", "--threads=3 -"),
    "a shebang line": ('#!/usr/bin/env sysbench\nprint("after it")\n', "-"),
}

COMMAND = """#!/usr/bin/env sysbench
sysbench.cmdline.options = {size = {"how many", 3}}
sysbench.cmdline.commands = {fill = {function() print("fill", sysbench.opt.size) end}}
function event() end
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shims")


@pytest.mark.parametrize("name", PLAIN)
def test_a_script(folder: Path, name: str) -> None:
    text, arguments = PLAIN[name]
    same(folder, Case(name, f"sysbench script.lua {arguments}", files={"script.lua": text}))


def test_an_error_in_thread_done(folder: Path) -> None:
    text = EVENTS + 'function thread_done() error("fails") end'
    run = "sysbench script.lua run --events=1"
    same(folder, Case("thread_done", run, files={"script.lua": text}, failing_with=1))


@pytest.mark.parametrize("name", STDIN)
def test_standard_input(folder: Path, name: str) -> None:
    text, arguments = STDIN[name]
    same(folder, Case(name, f"sysbench {arguments}", stdin=text))


def test_a_shebang(folder: Path) -> None:
    run = "./command --size=5 fill; ./command help; ./command --events=2 run; ! ./command bogus"
    same(folder, Case("shebang", run, files={"command": COMMAND}))


def test_parallel_commands(folder: Path) -> None:
    text = (
        "sysbench.cmdline.commands = {hello = {function() "
        # One write a thread: the parts of a print() may come between those of another thread's.
        'io.write("hello " .. sysbench.tid .. " " .. sysbench.opt.threads .. "\\n") end, '
        "sysbench.cmdline.PARALLEL_COMMAND}}"
    )
    case = Case("parallel", "sysbench s.lua hello --threads=3", files={"s.lua": text}, unordered=True)
    same(folder, case)


def test_users_that_share_a_loop_have_what_they_set(folder: Path) -> None:
    # From 17 on they share LuaJIT states.
    module = "local M = {n = 0}\nfunction M.up() M.n = M.n + 1 return M.n end\nreturn M\n"
    text = """
local counting = require("counting")
ffi.cdef("struct point { int x; };")
math.randomseed(7)
local here = 0
there = (there or 0) + 1
table.mine = (table.mine or 0) + 1
package.path = package.path .. ";elsewhere"
function string:twice() return self .. self end
function thread_init()
   here = here + 1
   there = there + 1
   local point = ffi.new("struct point", sysbench.tid)
   io.write(table.concat({sysbench.tid, thread_id, here, there, counting.up(), table.mine, point.x,
      select(2, package.path:gsub("elsewhere", "")), math.random(1000), ("ab"):twice()}, " ") .. "\\n")
end
function event() end
function thread_done()
   sysbench.done = (sysbench.done or 0) + 1
   io.write("done " .. sysbench.tid .. " " .. sysbench.done .. "\\n")
end
"""
    files = {"s.lua": text, "counting.lua": module}
    run = "sysbench s.lua run --events=40 --threads=40 --verbosity=0"
    same(folder, Case("shared", run, files=files, unordered=True))


def test_modules(folder: Path) -> None:
    files = {
        "mine.lua": 'print("mine is loaded", ...)\nreturn {value = 5}',
        "script.lua": 'print(require("mine").value)\nrequire("nowhere_at_all")',
        "oltp_read_write": 'print("a file here shadows the bundled script", sysbench.cmdline.script_path)',
        "common.lua": 'require("oltp_common")\nprint(type(sysbench.cmdline.options), type(thread_init))',
    }
    run = (
        "! sysbench script.lua run; sysbench oltp_read_write; sysbench common.lua; ! sysbench mine run;"
        'LUA_PATH="/nowhere/?.lua;;" sysbench script.lua'
    )
    same(folder, Case("modules", run, files=files))


def test_a_script_that_is_a_folder(folder: Path) -> None:
    same(folder, Case("folder", "mkdir thing; sysbench ./thing run"))
