"""The checks against real MariaDB servers, and `dbdyno check` as a command."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.end_to_end.comparing import environment, left_running

from dbdyno import checks
from dbdyno.checks import Context, Moment
from dbdyno.checks.settings import rounding
from dbdyno.experiment.model import Experiment, Load, OltpName, OltpWorkload, ServerSpec, Variant
from dbdyno.experiment.quantities import is_equal
from dbdyno.finding import Finding
from dbdyno.run.description import describe
from dbdyno.run.engine import Engine, EngineResult, Record
from dbdyno.run.loading import prepare
from dbdyno.servers.kinds.local import LocalServer

TABLES, ROWS = 2, 1000
TIME_LIMIT_S = 120.0


def experiment(connections: int = 1, variables: dict[str, Any] | None = None, **options: Any) -> Experiment:
    workload = OltpWorkload.model_validate(
        {"name": "oltp_read_write", "tables": TABLES, "table_size": ROWS, **options}
    )
    return Experiment(
        name="checks",
        workloads=(workload,),
        load=Load(connections=(connections,), duration_s=1.0),
        variants=(Variant(name="it", server=ServerSpec(variables=variables or {})),),
    )


def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("PATH", environment()["PATH"])
    return Engine()


def load(server: LocalServer, given: Experiment, monkeypatch: pytest.MonkeyPatch) -> EngineResult:
    return prepare(given, given.workloads[0], server, engine(monkeypatch), lambda _news: None)


def find(code: str, moment: Moment, server: LocalServer, given: Experiment, **known: Any) -> list[Finding]:
    variant = given.variants[0]
    context = Context(given, variant=variant, server=server, **{"description": server.describe(), **known})
    return checks.run(moment, context, [code])


@pytest.fixture
def loaded(mariadb: LocalServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalServer]:
    """The module's server with freshly loaded tables, which are dropped afterwards."""
    load(mariadb, experiment(), monkeypatch)
    yield mariadb
    database = mariadb.address().database
    for (name,) in mariadb.query(f"SHOW TABLES IN {database}"):
        mariadb.query(f"DROP TABLE {database}.{name}")


def change(server: LocalServer, sql: str) -> None:
    server.query(sql.replace("sbtest", f"{server.address().database}.sbtest"))


def test_fresh_data_are_the_specified_ones(loaded: LocalServer) -> None:
    assert find("P02", Moment.READY, loaded, experiment()) == []
    assert find("P02", Moment.AFTER_GROUP, loaded, experiment()) == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        # Seed 000: loaded a tenth of what is run over.
        ({"table_size": 10 * ROWS}, ["1,000 rows, not 10,000", "ids end at 1,000, not at 10,000"]),
        ({"tables": 3}, ["1 of 3 tables are missing", "sbtest3"]),
        ({"auto_inc": False}, ["id is AUTO_INCREMENT"]),
        ({"secondary": True}, ["id is the primary key"]),
        ({"create_secondary": False}, ["there is an additional index k_1 on k"]),
        ({"mysql_storage_engine": "aria"}, ["storage engine is innodb, not aria"]),
    ],
)
def test_other_data_than_specified_are_a_stop(
    loaded: LocalServer, options: dict[str, Any], words: list[str]
) -> None:
    findings = checks.blocking_findings(find("P02", Moment.READY, loaded, experiment(**options)))
    assert findings != []
    told = " ".join(finding.text for finding in findings)
    assert all(word in told for word in words), told


def test_a_missing_row_is_a_stop_before_and_none_after_a_group(loaded: LocalServer) -> None:
    change(loaded, "DELETE FROM sbtest2 WHERE id = 500")
    (finding,) = find("P02", Moment.READY, loaded, experiment())
    assert "sbtest2: 999 rows, not 1,000" in finding.text
    assert find("P02", Moment.AFTER_GROUP, loaded, experiment()) == []
    # More than 1 % of them is drift.
    change(loaded, "DELETE FROM sbtest2 WHERE id <= 11")
    (finding,) = find("P02", Moment.AFTER_GROUP, loaded, experiment())
    assert (finding.level, finding.subject) == ("stop", "it")


def test_rows_that_came_and_went_are_a_warning(loaded: LocalServer) -> None:
    change(loaded, "INSERT INTO sbtest1 (k, c, pad) VALUES (1, '', '')")
    change(loaded, "DELETE FROM sbtest1 WHERE id > 1000")
    (finding,) = find("P02", Moment.READY, loaded, experiment())
    assert finding.level == "warn"
    assert finding.evidence == {"tables": ["sbtest1"], "auto_increment": 1002, "expected": 1001}


def test_a_view_is_no_table(loaded: LocalServer) -> None:
    change(loaded, "RENAME TABLE sbtest1 TO sbtest9")
    change(loaded, "CREATE VIEW sbtest1 AS SELECT * FROM sbtest9")
    (finding,) = find("P02", Moment.READY, loaded, experiment())
    assert finding.text.endswith("sbtest1: it is a view")
    change(loaded, "DROP VIEW sbtest1")


def test_counting_reads_the_small_index_only(loaded: LocalServer) -> None:
    (plan,) = loaded.query(
        f"EXPLAIN SELECT COUNT(*) FROM {loaded.address().database}.sbtest1 FORCE INDEX (k_1)"
    )
    assert "k_1" in plan
    assert "Using index" in plan


def test_the_same_server_after_a_restart_and_another_inside_a_group(
    started: Callable[..., LocalServer],
) -> None:
    server = started("restarted")
    first = server.describe()
    assert find("P03", Moment.AFTER_GROUP, server, experiment(), description=first) == []
    server.stop(clean=True)
    server.start()
    assert find("P03", Moment.READY, server, experiment(), first_description=first) == []
    # The server went away and came back while a group was running: its cache is empty.
    (finding,) = find("P03", Moment.AFTER_GROUP, server, experiment(), description=first)
    assert finding.level == "stop"
    assert "pid" in finding.evidence


def test_two_servers_are_two(started: Callable[..., LocalServer]) -> None:
    one, other = started("one"), started("other")
    assert find("P03", Moment.READY, one, experiment(), peers={"other": other.describe()}) == []
    (finding,) = find("P03", Moment.READY, one, experiment(), first_description=other.describe())
    assert {"datadir", "socket", "port"} <= set(finding.evidence)


# What MariaDB makes of values that do not suit it: cut to a step, or clipped.
ROUNDED = {
    "innodb_buffer_pool_size": "67108865",
    "innodb_log_file_size": "16777217",
    "join_buffer_size": "262145",
    "key_buffer_size": "1000001",
    "max_allowed_packet": "16777217",
    "max_heap_table_size": "16777217",
    "read_buffer_size": "1000001",
    "tmp_table_size": "16777217",
    "thread_stack": "299009",
}
CLIPPED = {"innodb_lru_scan_depth": "50", "table_definition_cache": "1", "thread_cache_size": "20000000"}
TAKEN = {
    "long_query_time": 1.5,
    "slow_query_log": True,
    "sql_mode": "ANSI",
    "optimizer_switch": "index_merge=off",
    "character_set_server": "utf8",
    "innodb_flush_method": "o_direct",
    "innodb-max-dirty-pages-pct": 80,
}


def test_what_a_server_makes_of_settings(started: Callable[..., LocalServer]) -> None:
    declared: dict[str, Any] = {**ROUNDED, **CLIPPED, **TAKEN}
    server = started("adjusted", variables=declared)
    findings = find("P04", Moment.READY, server, experiment(variables=declared))
    by_level: dict[str, set[str]] = {"stop": set(), "note": set()}
    for finding in findings:
        by_level[finding.level].add(str(finding.evidence["variable"]))
    assert by_level == {"stop": set(CLIPPED), "note": set(ROUNDED)}
    variables = server.variables()
    # The rules are the running server's, not our memory of it.
    assert all(rounding(name, value, variables) for name, value in ROUNDED.items())
    assert not any(is_equal(name, value, variables[name]) for name, value in CLIPPED.items())


SPELLINGS = """
[mysqld]
skip-name-resolve
log-bin = shop
general-log
server-id = 2
skip-innodb-adaptive-hash-index
enable-low-priority-updates
loose-innodb-nonsense = 3
loose_sort_buffer_size = 512K
transaction-isolation = READ-COMMITTED
log_bin_index = ./shop-list.index
concurrent_insert = 2
sort_buffer = 512K
myisam-recover-options
!include more.cnf
"""


def test_a_configuration_file_in_the_servers_own_spelling_is_in_effect(
    started: Callable[..., LocalServer], mariadb: LocalServer, tmp_path: Path
) -> None:
    (tmp_path / "my.cnf").write_text(SPELLINGS)
    (tmp_path / "more.cnf").write_text("[mariadb]\njoin_buffer_siz = 512K\n")
    plain, server = mariadb.describe(), started("spelled", config=tmp_path / "my.cnf")
    variants = (Variant(name="plain"), Variant(name="it", server=ServerSpec(config=tmp_path / "my.cnf")))
    given = experiment().model_copy(update={"variants": variants})
    own = server.describe()
    assert own.variables["version"].endswith("-log")
    context = Context(given, variant=variants[1], server=server, description=own, peers={"plain": plain})
    found = checks.run(Moment.READY, context, ["P03", "P04", "P05"])
    # The fixture declares small buffers for both servers, but not in this experiment.
    assert [one.text for one in found if one.level != "note" or one.code != "P05"] == []


def test_an_ignored_variable_is_a_stop(started: Callable[..., LocalServer]) -> None:
    declared = {"innodb_buffer_pool_instances": 4}
    server = started("ignoring", variables=declared)
    (finding,) = find("P04", Moment.READY, server, experiment(variables=declared))
    assert finding.level == "stop"
    assert "ignores it" in finding.text


@pytest.mark.parametrize("name", get_args(OltpName))
def test_statements_are_counted_as_the_engine_and_the_server_do(
    mariadb: LocalServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    given = experiment(connections=3, name=name)
    workload = given.workloads[0]
    loaded = load(mariadb, given, monkeypatch)
    assert loaded.hello is not None
    held: list[int] = []
    ready: list[int] = []

    def on_record(record: Record) -> None:
        if record["type"] == "ready":
            ready.append(record["data"]["prepared_statements"])
            held.append(int(mariadb.status()["Prepared_stmt_count"]))

    address = mariadb.address()
    plan = {**loaded.hello["plan"], "load": {"connections": 3, "shape": "closed"}}
    plan["phases"] = {"warmup_us": 0, "measure_us": 300_000}
    engine(monkeypatch).run("run", plan, address.environment(), on_record)
    for number in range(1, TABLES + 1):
        mariadb.query(f"DROP TABLE {address.database}.sbtest{number}")
    described = describe(given, workload, "mysql").prepared_per_connection
    kinds = loaded.hello["statements"]
    assert sum(kind["per_connection"] for kind in kinds if kind["prepared"]) == described
    assert ready == [3 * described]
    assert held[0] == 3 * described


def test_the_servers_own_limits_are_checked(loaded: LocalServer) -> None:
    ((before,),) = loaded.query("SELECT @@GLOBAL.max_prepared_stmt_count")
    loaded.query("SET GLOBAL max_prepared_stmt_count = 1000")
    try:
        # Two tables: 9 kinds x 2 + 2 = 20 statements; 45 connections are 900 of 1,000.
        assert find("P07", Moment.READY, loaded, experiment(connections=45)) == []
        (finding,) = find("P07", Moment.READY, loaded, experiment(connections=46))
    finally:
        loaded.query(f"SET GLOBAL max_prepared_stmt_count = {before}")
    assert finding.evidence["need"] == 920
    assert finding.evidence["largest_connections"] == 45
    assert "max_prepared_stmt_count = 1023" in finding.fix


def test_a_server_that_cannot_answer_one_check_is_told_by_another(
    started: Callable[..., LocalServer],
) -> None:
    # A sort buffer of 1024 bytes: the server has no memory for some questions.
    declared = {"sort_buffer_size": 1000}
    server = started("cramped", variables=declared)
    given = experiment(variables=declared)
    context = Context(given, variant=given.variants[0], server=server, description=server.describe())
    assert "P04" in {finding.code for finding in checks.blocking_findings(checks.run(Moment.READY, context))}


# --- the command
# ----------------------------------------------------------------------------------------------

EXPERIMENT = """
[experiment]
name = "checked"
[[workload]]
name = "oltp_read_only"
table_size = 1_000
[load]
connections = [1, 4]
duration = "1s"
[[variant]]
name = "small"
[variant.server]
variables = { innodb_buffer_pool_size = "64M" }
[[variant]]
name = "large"
[variant.server]
variables = { innodb_buffer_pool_size = "96M" }
"""


@pytest.fixture
def checking(results: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`dbdyno check` on a small experiment with further assignments."""
    file = tmp_path / "checked.toml"
    file.write_text(EXPERIMENT)

    def check(*assignments: str, with_data: bool = True) -> subprocess.CompletedProcess[str]:
        options = [word for assignment in assignments for word in ("--set", assignment)]
        options += ["--with-data"] if with_data else []
        return subprocess.run(
            [sys.executable, "-m", "dbdyno", "check", str(file), "--results", str(results), *options],
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            env=environment(),
            check=False,
        )

    return check


def test_a_sound_experiment_can_be_compared(
    checking: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    answer = checking()
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == "Experiment 'checked' is ready for dbdyno compare"
    assert "P04" not in answer.stdout
    assert "small: restoring the data" in answer.stderr
    assert "large: restoring the data" in answer.stderr


def test_without_data_no_server_starts(
    checking: Callable[..., subprocess.CompletedProcess[str]], results: Path
) -> None:
    """The design is checked, and what the comparison needs is printed."""
    answer = checking("design.blocks=3", "load.connections=[1]", with_data=False)
    lines = dict(line.split(": ", 1) for line in answer.stdout.splitlines() if ": " in line)
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert "P15: 3 blocks cannot give a verdict" in answer.stdout
    assert re.fullmatch(
        r"about .* s: 3 blocks of 2 trials, \d+ s a block, after .* s of preparation", lines["Time"]
    )
    assert f"{results}/.servers (" in lines["Disk"]
    assert "2 copies of" in lines["Disk"]
    assert re.fullmatch(r"MariaDB \d+\.\d+\.\d+ \(/\S+\) for small, large", lines["Starts"])
    assert "downloads none" in lines["Installs"]
    assert lines["  now"].endswith("checked.toml --with-data")
    assert answer.stdout.endswith("'checked' is ready for dbdyno compare\n")
    assert left_running(results) == []


def test_data_that_do_not_fit_are_told_without_a_server(
    checking: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    answer = checking("workload.table_size=100_000_000", "workload.tables=1000", with_data=False)
    assert answer.returncode == 4
    assert "no space left for 100,000,000,000 rows on 2 servers and in the cache" in answer.stderr
    assert "Disk: 69000.3 GB in" in answer.stdout, answer.stdout


def test_a_missing_program_is_told_without_a_server(
    checking: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    answer = checking(f"variant[large].server.basedir='{tmp_path}'", with_data=False)
    assert answer.returncode == 2
    assert "mariadbd is neither in this folder" in answer.stderr
    assert "Time: " in answer.stdout
    assert "ready" not in answer.stdout


def test_everything_is_told_at_once(checking: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    answer = checking(
        "variant[small].server.variables.thread_cache_size=20_000_000",
        "variant[large].server.variables.max_connections=10",
        "variant[large].server.variables.max_prepared_stmt_count=20",
        "load.connections=[20]",
        "design.blocks=3",
    )
    assert answer.returncode == 4, answer.stderr
    for words in (
        "adjusted by the server from the declared 20000000",
        "P07 large: max_connections is 10, of which 90 % may be used; 20 connections of ",
        "20 connections of oltp_read_only need 140 prepared statements (7 each)",
        "P15: 3 blocks cannot give a verdict",
        "P15 large: large differs from small in 4 settings",
    ):
        assert words in answer.stdout, answer.stdout
    # A limit that is known from the file and from the server is told once.
    assert answer.stdout.count("max_connections is 10") == 1
    assert answer.stdout.splitlines()[-1] == "Experiment 'checked' is not ready for dbdyno compare: 3 stops"


def test_an_override_lets_it_pass(checking: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    answer = checking(
        "variant[large].server.variables.thread_cache_size=20_000_000", "override.P04=clipped on purpose"
    )
    assert answer.returncode == 0, answer.stderr
    assert "    overridden: clipped on purpose" in answer.stdout


def test_a_neighbour_at_work_is_told(
    mariadb: LocalServer, checking: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    pid = mariadb.describe().identity["pid"]
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            mariadb.query("SELECT BENCHMARK(3000000, MD5('x'))")

    worker = threading.Thread(target=work)
    worker.start()
    try:
        answer = checking()
    finally:
        done.set()
        worker.join()
    assert answer.returncode == 0, answer.stderr
    assert f"mariadbd (pid {pid})" in answer.stdout
    assert "another database server is busy on this machine" in answer.stdout


def test_a_server_that_does_not_start_is_one_message(
    checking: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    answer = checking("variant[large].server.variables.inodb_typo=1")
    assert answer.returncode == 2
    assert "inodb_typo" in answer.stderr
    assert "Traceback" not in answer.stderr


@pytest.mark.parametrize(
    ("name", "variables", "words"),
    [
        ("oltp_insert", {"autocommit": False}, "autocommit is OFF"),
        ("oltp_point_select", {"init_connect": "SET autocommit = 0"}, "autocommit is OFF"),
        ("oltp_read_write", {"completion_type": "CHAIN"}, "completion_type = CHAIN"),
        # Its own BEGIN and COMMIT end each transaction.
        ("oltp_read_write", {"autocommit": False}, None),
        ("oltp_insert", {"completion_type": "CHAIN"}, None),
        ("oltp_insert", {}, None),
    ],
)
def test_transactions_that_a_setting_leaves_open_are_found_before_the_run(
    started: Callable[..., LocalServer], name: str, variables: dict[str, Any], words: str | None
) -> None:
    server = started("open", variables=variables)
    found = find("P27", Moment.READY, server, experiment(variables=variables, name=name))
    assert [(one.level, words in one.text) for one in found if words] == ([("warn", True)] if words else [])
    assert bool(found) == bool(words)
