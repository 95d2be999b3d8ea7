"""What goes wrong on a real MariaDB: messages, exit codes and counts are sysbench 1.0.20's, on both ways.

Triggers make the server refuse at known statements, so that the counts are the same on both sides: a lock
that is waited for, or a deadlock between two sessions, comes when it likes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.end_to_end.differential import (
    DATABASE,
    Case,
    Database,
    Side,
    drop_in,
    original,
    said,
    same_either_way,
)

NOWHERE = "--mysql-host=127.0.0.1 --mysql-port=1"
TABLES = "oltp_read_write --tables=1 --table-size=200"


def trigger(moment: str, body: str) -> str:
    """A trigger on the first table."""
    table = f"{DATABASE}.sbtest1"
    return f"CREATE TRIGGER {DATABASE}.refuses BEFORE {moment} ON {table} FOR EACH ROW BEGIN {body}; END"


def refusing(moment: str, code: int, state: str, every: int = 1) -> str:
    """A trigger that refuses each `every`-th statement of a session with an error."""
    signal = f"SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = {code}, MESSAGE_TEXT = 'refused by a trigger'"
    counted = "SET @statements = IFNULL(@statements, 0) + 1"
    return trigger(moment, f"{counted}; IF @statements % {every} = 0 THEN {signal}; END IF")


RUN = f"sysbench {TABLES} {{db}} {{only}}"
REFUSALS = {
    "no server, run": Case("", f"sysbench oltp_read_write {NOWHERE} {{only}} run"),
    "no server, prepare": Case("", f"sysbench oltp_read_write {NOWHERE} {{only}} prepare"),
    "no server, cleanup": Case("", f"sysbench oltp_read_write {NOWHERE} {{only}} cleanup"),
    "no server, prewarm": Case("", f"sysbench oltp_point_select {NOWHERE} {{only}} prewarm"),
    "no server, bulk_insert": Case("", f"sysbench bulk_insert {NOWHERE} {{only}} run"),
    "no server, select_random_points": Case("", f"sysbench select_random_points {NOWHERE} {{only}} run"),
    "no server where nothing is said": Case(
        "", "sysbench oltp_read_write --mysql-port=3307 --mysql-user=nobody {only} run"
    ),
    "no server at the first of two": Case(
        "", "sysbench oltp_read_write --mysql-host=localhost,127.0.0.1 --mysql-user=nobody {only} run"
    ),
    "no socket": Case("", "sysbench oltp_read_write --mysql-socket=/nowhere/mysql.sock {only} run"),
    "no host": Case("", "sysbench oltp_read_write --mysql-host=nowhere.invalid {only} run"),
    "wrong password": Case("", "sysbench oltp_read_write {db} --mysql-password=wrong {only} run"),
    "wrong user": Case("", "sysbench oltp_read_write {db} --mysql-user=nobody {only} prepare"),
    "no schema": Case("", "sysbench oltp_read_write {db} --mysql-db=nowhere {only} run"),
    "no table": Case("", f"sysbench {TABLES} {{db}} {{only}} run", sql=("SELECT 1",)),
    "no table, as text": Case("", f"{RUN} --db-ps-mode=disable run", sql=("SELECT 1",)),
    "no table, insert": Case("", "sysbench oltp_insert {db} {only} run", sql=("SELECT 1",)),
    "no table, select_random_points": Case(
        "", "sysbench select_random_points {db} {only} run", sql=("SELECT 1",)
    ),
    "no table, prewarm": Case("", f"{RUN} prewarm", sql=("SELECT 1",)),
    "nothing to clean up": Case("", f"{RUN} cleanup", sql=("SELECT 1",)),
    "a table is there already": Case("", f"{RUN} prepare", tables=TABLES),
    "fewer tables than asked for": Case("", f"{RUN} --tables=2 --events=5 run", tables=TABLES),
    "an unknown engine": Case("", f"{RUN} --mysql-storage-engine=nowhere prepare", sql=("SELECT 1",)),
    "another port in the list": Case("", f"{RUN} --mysql-port=1,2 run", sql=("SELECT 1",)),
}

COUNTED = {
    "duplicate key": Case(
        "", f"{RUN} --events=20 run", tables=TABLES, sql=(refusing("INSERT", 1062, "23000", 3),)
    ),
    "duplicate key, as text": Case(
        "",
        f"{RUN} --events=20 --db-ps-mode=disable run",
        tables=TABLES,
        sql=(refusing("INSERT", 1062, "23000", 3),),
    ),
    "duplicate key, ignored": Case(
        "",
        f"{RUN} --events=20 --mysql-ignore-errors=1062 run",
        tables=TABLES,
        sql=(refusing("INSERT", 1062, "23000", 3),),
        # The row whose insert was refused is missing from then on.
        timed=True,
    ),
    "deadlocks are ignored": Case(
        "", f"{RUN} --events=20 run", tables=TABLES, sql=(refusing("UPDATE", 1213, "40001", 5),)
    ),
    "lock waits are ignored": Case(
        "", f"{RUN} --events=20 run", tables=TABLES, sql=(refusing("DELETE", 1205, "HY000", 4),)
    ),
    "deadlocks are not ignored": Case(
        "",
        f"{RUN} --events=20 --mysql-ignore-errors=1205 run",
        tables=TABLES,
        sql=(refusing("UPDATE", 1213, "40001", 5),),
    ),
    "all errors are ignored": Case(
        "",
        f"{RUN} --events=20 --mysql-ignore-errors=all run",
        tables=TABLES,
        sql=(refusing("UPDATE", 1644, "45000", 5),),
    ),
    "an error in oltp_insert": Case(
        "",
        "sysbench oltp_insert {db} {only} --events=20 run",
        tables=TABLES,
        sql=(refusing("INSERT", 1062, "23000", 3),),
    ),
    "an ignored error in oltp_insert": Case(
        "",
        "sysbench oltp_insert {db} {only} --mysql-ignore-errors=1062 --events=20 run",
        tables=TABLES,
        sql=(refusing("INSERT", 1062, "23000", 3),),
    ),
    "a lost connection": Case(
        "",
        f"{RUN} --events=6 run",
        tables=TABLES,
        sql=(trigger("DELETE", "SET @n = IFNULL(@n, 0) + 1; IF @n = 2 THEN KILL CONNECTION_ID(); END IF"),),
    ),
}
FORCED = {
    "seconds": "--time=1 --forced-shutdown=1",
    "a share of the time": "--time=1 --forced-shutdown=90% --threads=2",
    "with intervals": "--time=1 --forced-shutdown=1 --report-interval=1",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_it_cannot_begin(sbtest: Database, name: str, way: tuple[str, ...]) -> None:
    same_either_way(sbtest, replace(REFUSALS[name], name=name), way)


@pytest.mark.parametrize("name", COUNTED)
def test_errors_in_a_run(sbtest: Database, name: str, way: tuple[str, ...]) -> None:
    same_either_way(sbtest, replace(COUNTED[name], name=name), way)


def test_errors_to_ignore_have_a_name_for_all_databases(sbtest: Database, way: tuple[str, ...]) -> None:
    """`--db-ignore-errors` stands in place of the driver's own list."""
    refused = (refusing("UPDATE", 1644, "45000", 5),)

    def counted(side: Side, options: str) -> tuple[int, str | None]:
        case = Case(options, f"{RUN} --events=20 {options} run", tables=TABLES, sql=refused)
        done = said(side, case, sbtest)
        ignored = re.search(r"ignored errors: +(\d+)", done.raw)
        return done.exit_code, ignored and ignored[1]

    ours = drop_in(sbtest.folder, *way)
    expected = counted(original(sbtest.folder), "--mysql-ignore-errors=1644")
    assert expected[0] == 0
    assert expected[1] != "0"
    for options in ("--db-ignore-errors=1644 --mysql-ignore-errors=7", "--db-ignore-errors=all"):
        assert counted(ours, options) == expected
    assert counted(ours, "--db-ignore-errors=7 --mysql-ignore-errors=1644") == (1, None)
    refusal = said(ours, Case("SQLSTATE", f"{RUN} --db-ignore-errors=40P01 --events=1 run"), sbtest)
    assert refusal.exit_code == 1
    assert "MySQL's errors are numbers such as 1213, or all" in refusal.raw


def test_a_script_tells_of_each_error_that_is_ignored(sbtest: Database) -> None:
    """Natively they are counted by their number, and not told one by one."""
    refused = (refusing("UPDATE", 1213, "40001", 3),)
    same_either_way(
        sbtest, Case("debug", f"{RUN} --events=4 --debug run", tables=TABLES, sql=refused), ("--lua",)
    )


def test_what_fails_at_the_end_of_a_thread(sbtest: Database) -> None:
    """The report stands, and ours says by its exit code that something failed."""
    run = "sysbench bulk_insert --events=3 {db} {only} run"
    same_either_way(sbtest, Case("bulk_insert", run, sql=("SELECT 1",), failing_with=1), ("--lua",))


@pytest.mark.parametrize("name", FORCED)
def test_forced_shutdown(sbtest: Database, name: str, way: tuple[str, ...]) -> None:
    case = Case(
        name,
        f"sysbench oltp_update_index --tables=1 --table-size=200 {{db}} {{only}} {FORCED[name]} run",
        tables=TABLES,
        # The third event hangs for longer than anyone waits.
        sql=(trigger("UPDATE", "SET @n = IFNULL(@n, 0) + 1; IF @n = 3 THEN DO SLEEP(9); END IF"),),
        timed=True,
    )
    same_either_way(sbtest, case, way)


@pytest.fixture
def limited(sbtest: Database, request: pytest.FixtureRequest) -> Iterator[str]:
    """A variable of the server at a low value, for one test."""
    name, value = request.param
    ((before,),) = sbtest.server.query(f"SELECT @@GLOBAL.{name}")
    sbtest.server.query(f"SET GLOBAL {name} = {value}")
    yield name
    sbtest.server.query(f"SET GLOBAL {name} = {before}")


@pytest.mark.parametrize(
    "limited", [("max_prepared_stmt_count", 5), ("max_connections", 10)], indirect=True, ids=str
)
def test_the_server_has_no_room(sbtest: Database, limited: str, way: tuple[str, ...]) -> None:
    threads = 1 if limited == "max_prepared_stmt_count" else 30
    # Which of the threads is told first is a matter of luck.
    case = Case(limited, f"{RUN} --threads={threads} --events=9 run", tables=TABLES, unordered=threads > 1)
    same_either_way(sbtest, case, way)
