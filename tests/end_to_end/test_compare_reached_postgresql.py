"""`dbdyno compare` on two PostgreSQL servers that run already: settings, tables of others, and `reset`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import TIME_LIMIT_S, Comparing, environment, refused, wait_until

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

EXPERIMENT = """
[experiment]
name = "reached-postgresql"
[[workload]]
name = "oltp_read_write"
tables = 2
table_size = 500
# Two transactions that delete and insert one row would meet too often in so few.
delete_inserts = 0
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
[client]
workers = 1
[design]
repeat_disturbed = false
blocks = 2
state = "reset"
seed = 2
"""
VARIANT = """
[[variant]]
name = "{name}"
[variant.server]
kind = "remote"
url = "{url}"
password_file = "{file}"
{more}
"""
DECLARED = 'variables = { work_mem = "8MB", synchronous_commit = false }\n'
# What an account needs to set these, and no more of a superuser's rights.
RIGHTS = (
    "GRANT ALTER SYSTEM ON PARAMETER work_mem, synchronous_commit TO dbdyno",
    "GRANT EXECUTE ON FUNCTION pg_reload_conf() TO dbdyno",
    "GRANT SELECT ON pg_file_settings TO dbdyno",
    "GRANT EXECUTE ON FUNCTION pg_show_all_file_settings() TO dbdyno",
)
Pair = tuple[LocalServer, LocalServer]


@pytest.fixture(scope="module")
def pair(workspace: Workspace) -> Iterator[Pair]:
    with ExitStack() as stack:
        servers = []
        for name in ("somebody's postgresql", "another postgresql"):
            spec = ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"})
            server = stack.enter_context(
                closing(LocalServer(Variant(name=name, server=spec), workspace, None))
            )
            server.start()
            # Set by its owner, and to be so afterwards.
            server.query("ALTER SYSTEM SET work_mem = '3MB'")
            server.query("SELECT pg_reload_conf()")
            servers.append(server)
        wait_until(lambda: all(s.variables()["work_mem"] == "3MB" for s in servers), "all are reloaded")
        yield servers[0], servers[1]


class Given:
    """An experiment over the two."""

    def __init__(self, results: Path, folder: Path, pair: Pair) -> None:
        self._results, self._folder, self._pair = results, folder, pair

    def url(self, number: int) -> str:
        return f"postgresql://dbdyno@127.0.0.1:{self._pair[number].address().port}/dbdyno"

    def comparing(self, more: str = "") -> Comparing:
        """`more` are lines of the other variant."""
        return Comparing(self._results, EXPERIMENT + self.table("one", 0) + self.table("other", 1, more))

    def table(self, name: str, number: int, more: str = "") -> str:
        secret = self._folder / name
        secret.write_text(self._pair[number].address().password)
        return VARIANT.format(name=name, url=self.url(number), file=secret, more=more)


@pytest.fixture
def given(results: Path, tmp_path: Path, pair: Pair) -> Given:
    return Given(results, tmp_path, pair)


def tables_of(server: LocalServer) -> list[Any]:
    return server.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")


def written_down(server: LocalServer) -> list[Any]:
    """What ALTER SYSTEM has left, as the next start will read it."""
    return server.query(
        "SELECT name, setting FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf' ORDER BY 1"
    )


def test_settings_are_compared_set_where_allowed_and_taken_back(given: Given, pair: Pair) -> None:
    before = [server.variables() for server in pair]
    answer = given.comparing(DECLARED).run("--no-report")
    assert answer.returncode == 4
    told = answer.stdout + answer.stderr
    assert "work_mem is 3MB on the remote server; the experiment declares 8MB" in told
    assert "synchronous_commit is on on the remote server; the experiment declares OFF" in told
    allowed = given.comparing(f"{DECLARED}set_global = true\n")
    refused(allowed.run("--no-report"), 4, "work_mem could not be set", "omit set_global")
    for right in RIGHTS:
        pair[1].query(right)
    answer = allowed.run("--no-report")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    trials = allowed.newest().trials()
    assert len(trials) == 4
    for trial in trials:
        assert trial.is_done
        other = trial.meta["variant"] == "other"
        server = trial.server
        assert server["product"] == "postgresql"
        assert server["identity"]["url"] == given.url(int(other))
        settings = server["variables"]["work_mem"], server["variables"]["synchronous_commit"]
        assert settings == (("8MB", "off") if other else ("3MB", "on"))
        # Reset: tables that are new to each group hold what was loaded, and nobody has changed a row yet.
        changed = [int(server["status_before"][f"pg_stat_user_tables.n_tup_{how}"]) for how in ("ins", "upd")]
        assert changed == [1000, 0]
        assert int(server["status_after"]["pg_stat_user_tables.n_tup_upd"]) > 0
        assert trial.session()["authentication"] == "scram-sha-256"
    assert [tables_of(server) for server in pair] == [[], []]
    assert [server.variables() for server in pair] == before
    assert [written_down(server) for server in pair] == [[("work_mem", "3MB")]] * 2


REPLAY = """
name = "sql"
replay = { file = "shop.sql", format = "queries" }
"""
CREATE_ORDERS = (
    "CREATE {kind} TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL, day {day}) "
    "WITH (autovacuum_enabled = off)",
    "INSERT INTO orders SELECT id, id % 100, '2026-01-01' FROM generate_series(1, {rows}) id",
    "GRANT SELECT ON orders TO dbdyno",
)


def test_existing_tables_of_a_replay_are_compared(given: Given, pair: Pair, results: Path) -> None:
    """The statements are unknown, so every table of the databases counts."""
    (results / "shop.sql").write_text("SELECT COUNT(*) FROM orders WHERE customer = 7;\n")
    for server, values in zip(
        pair,
        (
            {"kind": "", "day": "DATE", "rows": 30_000},
            {"kind": "UNLOGGED", "day": "TIMESTAMP", "rows": 20_000},
        ),
        strict=True,
    ):
        for sql in CREATE_ORDERS:
            server.query(sql.format(**values))
    pair[0].query("CREATE TABLE log (id INT)")
    pair[1].query("CREATE INDEX by_day ON orders (customer, day DESC) WHERE customer > 5")
    changed = "SELECT n_mod_since_analyze FROM pg_stat_user_tables WHERE relname = 'orders'"
    wait_until(lambda: [s.query(changed) for s in pair] == [[(30_000,)], [(20_000,)]], "changes are counted")
    pair[0].query("ANALYZE orders")
    head, _, rest = EXPERIMENT.partition('name = "oltp_read_write"')
    workload = f"{head}{REPLAY}{rest[rest.index('[load]') :]}"
    comparing = Comparing(results, workload + given.table("one", 0) + given.table("other", 1))
    command = [sys.executable, "-m", "dbdyno", "check", str(comparing.file), "--with-data"]
    try:
        answer = subprocess.run(
            command, capture_output=True, text=True, timeout=TIME_LIMIT_S, env=environment(), check=False
        )
    finally:
        for server in pair:
            server.query("DROP TABLE orders")
        pair[0].query("DROP TABLE log")
    assert answer.returncode == 4, answer.stderr
    told = " ".join((answer.stdout + answer.stderr).split())
    for text in (
        "P29 other: other has other data than one: rows of orders: 20,000, not 30,000; without the table log",
        "column day of orders is timestamp without time zone, not date; persistence of orders is unlogged",
        "other has other indexes than one: index by_day on orders (customer, day DESC) WHERE (customer > 5)",
        "many rows of other have changed since the statistics of the optimizer were made: 100 % of orders",
    ):
        assert text in told
    assert "many rows of one" not in told


def test_tables_of_others_and_two_names_of_one_server_are_refused(
    given: Given, pair: Pair, results: Path
) -> None:
    pair[1].query("CREATE TABLE sbtest2 (id INT PRIMARY KEY)")
    pair[1].query("INSERT INTO sbtest2 VALUES (7)")
    try:
        refused(
            given.comparing().run("--no-report"),
            4,
            "already contains sbtest2 (not made by dbdyno)",
            "drop these tables yourself",
        )
        assert tables_of(pair[1]) == [("sbtest2",)]
        assert pair[1].query("SELECT id FROM sbtest2") == [(7,)]
        assert tables_of(pair[0]) == []
    finally:
        pair[1].query("DROP TABLE sbtest2")
    same = given.table("other", 0).replace("127.0.0.1", "localhost")
    answer = Comparing(results, EXPERIMENT + given.table("one", 0) + same).run("--no-report")
    assert answer.returncode == 4
    assert "lead to the same server" in answer.stdout + answer.stderr
