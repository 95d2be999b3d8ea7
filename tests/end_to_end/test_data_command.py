"""Tables that dbdyno leaves on a server: what a later run makes of them, and `dbdyno data`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from tests.end_to_end.comparing import refused
from tests.end_to_end.test_run_command import Running, url

from dbdyno.commands.data import Action
from dbdyno.commands.data import data as data_command
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.problem import Problem
from dbdyno.run.marked_tables import table_hash
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace
from dbdyno.terminal.messages import print_problem

SHORT = ("--connections", "1", "--time", "500ms", "--warmup", "0s", "--workers", "1")
SPECS = {
    "mariadb": ServerSpec(product="mariadb", variables={"innodb_buffer_pool_size": "64M"}),
    "postgresql": ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"}),
}
# Tables that refer to each other, and an UPDATE that writes the value that is there.
SQL = """
-- @parameter id = uniform(1, 10)
-- @setup
CREATE TABLE parent (id INT PRIMARY KEY, n INT);
CREATE TABLE child (id INT PRIMARY KEY, parent INT, FOREIGN KEY (parent) REFERENCES parent (id));
INSERT INTO parent VALUES (1,7),(2,7),(3,7),(4,7),(5,7),(6,7),(7,7),(8,7),(9,7),(10,7);
-- @transaction same
-- @statement rows=1
UPDATE parent SET n = 7 WHERE id = :id;
"""


@pytest.fixture
def running(request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path) -> Iterator[Running]:
    """The commands on a server with tables that are not dbdyno's; a test leaves only these."""
    with closing(LocalServer(Variant(name="left", server=SPECS[request.param]), workspace, None)) as server:
        server.start()
        ready = Running(server, tmp_path)
        execute(ready, "CREATE TABLE {}mine (id INT)")
        execute(ready, "CREATE TABLE {}praise (id INT)")
        execute(
            ready,
            "COMMENT ON TABLE praise IS 'dbdyno v1 is great'"
            if request.param == "postgresql"
            else "ALTER TABLE {}praise COMMENT 'dbdyno v1 is great'",
        )
        execute(ready, "CREATE VIEW {}seen AS SELECT 1 AS one")
        yield ready
        assert ready.tables() == ["mine", "praise", "seen"]


def execute(running: Running, sql: str) -> None:
    running.server.query(sql.format("" if running.address.protocol == "postgresql" else "dbdyno."))


def data(running: Running, action: Action, *, yes: bool = False) -> subprocess.CompletedProcess[str]:
    """The command within this process, which saves its start."""
    streams = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, {"DBDYNO_PASSWORD": running.address.password}),
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
    ):
        try:
            data_command(action, url(running.address), yes=yes)
            code = 0
        except Problem as problem:
            print_problem(problem)
            code = problem.exit_code
    return subprocess.CompletedProcess((), code, *(stream.getvalue() for stream in streams))


def listed(running: Running) -> dict[str, str]:
    """The marks of the listed tables, by name."""
    answer = data(running, "list")
    assert answer.returncode == 0, answer.stderr
    lines = [line.split(maxsplit=3) for line in answer.stdout.splitlines()]
    return {name: mark for name, _, _, mark in lines}


@pytest.mark.parametrize("running", ["mariadb"], indirect=True)
def test_kept_tables_are_used_with_other_values_and_only_they_are_dropped(running: Running) -> None:
    assert listed(running) == {}
    options = ("oltp_update_non_index", "--table-size", "5000", "--keep-data", *SHORT)
    seeds = []
    for _ in range(2):
        answer = running.run(*options)
        assert (answer.returncode, "D04" in answer.stderr) == (0, False), answer.stderr
        seeds.append(json.loads((running.newest().path / "trials/0001/plan.json").read_text())["seed"])
    # With the same seed the second run would write the values that are there, which is less work.
    assert seeds[0] != seeds[1]
    assert "to drop those that dbdyno has created (sbtest1): dbdyno data drop --target" in answer.stderr
    ((name, mark),) = listed(running).items()
    assert (name, mark.startswith("dbdyno v1 seed=1 rows=5000 ")) == ("sbtest1", True)
    other = running.run("oltp_update_non_index", "--table-size", "10", *SHORT)
    refused(other, 2, "do not match the options", "created (sbtest1): dbdyno data drop --target")
    # Nothing is dropped without a confirmation.
    asked = data(running, "drop")
    assert (asked.returncode, "sbtest1" in asked.stdout) == (2, True)
    assert "dropping this table needs your confirmation" in asked.stderr
    assert "sbtest1" in running.tables()
    answer = data(running, "drop", yes=True)
    assert (answer.returncode, answer.stderr) == (0, "dropped sbtest1\n")
    assert "sbtest1" in answer.stdout


@pytest.mark.parametrize("running", SPECS, indirect=True)
def test_tables_of_a_users_setup_are_marked(running: Running) -> None:
    file = running.results / "own.sql"
    file.write_text(SQL)
    answer = running.run(str(file), "--keep-data", *SHORT)
    # An UPDATE to the value that is there matches its row.
    assert (answer.returncode, "D04" in answer.stderr) == (0, False), answer.stderr
    assert listed(running) == {"child": "dbdyno v1 setup", "parent": "dbdyno v1 setup"}
    execute(running, "DROP TABLE {}child")
    refused(running.run(str(file), *SHORT), 2, "has the tables parent", "dbdyno data drop --target")
    # A table that is not dbdyno's refers to one of dbdyno's.
    execute(running, "CREATE TABLE {0}child (id INT, FOREIGN KEY (id) REFERENCES {0}parent (id))")
    answer = data(running, "drop", yes=True)
    assert (answer.returncode, "1 of 1 tables could not be dropped: parent: " in answer.stderr) == (4, True)
    # With a mark it is dropped before the other.
    on = (
        "COMMENT ON TABLE child IS"
        if running.address.protocol == "postgresql"
        else "ALTER TABLE {}child COMMENT"
    )
    child, after_child = (table_hash(running.address.database, name) for name in ("child", "after_child"))
    execute(running, f"{on} 'of mine dbdyno v1 setup table={child}'")
    execute(running, "CREATE TABLE {0}after_child (id INT)")
    execute(running, f"{on.replace('child', 'after_child')} 'dbdyno loading table={after_child}'")
    answer = data(running, "drop", yes=True)
    assert sorted(answer.stderr.splitlines()) == ["dropped after_child", "dropped child", "dropped parent"]


@pytest.mark.parametrize("running", SPECS, indirect=True)
def test_a_copy_of_a_marked_table_is_not_dropped(running: Running) -> None:
    answer = running.run("oltp_point_select", "--table-size", "10", "--keep-data", *SHORT)
    assert answer.returncode == 0, answer.stderr
    is_postgresql = running.address.protocol == "postgresql"
    # MySQL copies the comment; both keep it when a table is renamed.
    if not is_postgresql:
        execute(running, "CREATE TABLE {0}copied LIKE {0}sbtest1")
        execute(running, "ALTER TABLE {0}praise COMMENT 'dbdyno v1 bulk_insert engine=innodb'")
    execute(
        running, "ALTER TABLE {0}sbtest1 RENAME TO " + ("mine_now" if is_postgresql else "dbdyno.mine_now")
    )
    assert set(listed(running)) == {"mine_now"} | (set() if is_postgresql else {"copied", "praise"})
    answer = data(running, "drop", yes=True)
    assert answer.returncode == 0, answer.stderr
    assert "kept mine_now: the mark belongs to another table" in answer.stderr
    if not is_postgresql:
        assert "kept copied: the mark belongs to another table" in answer.stderr
        assert "kept praise: the mark of an earlier version" in answer.stderr
        execute(running, "DROP TABLE {0}copied")
        execute(running, "ALTER TABLE {0}praise COMMENT ''")
    execute(running, "DROP TABLE {0}mine_now")


@pytest.mark.parametrize("running", ["mariadb"], indirect=True)
def test_tables_of_a_run_that_was_killed_are_dropped(running: Running) -> None:
    command = running.command("oltp_point_select", "--tables", "3", "--table-size", "300000", *SHORT)
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=running.environment())
    assert process.stderr is not None
    next(line for line in process.stderr if " rows" in line and " of " in line)
    process.kill()
    process.wait()
    process.stderr.close()
    # Until the load generator has noticed that nobody reads its records, it creates tables.
    until = time.monotonic() + 20
    while listed(running) and time.monotonic() < until:
        answer = data(running, "drop", yes=True)
        assert answer.returncode == 0, answer.stderr
