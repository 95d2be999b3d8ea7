"""Scripts of one's own on PostgreSQL: what `sysbench.sql` answers, counts, sends and complains of.

Each is run by both sides; what it prints is compared. The scripts are ours, written for this test.
"""

from __future__ import annotations

import pytest
from tests.end_to_end.differential import Case, same
from tests.end_to_end.differential_servers import PostgreSQLDatabase

CONNECT = "local d = sysbench.sql.driver()\nlocal c = d:connect()\n"
SQL: dict[str, str] = {
    "the driver": "print(d:name(), d, c)",
    "query and fetch": """
c:query("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20), price FLOAT8, at TIMESTAMP, good BOOLEAN)")
c:query("INSERT INTO t VALUES (1, 'one', 1.5, '2020-01-02 03:04:05', true), (2, NULL, -2, NULL, false)")
local rs = c:query("SELECT * FROM t ORDER BY id")
print(rs.nrows, rs.nfields, rs)
for _ = 1, rs.nrows do
  local row = rs:fetch_row()
  print(row[1], row[2], row[3], row[4], row[5])
end
print(rs:fetch_row())
rs:free()
""",
    "query_row": """
print(c:query_row("SELECT 1, 'two', NULL, 4"))
print(c:query_row("SELECT 1 WHERE 1 = 0"))
print(select("#", c:query_row("SELECT 'a', 'b', 'c'")))
""",
    "statements without rows": """
local rs = c:query("CREATE TABLE t (id INT)")
print(rs == nil, c:query("INSERT INTO t VALUES (1), (2)") == nil)
""",
    "rows from a change": """
c:query("CREATE TABLE t (id SERIAL, k INT)")
local rs = c:query("INSERT INTO t (k) VALUES (7), (8) RETURNING id, k")
print(rs.nrows, rs.nfields)
local row = rs:fetch_row() print(row[1], row[2])
""",
    "several statements at once": """
print(c:query_row("CREATE TABLE t (id INT); INSERT INTO t VALUES (5); SELECT id FROM t"))
""",
    "prepared": """
c:query("CREATE TABLE t (id BIGINT, name VARCHAR(20), price INT)")
local s = c:prepare("INSERT INTO t VALUES (?, ?, ?)")
local id, name = s:bind_create(sysbench.sql.type.BIGINT), s:bind_create(sysbench.sql.type.VARCHAR, 10)
local price = s:bind_create(sysbench.sql.type.INT)
s:bind_param(id, name, price)
for i = 1, 3 do id:set(i) name:set("row " .. i) price:set(i * 10) s:execute() end
id:set(4) name:set("a very long name that is cut") s:execute()
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
    "a transaction that has failed": """
c:query("BEGIN")
print(pcall(function() c:query("SELECT 1 / 0") end))
print(pcall(function() c:query("SELECT 42") end))
c:query("ROLLBACK")
print(c:query_row("SELECT 43"))
""",
    "execute fails": """
c:query("CREATE TABLE t (id INT PRIMARY KEY)")
local s = c:prepare("INSERT INTO t VALUES (?)")
local id = s:bind_create(sysbench.sql.type.INT)
s:bind_param(id)
id:set(1) s:execute()
print(pcall(function() s:execute() end))
""",
    "a check fails": """
c:query("CREATE TABLE t (id INT CHECK (id > 0))")
local s = c:prepare("INSERT INTO t VALUES (?)")
local id = s:bind_create(sysbench.sql.type.INT)
s:bind_param(id)
id:set(-1) s:execute()
""",
    "closed twice": "c:disconnect() c:disconnect()",
    "bulk insert": """
c:query("CREATE TABLE t (id INT, v INT)")
c:bulk_insert_init("INSERT INTO t VALUES ")
for i = 1, 100 do c:bulk_insert_next("(" .. i .. "," .. i * 2 .. ")") end
c:bulk_insert_done()
print(c:query_row("SELECT COUNT(*), SUM(v) FROM t"))
""",
    "two connections": """
local other = d:connect()
print(c:query_row("SELECT 1"), other:query_row("SELECT 2"))
""",
    "unsupported type": 'local s = c:prepare("SELECT ?") s:bind_create(sysbench.sql.type.DATE)',
}

# Name -> (script, options).
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
  con:query("UPDATE t SET id = 2")
  con:query("SELECT * FROM t")
  con:query("DELETE FROM t")
  con:query("SET work_mem = '4MB'")
  con:query("COMMIT")
end
""",
        "--events=7",
    ),
    "an event that is refused now and then": (
        """
function thread_init()
  con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE t (id INT PRIMARY KEY)")
end
local n = 0
function event()
  n = n + 1
  con:query("BEGIN")
  con:query("INSERT INTO t VALUES (" .. n .. ")")
  if n % 3 == 0 then con:query("INSERT INTO t VALUES (" .. n .. ")") end
  con:query("COMMIT")
end
""",
        "--events=10",
    ),
    "a hook looks at the error": (
        """
function sysbench.hooks.before_restart_event(e) print("again", e.sql_errno, e.sql_state, e.sql_errmsg) end
function thread_init()
  con = sysbench.sql.driver():connect()
  con:query("CREATE TABLE t (id INT PRIMARY KEY)")
  con:query("INSERT INTO t VALUES (1)")
end
local n = 0
function event()
  n = n + 1
  con:query("INSERT INTO t VALUES (" .. (n % 4 == 1 and 1 or n) .. ")")
end
""",
        "--events=6",
    ),
    "an error is ignored by a hook": (
        """
function sysbench.hooks.sql_error_ignorable(e)
  print(e.sql_state, e.sql_errmsg)
  return e.sql_state == "22012"
end
function thread_init() con = sysbench.sql.driver():connect() end
local n = 0
function event()
  n = n + 1
  con:query("SELECT 1 / " .. n % 2)
end
""",
        "--events=5",
    ),
    "an error ends the run": (
        'function event() sysbench.sql.driver():connect():query("SELECT 1 / 0") end',
        "--events=5",
    ),
    "report_csv": (
        """
function event() con = con or sysbench.sql.driver():connect() con:query("SELECT pg_sleep(0.4)") end
sysbench.hooks.report_intermediate = sysbench.report_csv
""",
        "--events=3 --report-interval=1",
    ),
}


@pytest.mark.parametrize("name", SQL)
def test_sql(pgsbtest: PostgreSQLDatabase, name: str) -> None:
    files = {"script.lua": CONNECT + SQL[name]}
    same(pgsbtest, Case(name, "sysbench script.lua {db}", files=files, sql=("SELECT 1",)))


@pytest.mark.parametrize("name", WORK)
def test_events_on_a_server(pgsbtest: PostgreSQLDatabase, name: str) -> None:
    text, arguments = WORK[name]
    run = f"sysbench script.lua {{db}} {arguments} run"
    files = {"script.lua": text}
    same(pgsbtest, Case(name, run, files=files, sql=("SELECT 1",), timed="interval" in arguments))
