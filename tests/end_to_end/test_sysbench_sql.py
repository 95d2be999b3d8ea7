"""Scripts of one's own on a server: what `sysbench.sql` answers, counts and complains of.

Each is run by both sides; what it prints is compared. The scripts are ours, written for this test.
"""

from __future__ import annotations

import re

import pytest
from tests.end_to_end.differential import DATABASE, Case, Database, drop_in, said, same

CONNECT = "local c = sysbench.sql.driver():connect()\n"

# Pointers there, strings here: either is shown as what it holds.
SHOW = """
local function text(held) if held == nil then return "" end return ffi.string(held) end
local function show(what)
  print(what, tonumber(c.error), c.sql_errno, text(c.sql_state), text(c.sql_errmsg))
end
local function fail() print(pcall(function() c:query("SELECT * FROM nowhere") end)) end
show("fresh")
"""
# What the fields of a connection say after a failure that was caught, and after what succeeds behind it.
FIELDS = (
    SHOW
    + """
fail() show("a query fails")
c:query("SELECT 1") show("a query")
fail() print(c:query_row("SELECT 2")) show("a row")
fail() c:query("DO 1") show("no rows")
c:query("CREATE TABLE t (id INT PRIMARY KEY)")
local s = c:prepare("INSERT INTO t VALUES (1)") show("prepare")
fail() s:execute() show("execute")
print(pcall(function() s:execute() end)) show("execute fails")
c:query("SELECT 1") show("a query after it")
print(pcall(function() c:prepare("SELEKT 1") end)) show("prepare fails")
c:query("SELECT 1") show("a query after that")
fail() c:bulk_insert_init("INSERT INTO t VALUES") show("init")
c:bulk_insert_next("(2)") show("next")
c:bulk_insert_done() show("done")
fail() print(c:check_error(nil, "the text"))
"""
)
# The database layer as C functions, which raise nothing.
THROUGH_C = (
    SHOW
    + """
local C, types = ffi.C, sysbench.sql.type
local function query(q) return C.db_query(c, q, #q) end
print(query("SELECT * FROM nowhere") == nil) show("a query fails")
local rs = query("SELECT 'a' AS a, NULL, 'ccc' UNION SELECT 'b', '', 'd'")
print(rs == nil, rs.nrows, rs.nfields, tonumber(rs.counter))
for _ = 1, rs.nrows do
  local row = C.db_fetch_row(rs)
  for k = 0, rs.nfields - 1 do
    local value = row.values[k]
    print(k, value.len, value.ptr ~= nil and ffi.string(value.ptr, value.len))
  end
end
print(C.db_fetch_row(rs) == nil, C.db_free_results(rs))
print(query("CREATE TABLE t (id INT, name VARCHAR(20), price DOUBLE)") == nil) show("no rows")
local q = "INSERT INTO t VALUES (?, ?, ?)"
local s = C.db_prepare(c, q, #q)
local id, name, price = ffi.new("int64_t[1]", 7), ffi.new("char[20]", "abc"), ffi.new("double[1]", 1.5)
local length, null = ffi.new("unsigned long[1]", 3), ffi.new("char[1]", 0)
local b = ffi.new("sql_bind[3]")
b[0].type, b[0].buffer, b[0].is_null = types.BIGINT, id, null
b[1].type, b[1].buffer, b[1].data_len, b[1].max_len = types.VARCHAR, name, length, 20
b[2].type, b[2].buffer = types.DOUBLE, price
print(s == nil, C.db_bind_param(s, b, 3), C.db_execute(s) == nil)
id[0], price[0], length[0] = 8, -2.5, 2
print(C.db_execute(s) == nil)
null[0] = 1 s:execute()
show("executed")
q = "INSERT INTO t (id) VALUES"
print(C.db_bulk_insert_init(c, q, #q), C.db_bulk_insert_next(c, "(100)", 5))
print(C.db_bulk_insert_next(c, ffi.cast("const char *", "(101), no more of it"), 5), C.db_bulk_insert_done(c))
rs = c:query("SELECT id, name, price FROM t ORDER BY 1")
for _ = 1, rs.nrows do local row = rs:fetch_row() print(row[1], row[2], row[3]) end
local d = C.db_create("mysql")
print(ffi.string(d.sname), ffi.string(d.lname), C.db_create("bogus") == nil)
local other = C.db_connection_create(d)
print(other == nil, C.db_connection_close(other), C.db_connection_close(other))
rs = query("SELECT * FROM nowhere")
print(pcall(function() c:check_error(rs, "the text") end))
q = "SELEKT"
print(C.db_prepare(c, q, #q) == nil)
print(C.db_close(s))
"""
)
SQL: dict[str, str] = {
    "query and fetch": """
c:query("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), price DOUBLE, at DATETIME)")
c:query("INSERT INTO t VALUES (1, 'one', 1.5, '2020-01-02 03:04:05'), (2, NULL, -2, NULL)")
local rs = c:query("SELECT * FROM t ORDER BY id")
print(rs.nrows, rs.nfields, rs)
for _ = 1, rs.nrows do
  local row = rs:fetch_row()
  print(row[1], row[2], row[3], row[4])
end
print(rs:fetch_row())
rs:free()
""",
    "query_row": """
print(c:query_row("SELECT 1, 'two', NULL, 4"))
print(c:query_row("SELECT 1 FROM DUAL WHERE 1 = 0"))
print(select("#", c:query_row("SELECT 'a', 'b', 'c'")))
""",
    "statements without rows": """
local rs = c:query("CREATE TABLE t (id INT)")
print(rs == nil, c:query("INSERT INTO t VALUES (1), (2)") == nil)
""",
    "prepared": """
c:query("CREATE TABLE t (id BIGINT, name VARCHAR(20), price DOUBLE, INDEX (id))")
local s = c:prepare("INSERT INTO t VALUES (?, ?, ?)")
local id, name = s:bind_create(sysbench.sql.type.BIGINT), s:bind_create(sysbench.sql.type.VARCHAR, 10)
local price = s:bind_create(sysbench.sql.type.INT)
s:bind_param(id, name, price)
for i = 1, 3 do id:set(i) name:set("row " .. i) price:set(i * 10) s:execute() end
id:set(nil) name:set("a very long name that is cut") s:execute()
name:set_rand_str("xx") s:execute()
s:close()
local rs = c:query("SELECT id, name, price FROM t ORDER BY id, name")
for _ = 1, rs.nrows do local row = rs:fetch_row() print(row[1], row[2], row[3]) end
""",
    "an error of the server": 'c:query("SELECT * FROM nowhere")',
    "an error that is caught": """
local ok, message = pcall(function() c:query("SELECT * FROM nowhere") end)
print(ok, message)
print(c.sql_errno, c:query_row("SELECT 42"))
""",
    "fields of a connection": FIELDS,
    "called through ffi.C": THROUGH_C,
    "prepare fails": 'c:prepare("SELEKT 1")',
    "execute fails": """
c:query("CREATE TABLE t (id INT PRIMARY KEY)")
local s = c:prepare("INSERT INTO t VALUES (1)")
s:execute() s:execute()
""",
    "a closed connection": 'c:disconnect() c:query("SELECT 1")',
    "closed twice": "c:disconnect() c:disconnect()",
    "bulk insert": """
c:query("CREATE TABLE t (id INT, name VARCHAR(20))")
c:bulk_insert_init("INSERT INTO t (id, name) VALUES")
for i = 1, 1000 do c:bulk_insert_next("(" .. i .. ", 'n')") end
c:bulk_insert_done()
print(c:query_row("SELECT COUNT(*), SUM(id) FROM t"))
""",
    "bulk insert fails": """
c:bulk_insert_init("INSERT INTO nowhere VALUES")
c:bulk_insert_next("(1)")
c:bulk_insert_done()
""",
    "two connections": """
local d = sysbench.sql.driver():connect()
print(c:query_row("SELECT CONNECTION_ID()") ~= d:query_row("SELECT CONNECTION_ID()"))
""",
    "unsupported type": 'local s = c:prepare("SELECT ?") s:bind_create(sysbench.sql.type.DATE)',
    "wrong number of parameters": 'local s = c:prepare("SELECT ?") s:execute()',
    "of 0.5": """
db_connect()
db_query("CREATE TABLE t (id INT)")
local s = db_prepare("INSERT INTO t VALUES (?)")
db_bind_param(s, {5})
db_execute(s)
db_close(s)
db_bulk_insert_init("INSERT INTO t VALUES")
for i = 1, 10 do db_bulk_insert_next("(" .. i .. ")") end
db_bulk_insert_done()
print(c:query_row("SELECT COUNT(*), SUM(id) FROM t"))
print(db_driver, DB_ERROR_NONE, DB_ERROR_RESTART_TRANSACTION, DB_ERROR_FAILED)
db_disconnect()
""",
}

# What runs as events on a server, by events and so with equal counts.
WORK: dict[str, tuple[str, str]] = {
    "classes of statements": (
        """
function thread_init()
  con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE IF NOT EXISTS t (id INT)")
end
function event()
  con:query("BEGIN")
  con:query("INSERT INTO t VALUES (1)")
  con:query("UPDATE t SET id = 9 WHERE id = 77")
  con:query("SELECT 1")
  con:query("COMMIT")
end
function thread_done() con:disconnect() end
""",
        "--events=7",
    ),
    "an error is ignored by a hook": (
        """
function thread_init() con = sysbench.sql.driver():connect() tries = 0 end
function event()
  tries = tries + 1
  if tries % 3 == 1 then con:query("SELECT * FROM nowhere") end
  con:query("SELECT 1")
end
function sysbench.hooks.sql_error_ignorable(err)
  print(err.sql_errno, err.sql_state, err.sql_errmsg, err.query)
  return true
end
function sysbench.hooks.before_restart_event(err) print("before", err.sql_errno) end
""",
        "--events=3",
    ),
    "an error ends the run": (
        "function event() con = con or sysbench.sql.driver():connect() "
        'con:query("SELECT * FROM nowhere") end',
        "--events=3",
    ),
    "report_csv": (
        """
function event() con = con or sysbench.sql.driver():connect() con:query("SELECT SLEEP(0.4)") end
sysbench.hooks.report_intermediate = sysbench.report_csv
""",
        "--events=3 --report-interval=1",
    ),
    "report_json": (
        """
function event() con = con or sysbench.sql.driver():connect() con:query("SELECT SLEEP(0.4)") end
sysbench.hooks.report_intermediate = sysbench.report_json
sysbench.hooks.report_cumulative = sysbench.report_json
""",
        "--events=3 --report-interval=1",
    ),
    "report_default": (
        """
function event() con = con or sysbench.sql.driver():connect() con:query("SELECT SLEEP(0.4)") end
sysbench.hooks.report_intermediate = sysbench.report_default
""",
        "--events=3 --report-interval=1",
    ),
}


@pytest.mark.parametrize("name", SQL)
def test_sql(sbtest: Database, name: str) -> None:
    case = Case(
        name, "sysbench script.lua {db}", files={"script.lua": CONNECT + SQL[name]}, sql=("SELECT 1",)
    )
    same(sbtest, case)


SEVERAL = """
local c = sysbench.sql.driver():connect()
local function told(rs) return rs == nil and "no rows" or rs.nrows .. "/" .. rs.nfields end
local function rows(rs)
  local seen = {}
  for _ = 1, rs.nrows do seen[#seen + 1] = table.concat(rs:fetch_row(), ",") end
  return table.concat(seen, " ")
end
function event()
  local rs = c:query("CALL several()")
  print(told(rs), c:more_results(), rows(rs), rs:fetch_row())
  rs:free()
  rs = c:next_result()
  print(told(rs), c:more_results(), rows(rs))
  rs = c:next_result()
  print(told(rs), c:more_results(), c:next_result() == nil)
  local s = c:prepare("CALL several()")
  print(told(s:execute()):match("^%d+"), c:more_results())
  print(told(s:next_result()):match("^%d+"), told(s:next_result()), c:more_results())
  c:query("CALL several()") c:query("SELECT 1") print(c:more_results())
end
"""


@pytest.mark.parametrize("server", ["sbtest", "mysbtest"])
def test_several_results_as_in_1_1(server: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(server)
    database.empty()
    body = "BEGIN SELECT 1 UNION SELECT 2; SELECT 3, 4; END"
    database.query(f"CREATE PROCEDURE {DATABASE}.several() {body}")
    ours = drop_in(database.folder)
    run = "sysbench script.lua {db} --events=1 --compat=%s run"
    case = Case("several", run % "1.1", files={"script.lua": SEVERAL})
    found = said(ours, case, database)
    expected = [
        "2/1\ttrue\t1 2\tnil",
        "1/2\ttrue\t3,4",
        "no rows\tfalse\ttrue",
        "2\ttrue",
        "1\tno rows\tfalse",
        "false",
    ]
    printed = [line for line in found.raw.splitlines() if "\t" in line or line == "false"]
    assert printed == expected, found.raw
    # Each result counts when it is read: two calls in full, the first of the third, and a query.
    for count in ("read:                            6", "write:                           0"):
        assert count in found.raw
    assert re.search(r"other: +2\n", found.raw)
    older = said(ours, Case("older", run % "1.0", files={"script.lua": SEVERAL}), database)
    assert "attempt to call method 'more_results' (a nil value)" in older.raw


def test_missing_functions_raise_errors_with_advice(sbtest: Database) -> None:
    script = """
ffi.cdef[[int sb_get_value_int(const char *name); void log_text(int, const char *, ...); int abs(int);]]
print(ffi.C.abs(-5))
print(pcall(function() local n = ffi.C.sb_get_value_int("threads") print(n) end))
print(pcall(function() ffi.C.log_text(3, "text") end))
print(pcall(function() ffi.C.sb_lua_set_test_args(nil, 0) end))
"""
    found = said(drop_in(sbtest.folder), Case("refused", "sysbench script.lua", files={"script.lua": script}))
    lines = found.raw.splitlines()[-4:]
    assert lines[0] == "5"
    refused = "false\tscript.lua:{}: ffi.C.{} is not available in dbdyno: {}"
    assert lines[1] == refused.format(4, "sb_get_value_int", "use sysbench.opt")
    assert lines[2] == refused.format(5, "log_text", "use print")
    advice = "use sysbench.cmdline.options"
    assert lines[3] == refused.format(6, "sb_lua_set_test_args", advice)


@pytest.mark.parametrize("name", WORK)
def test_events_on_a_server(sbtest: Database, name: str) -> None:
    text, arguments = WORK[name]
    case = Case(
        name,
        f"sysbench script.lua {{db}} {arguments} run",
        files={"script.lua": text},
        sql=("SELECT 1",),
        timed="interval" in arguments,
    )
    same(sbtest, case)
