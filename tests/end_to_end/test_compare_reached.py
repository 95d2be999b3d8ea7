"""`dbdyno compare` on servers it does not start: by URL, and by the user's own commands."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import variant
from tests.end_to_end.comparing import TIME_LIMIT_S, TWO_CONNECTIONS, Comparing, environment, refused
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.own_server import Own

from dbdyno.experiment.reading import read
from dbdyno.run import progress
from dbdyno.run.compare import compare
from dbdyno.run.engine import Engine, EngineResult
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace
from dbdyno.store import Run

VARIANT = """
[[variant]]
name = "{name}"
[variant.server]
kind = "{kind}"
url = "{url}"
password_file = "{file}"
{more}
"""


@pytest.fixture(scope="module")
def pair(workspace: Workspace) -> Iterator[tuple[LocalServer, LocalServer]]:
    with (
        closing(LocalServer(variant("somebody's first"), workspace, None)) as one,
        closing(LocalServer(variant("somebody's second"), workspace, None)) as other,
    ):
        one.start()
        other.start()
        yield one, other


Somebodys = LocalServer | MySQLServer


def url(server: Somebodys, user: str = "dbdyno") -> str:
    return f"mysql://{user}@127.0.0.1:{server.address().port}/dbdyno"


class Given:
    """An experiment over servers that run already."""

    def __init__(self, results: Path, folder: Path) -> None:
        self.results, self.folder = results, folder

    def table(
        self, name: str, server: Somebodys, kind: str = "remote", more: str = "", user: str = "dbdyno"
    ) -> str:
        secret = self.folder / f"{name}.password"
        secret.write_text(server.address().password)
        return VARIANT.format(name=name, kind=kind, url=url(server, user), file=secret, more=more)

    def comparing(self, *tables: str) -> Comparing:
        return Comparing(self.results, TWO_CONNECTIONS + "".join(tables))


@pytest.fixture
def given(results: Path, tmp_path: Path) -> Given:
    return Given(results, tmp_path)


def tables_of(server: LocalServer) -> set[str]:
    rows = server.query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'dbdyno'")
    return {row[0] for row in rows}


def test_two_endpoints_are_compared_and_left_as_they_were(
    given: Given, pair: tuple[LocalServer, LocalServer]
) -> None:
    before = [server.variables() for server in pair]
    comparing = given.comparing(given.table("one", pair[0]), given.table("other", pair[1]))
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 4
    for trial in trials:
        server: Any = trial.server
        assert trial.is_done
        assert server["identity"]["url"] == url(pair[trial.meta["variant"] == "other"])
        assert server["identity"]["started_unix_s"] > 1e9
        assert len(server["variables"]) > 500
        assert server["origins"]["innodb_buffer_pool_size"] == "config"
        assert server["data_bytes"] > 0
        assert server["host"]["hostname"]
        assert server["process"]["before"] == {}
        # On this machine, and nobody knows which processes are the server's.
        assert server["edges"]["foreign"] is None
        moved = int(server["status_after"]["Com_commit"]) - int(server["status_before"]["Com_commit"])
        assert moved > 0
    assert [tables_of(server) for server in pair] == [set(), set()]
    assert [server.variables() for server in pair] == before
    everything = answer.stdout + answer.stderr
    for path in comparing.newest().path.rglob("*"):
        if path.is_file() and path.suffix != ".gz":
            everything += path.read_text(errors="replace")
    assert all(server.address().password not in everything for server in pair)


def test_variables_are_compared_and_set_only_where_that_is_allowed(
    given: Given, pair: tuple[LocalServer, LocalServer], mysql: MySQLServer
) -> None:
    """A MariaDB and a MySQL; the second one's account may set variables for a while."""
    before = mysql.variables()["innodb_io_capacity"]
    declared = 'variables = { innodb_io_capacity = 777, sort_buffer_size = "1M" }\n'
    one = given.table("one", pair[0])
    answer = given.comparing(one, given.table("other", mysql, more=declared)).run("--no-report")
    assert answer.returncode == 4
    told = answer.stdout + answer.stderr
    expected = f"innodb_io_capacity is {before} on the remote server; the experiment declares 777"
    assert expected in told
    allowed = given.comparing(one, given.table("other", mysql, more=f"{declared}set_global = true\n"))
    refused(allowed.run("--no-report"), 4, "innodb_io_capacity could not be set", "omit set_global")
    mysql.sql("GRANT SYSTEM_VARIABLES_ADMIN ON *.* TO dbdyno@'%'")
    fixed = "variant[other].server.variables.innodb_buffer_pool_instances=3"
    try:
        refused(
            allowed.run("--no-report", "--set", fixed),
            2,
            "innodb_buffer_pool_instances cannot be changed",
            "compare two servers",
        )
        answer = allowed.run("--no-report", "--set", "design.state=preserve")
    finally:
        mysql.sql("REVOKE SYSTEM_VARIABLES_ADMIN ON *.* FROM dbdyno@'%'")
    assert answer.returncode == 0, answer.stderr
    values = {
        (trial.meta["variant"], trial.server["product"], trial.server["variables"]["innodb_io_capacity"])
        for trial in allowed.newest().trials()
    }
    assert values == {("one", "mariadb", "200"), ("other", "mysql", "777")}
    assert mysql.variables()["innodb_io_capacity"] == before
    assert mysql.sql("SHOW TABLES IN dbdyno") == []


def test_variants_on_one_database_keep_their_data_until_the_last_group(
    given: Given, pair: tuple[LocalServer, LocalServer]
) -> None:
    """Each writes its own values: a second UPDATE to the same value changes no row."""
    socket = pair[0].address().unix_socket
    other = given.table("other", pair[0]).replace('/dbdyno"', f'/dbdyno?socket={socket}"')
    assert f"?socket={socket}" in other
    comparing = given.comparing(given.table("one", pair[0]), other)
    settings = ("design.blocks=4", "design.order_seed=1", "design.state=preserve", "override.P03=one server")
    answer = comparing.run("--no-report", *(word for text in settings for word in ("--set", text)))
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert len(trials) == 8
    # The variant that loaded the tables ends before the other.
    assert trials[0].meta["variant"] != trials[-1].meta["variant"]
    assert "D04" not in answer.stderr
    assert tables_of(pair[0]) == set()


OWN_SQL = """
name = "sql"
setup = ["CREATE TABLE t (id INT)"]
session = ["SET @length = 64"]
transactions = ["SELECT COUNT(*) FROM t"]
"""


def test_variants_that_connect_differently_share_one_database(
    given: Given, pair: tuple[LocalServer, LocalServer]
) -> None:
    one = given.table("one", pair[0])
    other = given.table("other", pair[0], more='[variant.session]\ncompression = "zlib"')
    after = '[variant.data]\nafter = ["CREATE INDEX own ON sbtest1 (c)"]\n'
    short = ("--no-report", "--set", "design.blocks=1")
    preserve = (*short, "--set", "design.state=preserve", "--set", "design.order_seed=1")
    answer = given.comparing(one + after, other + after).run(*preserve)
    assert answer.returncode == 0, answer.stderr
    assert tables_of(pair[0]) == set()
    # data.after fails: the tables are dropped.
    fails = after.replace("(c)", "(none)")
    refused(given.comparing(one + fails, other + fails).run(*preserve), 2, "data.after of")
    assert tables_of(pair[0]) == set()
    # Somebody else's table stops the run before anything is loaded.
    pair[0].query("CREATE TABLE dbdyno.sbtest2 (id INT PRIMARY KEY)")
    refused(given.comparing(one + after, other + after).run(*preserve), 4, "already contains sbtest2")
    assert tables_of(pair[0]) == {"sbtest2"}
    pair[0].query("DROP TABLE dbdyno.sbtest2")
    head = TWO_CONNECTIONS.replace('name = "oltp_read_write"\ntables = 2\ntable_size = 500\n', OWN_SQL)
    assert OWN_SQL in head
    # P04 sends the workload's own session first.
    sql = 'sql = ["SET SESSION max_sort_length = @length"]\n'
    answer = Comparing(given.results, head + one + other + sql).run(*short)
    assert answer.returncode == 0, answer.stderr
    assert tables_of(pair[0]) == set()


SHOP = """
name = "sql"
parameters = { customer = "uniform(1, 1_000)" }
transactions = ["SELECT COUNT(*), MAX(day) FROM orders JOIN cities USING (city) WHERE customer = :customer"]
"""
CREATE_SHOP = (
    "CREATE DATABASE {shop}",
    "CREATE TABLE {shop}.orders (id INT PRIMARY KEY, customer INT NOT NULL, city INT, day DATE, "
    "KEY by_customer (customer))",
    "CREATE TABLE {shop}.cities (city INT PRIMARY KEY, name VARCHAR(20))",
    "INSERT INTO {shop}.orders SELECT seq, seq % 1000, seq % 50, '2026-01-01' FROM {shop}.seq_1_to_{rows}",
    "INSERT INTO {shop}.cities SELECT seq, 'x' FROM {shop}.seq_0_to_49",
)


def test_existing_tables_are_compared_before_anything_runs(
    given: Given, started: Callable[..., LocalServer]
) -> None:
    """Two databases of one server: fewer rows, then another index, then a table that is missing."""
    server = started("somebody's shops")
    # Its administrator may grant nothing.
    server.query("UPDATE mysql.db SET Db = '%' WHERE User = 'dbdyno'")
    server.query("FLUSH PRIVILEGES")
    for shop, rows in (("shop_a", 479_000), ("shop_b", 302_000)):
        for sql in CREATE_SHOP:
            server.query(sql.format(shop=shop, rows=rows))
    tables = [
        given.table(name, server).replace('/dbdyno"', f'/{shop}"')
        for name, shop in (("one", "shop_a"), ("other", "shop_b"))
    ]
    head = TWO_CONNECTIONS.replace('name = "oltp_read_write"\ntables = 2\ntable_size = 500\n', SHOP)
    comparing = Comparing(given.results, head + "".join(tables))
    short = ("--no-report", "--set", "design.state=preserve", "--set", "design.blocks=1")
    stop = "P29 other: other has other data than one: rows of orders: 302,000, not 479,000"
    answer = comparing.run(*short)
    assert answer.returncode == 4, answer.stderr
    assert stop in answer.stdout + answer.stderr
    assert comparing.newest().trials() == []
    command = [sys.executable, "-m", "dbdyno", "check", str(comparing.file), "--with-data"]
    answer = subprocess.run(
        command, capture_output=True, text=True, timeout=TIME_LIMIT_S, env=environment(), check=False
    )
    assert answer.returncode == 4, answer.stderr
    assert stop in answer.stdout + answer.stderr
    # Rows alike, and another index.
    server.query(
        "INSERT INTO shop_b.orders SELECT seq, seq % 1000, seq % 50, '2026-01-01' "
        "FROM shop_b.seq_302001_to_479000"
    )
    server.query("CREATE INDEX by_day ON shop_b.orders (customer, day)")
    answer = comparing.run(*short)
    assert answer.returncode == 0, answer.stderr
    index = "index by_day on orders (customer, day)"
    assert f"what differs: other: {index}\n" in answer.stdout
    assert f"; other: {index}" in answer.stdout.splitlines()[-1]
    assert (
        "one and other are two databases" in answer.stderr
        or "other and one are two databases" in answer.stderr
    )
    verdict = json.loads((comparing.newest().path / "verdict.json").read_text())
    (finding,) = [entry for entry in verdict["checks"] if entry["code"] == "P29"]
    assert (finding["level"], finding["subject"]) == ("note", "other")
    assert verdict["comparisons"][0]["differs"] == [index]
    # With another declared difference, one is not told from the other. Statistics of another year.
    server.query(
        "UPDATE mysql.innodb_table_stats SET last_update = '2020-02-02' WHERE database_name = 'shop_b'"
    )
    answer = comparing.run(*short, "--set", "variant[other].session.compression=zlib")
    verdict = json.loads((comparing.newest().path / "verdict.json").read_text())
    warnings = [entry["text"] for entry in verdict["checks"] if entry["code"] == "P29"]
    assert all(entry["level"] == "warn" for entry in verdict["checks"] if entry["code"] == "P29")
    assert any("declares other differences (session.compression)" in text for text in warnings)
    assert any("of different ages: cities of 20" in text and "and 2020-02-0" in text for text in warnings)
    # A table is missing.
    server.query("DROP TABLE shop_b.cities")
    answer = comparing.run(*short)
    assert answer.returncode == 4, answer.stderr
    assert "other has other data than one: without the table cities" in answer.stdout + answer.stderr


def test_what_keeps_endpoints_from_being_compared_is_told(
    given: Given, pair: tuple[LocalServer, LocalServer], mysql: MySQLServer
) -> None:
    one = given.table("one", pair[0])
    # Two names of one server.
    same = given.table("other", pair[0]).replace("127.0.0.1", "localhost")
    answer = given.comparing(one, same).run("--no-report")
    assert answer.returncode == 4
    assert "lead to the same server" in answer.stdout + answer.stderr
    # Another version than declared.
    answer = given.comparing(one, given.table("other", pair[1], more='version = "9.7"')).run("--no-report")
    assert answer.returncode == 4
    assert "the experiment declares version 9.7" in answer.stdout + answer.stderr
    # Somebody else's table under one of our names.
    pair[1].query("CREATE TABLE dbdyno.sbtest2 (id INT PRIMARY KEY)")
    answer = given.comparing(one, given.table("other", pair[1])).run("--no-report")
    refused(
        answer, 4, "schema dbdyno already contains sbtest2 (not made by dbdyno)", "drop these tables yourself"
    )
    assert tables_of(pair[1]) == {"sbtest2"}
    assert tables_of(pair[0]) == set()
    pair[1].query("DROP TABLE dbdyno.sbtest2")
    # An account that may not make tables.
    mysql.sql("CREATE USER poor@'%' IDENTIFIED BY ''")
    mysql.sql("GRANT SELECT ON dbdyno.* TO poor@'%'")
    (given.folder / "none").write_text("")
    poor = given.table("other", mysql, user="poor").replace("other.password", "none")
    refused(given.comparing(one, poor).run("--no-report"), 4, "CREATE command denied to user 'poor'")
    mysql.sql("DROP USER poor@'%'")
    missing = given.table("other", pair[1]).replace("password_file", "password_env = 'DBDYNO_NO_SUCH' #")
    refused(
        given.comparing(one, missing).run("--no-report"),
        2,
        "password_env is 'DBDYNO_NO_SUCH', but this environment variable is not set",
    )


def test_a_server_that_was_restarted_between_groups_is_another_one(
    given: Given, pair: tuple[LocalServer, LocalServer]
) -> None:
    """After its first trial the second server is restarted by somebody, as a failover does it."""
    server = pair[1]
    script = given.folder / "restart.py"
    script.write_text(
        "import os, pathlib, time\n"
        f"pathlib.Path({str(given.folder / 'restart')!r}).touch()\n"
        f"while pathlib.Path({str(given.folder / 'restart')!r}).exists(): time.sleep(0.05)\n"
    )
    comparing = given.comparing(
        given.table("one", pair[0]),
        given.table("other", server, more=f'after_trial = ["{sys.executable}", "{script}"]'),
    )

    def failover() -> None:
        while not (given.folder / "restart").exists():
            if stopped.wait(0.05):
                return
        secret = server.address().password
        server.stop(clean=True)
        # The start is known to the second, with some slack.
        stopped.wait(5)
        server.start()
        assert server.address().password == secret
        (given.folder / "restart").unlink()
        # The kernel ends a server with the thread that started it, and later tests use it.
        threading.Event().wait(3600)

    stopped = threading.Event()
    outside = threading.Thread(target=failover, daemon=True)
    outside.start()
    try:
        answer = comparing.run("--no-report")
    finally:
        stopped.set()
    assert answer.returncode == 4, answer.stderr
    assert "the server changed since the group began: started_unix_s was" in answer.stderr


@pytest.fixture
def own(started: Callable[..., LocalServer], tmp_path: Path) -> Iterator[tuple[LocalServer, Own]]:
    server = started("somebody's own")
    # A start is known to the second, with some slack.
    with closing(Own(server, tmp_path, apart_s=5.0)) as commands:
        yield server, commands


def test_the_users_own_commands_run_a_server(
    given: Given, pair: tuple[LocalServer, LocalServer], own: tuple[LocalServer, Own]
) -> None:
    """The server is started and stopped around each group; commands and hooks write down that they ran."""
    server, commands = own
    diary = given.folder / "diary"
    note = given.folder / "note.py"
    note.write_text(
        "import os, subprocess, sys, json\n"
        f"open({str(diary)!r}, 'a').write(' '.join([sys.argv[1], os.environ['DBDYNO_VARIANT']]) + '\\n')\n"
        "assert not any('PASSWORD' in name for name in os.environ)\n"
        "if sys.argv[2:]: sys.exit(subprocess.run(sys.argv[2:]).returncode)\n"
        "if sys.argv[1] == 'describe': print(json.dumps({'rack': 7}))\n"
        "if sys.argv[1] == 'sample': print('cpu_user_s 12.5\\nnfs_calls=7\\nnote: none\\nodd nan')\n"
        "if sys.argv[1] == 'during':\n"
        "    import time; print('watching', os.environ['DBDYNO_POINT'], flush=True); time.sleep(600)\n"
    )

    def argv(word: str, *more: str) -> str:
        return json.dumps([sys.executable, str(note), word, *more])

    words = {"describe": (), "sample": (), **{word: commands.argv(word) for word in ("start", "stop")}}
    lines = "".join(f"{word} = {argv(word, *more)}\n" for word, more in words.items())
    hooks = f"before_trial = {argv('before')}\nduring_trial = {argv('during')}\nafter_trial = ['false']\n"
    comparing = given.comparing(
        given.table("one", pair[0]), given.table("own", server, "command", more=lines + hooks)
    )
    # This seed draws own, one, one, own: two groups of own in a row would be one start of the server.
    answer = comparing.run("--no-report", "--set", "design.order_seed=2")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "'false' ended with exit status 1" in answer.stderr
    trials = [trial for trial in comparing.newest().trials() if trial.meta["variant"] == "own"]
    assert len(trials) == 2
    for trial in trials:
        assert trial.is_done
        assert trial.server["host"]["rack"] == 7
        assert trial.server["process"]["after"] == {"cpu_user_s": 12.5, "nfs_calls": 7.0}
        assert (trial.path / "hook-during_trial.txt").read_text().startswith("watching connections=2\n")
        assert trial.meta["hooks"]["before_trial"]["exit_status"] == 0
        assert trial.meta["hooks"]["during_trial"]["exit_status"] == 0
    first, second = (trial.server["identity"]["started_unix_s"] for trial in trials)
    assert second - first > 3, "it is another start of the server"
    told = [line.split() for line in diary.read_text().splitlines()]
    assert {variant for _, variant in told} == {"own"}
    # Samples are taken at both edges of the measurement, beside the hook; what one costs is sampled too.
    others = [word for word, _ in told if word != "sample"]
    # The test start, then two groups; a description again when a group is over.
    group = ["start", "describe", "before", "during", "describe", "stop"]
    assert others[:3] == ["start", "describe", "stop"]
    assert others[3:] == [*group, *group]
    assert len(told) - len(others) >= 4
    assert commands.starts() == 3
    # A hook that must work, and does not.
    answer = comparing.run("--no-report", "--set", 'variant[own].server.before_trial=["false"]')
    assert answer.returncode == 4
    assert "the hook before_trial: 'false' ended with exit status 1" in answer.stderr


class Interrupted(Engine):
    """Loads and cleans up; Ctrl-C comes with the first trial."""

    def run(self, command: Any, *rest: Any, **more: Any) -> EngineResult:
        if command == "run":
            raise KeyboardInterrupt
        return super().run(command, *rest, **more)


def test_a_stop_command_that_fails_does_not_hide_what_ended_the_run(
    given: Given, pair: tuple[LocalServer, LocalServer]
) -> None:
    """It works in the test start, and fails once the run is interrupted."""
    test_started = given.folder / "test_started"
    stop = ["sh", "-c", f"test ! -e {test_started} && touch {test_started}"]
    comparing = given.comparing(
        given.table("own", pair[1], "command", more=f"start = ['true']\nstop = {json.dumps(stop)}\n"),
        given.table("one", pair[0]),
    )
    experiment = read(comparing.file, assignments=["design.state=preserve", "design.order_seed=2"])
    run = Run.create(given.results, experiment, b"", None, {})
    told: list[progress.Progress] = []
    with pytest.raises(KeyboardInterrupt):
        compare(experiment, run, told.append, Interrupted())
    assert test_started.exists()
    troubles = [news.text for news in told if isinstance(news, progress.ProblemOccurred)]
    assert troubles
    assert all("own: the stop command failed" in text for text in troubles)
    assert all("run the command yourself" in text for text in troubles)
    assert [tables_of(server) for server in pair] == [set(), set()]
