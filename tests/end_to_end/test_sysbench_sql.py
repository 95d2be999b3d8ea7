"""Scripts of one's own on a server: what `sysbench.sql` answers, counts and complains of.

Each is run by both sides; what it prints is compared. The scripts are ours, written for this test.
"""

from __future__ import annotations

import pytest
from tests.end_to_end.differential import Case, Database, same

CONNECT = "local c = sysbench.sql.driver():connect()\n"
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
