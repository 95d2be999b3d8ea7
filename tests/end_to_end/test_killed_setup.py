"""A run that is killed while a statement of its setup runs: it ends, and `dbdyno data` finds every table."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from tests.end_to_end.mysql_server import ROOT
from tests.end_to_end.test_data_command import data, execute, listed
from tests.end_to_end.test_run_command import Running

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

SPECS = {
    "mariadb": ServerSpec(product="mariadb", variables={"innodb_buffer_pool_size": "64M"}),
    "postgresql": ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"}),
    "mysql": ServerSpec(product="mysql", basedir=ROOT, variables={"innodb_buffer_pool_size": "64M"}),
}
# How long the statement of a killed run may go on.
ENDS_WITHIN_S = 3.0
# Ten billion combinations, of which none is stored: more than a minute.
SLOW = (
    "INSERT INTO slow SELECT a.n FROM d a, d b, d c, d e, d f "
    "WHERE SIN(a.n + b.n) + COS(c.n + e.n) + f.n < -9"
)
TENS = ", ".join(f"({number})" for number in range(100))
SETUP = [
    "CREATE TABLE d (n INT PRIMARY KEY)",
    f"INSERT INTO d VALUES {TENS}",
    "CREATE TABLE IF NOT EXISTS {other}.elsewhere (n INT) -- with the name of a database or schema",
    "CREATE TABLE slow AS SELECT n AS total FROM d WHERE n < 0",
]
# MySQL copies the comment of a table, and with it the mark.
COPY = {"mysql": "CREATE TABLE copied LIKE d", "postgresql": "CREATE TABLE copied (LIKE d INCLUDING ALL)"}
RUNNING = {
    "mysql": "SELECT COUNT(*) FROM information_schema.processlist WHERE info LIKE 'INSERT INTO slow%'",
    "postgresql": (
        "SELECT COUNT(*) FROM pg_stat_activity WHERE query LIKE 'INSERT INTO slow%' AND state = 'active'"
    ),
}
LUA = """
function prepare()
   local con = sysbench.sql.driver():connect()
   for _, sql in ipairs({{{statements}}}) do con:query(sql) end
end
function thread_init() end
function event() end
function cleanup() end
"""
SHORT = ("--connections", "1", "--time", "500ms", "--warmup", "0s", "--workers", "1")


@pytest.fixture
def running(request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path) -> Iterator[Running]:
    """The commands on a server, with another schema where the load's account may use one."""
    with closing(LocalServer(Variant(name="killed", server=SPECS[request.param]), workspace, None)) as server:
        server.start()
        ready = Running(server, tmp_path)
        if ready.address.protocol == "postgresql":
            execute(ready, f"CREATE SCHEMA other AUTHORIZATION {ready.address.user}")
        yield ready


def until(condition: Callable[[], bool], seconds: float) -> float:
    """Wait until a condition holds, and return the seconds that this took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, f"not within {seconds} s"
        time.sleep(0.02)
    return time.monotonic() - began


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for task in Path(f"/proc/{process}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def is_alive(process: int) -> bool:
    """Whether a process still runs; what has ended and waits for its parent does not."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def workload(running: Running, kind: str) -> Path:
    """A file whose setup has a statement that takes more than a minute."""
    statements = [*SETUP, COPY[running.address.protocol], SLOW]
    other = running.address.database
    if running.address.protocol == "postgresql":
        # dbdyno refuses the setup of an SQL file that creates tables in another schema.
        other = "public" if kind == "sql" else "other"
    statements = [sql.replace("{other}", other) for sql in statements]
    file = running.results / f"slow.{kind}"
    if kind == "sql":
        setup = ";\n".join(sql.partition(" --")[0] for sql in statements)
        file.write_text(
            f"-- @setup\n{setup};\n-- @transaction one\n-- @statement rows=1\nSELECT n FROM d WHERE n = 1;\n"
        )
    else:
        quoted = ", ".join(f"[[{sql}]]" for sql in statements)
        file.write_text(LUA.format(statements=quoted))
    return file


def kill_in_setup(running: Running, kind: str) -> None:
    """Start a run, kill it in the slow statement of its setup, and wait for the end of that statement."""

    def statements() -> int:
        ((count,),) = running.server.query(RUNNING[running.address.protocol])
        return int(count)

    command = running.command(str(workload(running, kind)), *SHORT)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=running.environment())
    try:
        until(lambda: statements() > 0 or process.poll() is not None, 60.0)
        assert process.stderr is not None
        assert process.poll() is None, process.stderr.read()
        engines = children(process.pid)
        assert len(engines) == 1
    finally:
        process.kill()
        process.communicate()
    until(lambda: statements() == 0 and not any(map(is_alive, engines)), ENDS_WITHIN_S)


@pytest.mark.parametrize("running", SPECS, indirect=True)
def test_nothing_of_a_killed_setup_goes_on_and_every_table_is_found(running: Running) -> None:
    is_mysql = running.address.protocol == "mysql"
    for kind in ("sql", "lua"):
        kill_in_setup(running, kind)
        marks = listed(running)
        elsewhere = "elsewhere" if is_mysql or kind == "sql" else "other.elsewhere"
        assert set(marks) == {"d", "slow", "copied", elsewhere}
        assert all(mark.startswith("dbdyno v1 setup") for mark in marks.values()), marks
        dropped = data(running, "drop", yes=True)
        assert dropped.returncode == 0, dropped.stderr
        # A script's CREATE TABLE … LIKE copies the mark of the other table.
        kept = {"copied"} if is_mysql and kind == "lua" else set()
        assert set(running.tables()) == kept
        if is_mysql:
            execute(running, "DROP TABLE IF EXISTS {0}copied")
