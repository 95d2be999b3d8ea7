"""The native workloads send what sysbench's scripts send, by the server's general log.

sysbench and the drop-in run with one connection, the same options and a fixed number of events. Ids and
strings are drawn by different generators, so statements are compared without them: which, in which order, and
how they travel.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from benchmarks.peer import sysbench

from dbdyno.binary import COMPAT, find_program
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer

EVENTS = 25
SENT = ("Prepare", "Execute", "Query")
# Values as the log shows them: strings, and numbers that are no part of a name.
VALUE = re.compile(r"'[^']*'|-?\b\d+\b")


@pytest.fixture(scope="module", autouse=True)
def logging(mariadb: LocalServer) -> Iterator[None]:
    """The general log as a table, for this module."""
    for statement in ("SET GLOBAL log_output = 'TABLE'", "SET GLOBAL general_log = 1"):
        mariadb.query(statement)
    yield
    mariadb.query("SET GLOBAL general_log = 0")


@pytest.fixture(scope="module")
def drop_in(tmp_path_factory: pytest.TempPathFactory) -> str:
    """dbdyno-compat under sysbench's name."""
    link = tmp_path_factory.mktemp("drop-in") / "sysbench"
    link.symlink_to(find_program(COMPAT))
    return str(link)


@pytest.fixture(autouse=True)
def no_tables(mariadb: LocalServer) -> None:
    """Every test begins without tables, and the server takes LOAD DATA LOCAL."""
    drop(mariadb)
    mariadb.query("SET GLOBAL local_infile = 1")


def drop(server: LocalServer) -> None:
    names = ", ".join(f"dbdyno.sbtest{number}" for number in range(1, 9))
    server.query(f"DROP TABLE IF EXISTS {names}")


def forget(server: LocalServer) -> None:
    server.query("TRUNCATE mysql.general_log")


def log(server: LocalServer) -> list[tuple[int, str, str]]:
    """Connection, command and text of everything the load's account sent, in order."""
    rows = server.query("SELECT user_host, thread_id, command_type, argument FROM mysql.general_log")
    account = f"{server.address().user}["
    return [(int(n), kind, text(sql)) for who, n, kind, sql in rows if who.startswith(account)]


def text(sql: bytes | str) -> str:
    return sql.decode() if isinstance(sql, bytes) else sql


def kinds(server: LocalServer) -> list[tuple[str, str]]:
    """How each statement travelled, and the statement without its values and the number of its table."""
    found = []
    for _, kind, sql in log(server):
        if kind in SENT:
            words = " ".join(VALUE.sub("?", re.sub(r"sbtest\d+", "sbtest", sql)).split())
            found.append((kind, words))
    return found


def engine(server: LocalServer, workload: dict[str, Any], **plan: Any) -> EngineResult:
    """A run of the engine's own over tables that are there."""
    asked = {
        "schema": 1,
        "target": server.address().target(),
        "workload": workload,
        "load": {"connections": 1},
        "phases": {"measure_us": 0, "events": EVENTS},
        "report": {"interval_us": 0, "tick_us": 0},
        "retry": {"rollback": False},
        "reconnect": {"on_lost": "stop"},
        "seed": 1,
        **plan,
    }
    return Engine().run("run", asked, server.address().environment(), lambda _: None)


def ran(
    server: LocalServer,
    script: str,
    command: str,
    *options: str,
    events: int = EVENTS,
    program: str = "sysbench",
) -> subprocess.CompletedProcess[str]:
    """One command of sysbench, or of the drop-in as `program` in its place."""
    limits = (f"--events={events}", "--time=0", "--rand-seed=1", "--rand-type=uniform")
    with sysbench(server.address(), *limits, *options, script, command, program=program) as argv:
        return subprocess.run(argv, capture_output=True, text=True, check=False)


def counters(said: str) -> dict[str, int]:
    """The numbers of sysbench's SQL statistics."""
    names = ("read", "write", "other", "total", "transactions", "ignored errors", "reconnects")
    return {name: int(re.search(rf"^ +{name}: +(\d+)", said, re.M)[1]) for name in names}  # type: ignore[index]


SMALL = {"tables": 2, "table_size": 1000}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("oltp_read_only", SMALL),
    ("oltp_read_only", {**SMALL, "range_selects": False, "skip_trx": True}),
    ("oltp_read_write", SMALL),
    (
        "oltp_read_write",
        {**SMALL, "skip_trx": True, "point_selects": 2, "delete_inserts": 3, "sum_ranges": 2},
    ),
    ("oltp_write_only", {**SMALL, "index_updates": 2, "non_index_updates": 3}),
    ("oltp_point_select", {**SMALL, "point_selects": 7}),
    ("oltp_update_index", {**SMALL, "index_updates": 2}),
    ("oltp_update_non_index", SMALL),
    ("oltp_delete", {"tables": 1, "table_size": 10_000}),
    ("oltp_insert", SMALL),
    ("oltp_insert", {**SMALL, "auto_inc": False}),
    ("select_random_points", {"table_size": 1000, "random_points": 4}),
    ("select_random_ranges", {"table_size": 1000, "number_of_ranges": 3, "delta": 7}),
]


def arguments(options: dict[str, Any]) -> list[str]:
    """The options as sysbench takes them."""
    written = {True: "on", False: "off"}
    return [
        f"--{name}={written[value] if isinstance(value, bool) else value}" for name, value in options.items()
    ]


TEXT = ["--db-ps-mode=disable"]


@pytest.mark.parametrize(
    ("mode", "way"),
    [([], []), (TEXT, []), ([], ["--lua"]), (TEXT, ["--lua"])],
    ids=["prepared", "text", "prepared-lua", "text-lua"],
)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_the_same_statements_in_the_same_order(
    mariadb: LocalServer, drop_in: str, case: tuple[str, dict[str, Any]], mode: list[str], way: list[str]
) -> None:
    """Natively, and by the package's own scripts in Lua."""
    name, extra = case[0], [*arguments(case[1]), *mode]
    seen = []
    for program, more in (("sysbench", extra), (drop_in, [*extra, *way])):
        drop(mariadb)
        assert ran(mariadb, name, "prepare", *more, program=program).returncode == 0
        forget(mariadb)
        said = ran(mariadb, name, "run", *more, program=program)
        assert said.returncode == 0, said.stdout
        seen.append((kinds(mariadb), counters(said.stdout)))
    assert seen[1] == seen[0]
    assert len(seen[0][0]) >= EVENTS


def test_bulk_insert_sends_the_same_bytes(mariadb: LocalServer, drop_in: str) -> None:
    seen: list[Any] = []
    for program in ("sysbench", drop_in):
        forget(mariadb)
        for command in ("prepare", "run", "cleanup"):
            said = ran(mariadb, "bulk_insert", command, events=150_000, program=program)
            assert said.returncode == 0, said.stdout
            if command == "run":
                seen.append(counters(said.stdout))
        seen.append([sql for _, kind, sql in log(mariadb) if kind in SENT])
    assert seen[2:] == seen[:2]
    assert seen[0]["write"] > 3


@pytest.mark.parametrize("name", ["select_random_points", "select_random_ranges"])
def test_random_reads_share_the_rows_as_sysbench_does(mariadb: LocalServer, drop_in: str, name: str) -> None:
    """Thread t of 3 asks for k from t L to (t + 1) L of L = rows / 3, which is no whole number."""
    options = {"table_size": 1000, **({"delta": 0} if name == "select_random_ranges" else {})}
    assert ran(mariadb, name, "prepare", *arguments(options)).returncode == 0
    for program in ("sysbench", drop_in):
        forget(mariadb)
        said = ran(mariadb, name, "run", "--threads=3", *arguments(options), events=600, program=program)
        assert said.returncode == 0
        asked: dict[int, set[int]] = {}
        for connection, kind, sql in log(mariadb):
            if kind == "Execute":
                values = re.findall(r"\b\d+\b", sql.split("WHERE")[1])
                asked.setdefault(connection, set()).update(map(int, values))
        ranges = sorted((min(keys), max(keys)) for keys in asked.values())
        assert len(ranges) == 3
        for (low, high), (first, last) in zip(ranges, [(0, 333), (333, 666), (666, 1000)], strict=True):
            # A connection that was given few events may miss the ends of its part.
            assert first <= low <= high <= last, (program, ranges)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("oltp_read_write", SMALL),
        ("oltp_read_write", {**SMALL, "auto_inc": False}),
        ("oltp_read_write", {**SMALL, "secondary": True, "create_secondary": False}),
        ("oltp_insert", {**SMALL, "auto_inc": False}),
        ("oltp_read_only", {**SMALL, "mysql_storage_engine": "myisam"}),
    ],
)
@pytest.mark.parametrize("by_load_data", [0, 1])
def test_tables_are_the_same_whoever_makes_them(
    mariadb: LocalServer, drop_in: str, name: str, options: dict[str, Any], by_load_data: int
) -> None:
    mariadb.query(f"SET GLOBAL local_infile = {by_load_data}")
    seen = []
    for program in ("sysbench", drop_in):
        drop(mariadb)
        said = ran(mariadb, name, "prepare", "--threads=2", *arguments(options), program=program)
        assert said.returncode == 0
        tables = [f"dbdyno.sbtest{number + 1}" for number in range(options["tables"])]
        shown = [mariadb.query(f"SHOW CREATE TABLE {table}")[0][1] for table in tables]
        rows = [
            mariadb.query(f"SELECT COUNT(*), MIN(id), MAX(id), MIN(LENGTH(c)), MAX(LENGTH(pad)) FROM {table}")
            for table in tables
        ]
        seen.append((shown, rows))
    assert seen[0] == seen[1]


def test_either_ones_tables_serve_the_others_run(mariadb: LocalServer, drop_in: str) -> None:
    for maker, player in (("sysbench", drop_in), (drop_in, "sysbench")):
        for command, program in (("prepare", maker), ("run", player)):
            said = ran(mariadb, "oltp_read_write", command, *arguments(SMALL), program=program)
            assert said.returncode == 0, said.stdout
        # Another seed: the drop-in's own strings once more would change no row.
        result = engine(mariadb, {"name": "oltp_read_write", "options": SMALL}, seed=2)
        assert result.end is not None
        assert result.end["phases"]["measure"]["row_count_mismatches"] == 0
        said = ran(mariadb, "oltp_read_write", "cleanup", *arguments(SMALL), program=player)
        assert said.returncode == 0, said.stdout
        assert mariadb.query("SHOW TABLES FROM dbdyno LIKE 'sbtest%'") == []


@pytest.mark.parametrize("command", ["prepare", "prewarm", "cleanup"])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_command_sends_the_same(mariadb: LocalServer, drop_in: str, command: str, threads: int) -> None:
    """Statement by statement, with numbers; rows alone are drawn differently, and LOAD DATA is refused."""
    extra = [*arguments({"tables": 5, "table_size": 4000}), f"--threads={threads}"]
    mariadb.query("SET GLOBAL local_infile = 0")
    seen = []
    for program in ("sysbench", drop_in):
        drop(mariadb)
        if command != "prepare":
            assert ran(mariadb, "oltp_read_write", "prepare", *extra).returncode == 0
        forget(mariadb)
        said = ran(mariadb, "oltp_read_write", command, *extra, program=program)
        assert said.returncode == 0, said.stdout
        by_connection: dict[int, list[str]] = {}
        for connection, kind, sql in log(mariadb):
            if kind in SENT and not sql.startswith("LOAD DATA"):
                told = re.sub(r"VALUES.*", "VALUES", sql, flags=re.S)
                by_connection.setdefault(connection, []).append(told)
        # The original's threads may print a step between another one's words and the end of its line.
        steps = sorted(re.findall(r"[A-Z][a-z]+ing [^\n]*?sbtest\d+", said.stdout))
        seen.append((sorted(by_connection.values()), steps))
    assert seen[0] == seen[1]
    assert len(seen[0][1]) == {"prepare": 15, "prewarm": 5, "cleanup": 5}[command]


def test_a_table_that_is_there_is_an_error_with_sysbenchs_statement(
    mariadb: LocalServer, drop_in: str
) -> None:
    extra = ("--tables=1", "--table-size=10")
    assert ran(mariadb, "oltp_read_write", "prepare", *extra, program=drop_in).returncode == 0
    seen = []
    for program in ("sysbench", drop_in):
        said = ran(mariadb, "oltp_read_write", "prepare", *extra, program=program)
        assert said.returncode == 1
        failed = re.search(r"^FATAL: mysql_drv_query\(\) returned error.*?'.*?'$", said.stdout, re.M | re.S)
        assert failed, said.stdout
        # What was about to be done is told before it fails.
        seen.append((failed[0], "Creating table 'sbtest1'..." in said.stdout.splitlines()))
    assert seen[0] == seen[1]
    assert seen[0][1]


@pytest.mark.parametrize("mode", ["prepared", "text"])
def test_a_failed_statement_is_told_as_sysbench_tells_it(mariadb: LocalServer, mode: str) -> None:
    """A row that is there already meets oltp_insert's, which sends one statement an event."""
    extra = ["--table-size=10", *(["--db-ps-mode=disable"] if mode == "text" else [])]
    workload = {"name": "oltp_update_index", "options": {"table_size": 10}, "statements": mode}
    assert ran(mariadb, "oltp_update_index", "prepare", *extra).returncode == 0
    mariadb.query(
        "CREATE TRIGGER dbdyno.refusal BEFORE UPDATE ON dbdyno.sbtest1 FOR EACH ROW "
        "SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not today', MYSQL_ERRNO = 30001"
    )
    said = ran(mariadb, "oltp_update_index", "run", *extra).stdout
    result = engine(mariadb, workload)
    assert result.end is not None
    failure = result.end["failure"]["server"]
    function = {"execute": "mysql_stmt_execute()", "query": "mysql_drv_query()"}[failure["action"]]
    told = (
        f"FATAL: {function} returned error {failure['code']} ({failure['message']}) "
        f"for query '{failure['statement']}'"
    )
    assert re.sub(r"id=\d+", "id=N", told) in re.sub(r"id=\d+", "id=N", said)
    state = f"errno = {failure['code']}, state = '{failure['sqlstate']}': {failure['message']}"
    assert state in said


def test_no_server_is_told_in_the_librarys_words(mariadb: LocalServer) -> None:
    with sysbench(mariadb.address(), "oltp_point_select", "run") as argv:
        elsewhere = [re.sub(r"--mysql-port=\d+", "--mysql-port=1", word) for word in argv]
        said = subprocess.run(elsewhere, capture_output=True, text=True, check=False).stdout
    target = {**mariadb.address().target(), "endpoints": [{"tcp": {"host": "127.0.0.1", "port": 1}}]}
    result = engine(mariadb, {"name": "oltp_point_select"}, target=target)
    assert result.end is not None
    failure = result.end["failure"]["server"]
    assert failure["endpoint"] == {"tcp": {"host": "127.0.0.1", "port": 1}}
    assert f"FATAL: error {failure['code']}: {failure['message']}" in said


def test_a_statement_that_is_not_there_is_told_while_preparing(mariadb: LocalServer) -> None:
    result = engine(mariadb, {"name": "oltp_point_select"})
    assert result.end is not None
    failure = result.end["failure"]["server"]
    assert (failure["action"], failure["code"], failure["sqlstate"]) == ("prepare", 1146, "42S02")
    assert failure["statement"] == "SELECT c FROM sbtest1 WHERE id=?"


def test_any_error_starts_an_event_anew_and_nothing_is_rolled_back(mariadb: LocalServer) -> None:
    """Of two tables one is missing: an event that meets it draws its table once more, as in sysbench."""
    options = {"tables": 1, "table_size": 100}
    assert ran(mariadb, "oltp_point_select", "prepare", *arguments(options)).returncode == 0
    forget(mariadb)
    both = {**options, "tables": 2}
    said = ran(
        mariadb,
        "oltp_point_select",
        "run",
        *arguments(both),
        "--mysql-ignore-errors=all",
        "--db-ps-mode=disable",
    )
    assert said.returncode == 0, said.stdout
    forget(mariadb)
    result = engine(
        mariadb,
        {"name": "oltp_point_select", "options": both, "statements": "text"},
        retry={"all": True, "rollback": False},
    )
    assert result.end is not None
    assert result.end["reason"] == "event-limit", result.failure()
    totals = result.end["phases"]["measure"]
    errors = totals["errors"]["1146"]
    assert set(totals["errors"]) == {"1146"}
    assert totals["retries"] == errors > 0
    sent = [sql for _, kind, sql in log(mariadb) if kind == "Query"]
    assert len(sent) == EVENTS + errors
    assert all(sql.startswith("SELECT c FROM") for sql in sent)
    # Statements that failed are among no counter of statements, on either side.
    assert counters(said.stdout)["total"] == counters(said.stdout)["read"] == EVENTS == totals["reads"]
    assert counters(said.stdout)["ignored errors"] > 0
