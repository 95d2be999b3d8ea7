"""What dbdyno changes on servers that it does not start, and how it gets its earlier value back after a kill.

A kill of the process is SIGKILL of the command; for the instants between two steps, the state that such a
process leaves is made by hand.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest
from tests.end_to_end.comparing import Comparing, environment, refused
from tests.end_to_end.mysql_server import MySQLServer

from dbdyno.cli.data import data as data_command
from dbdyno.commands.choices import Action
from dbdyno.commands.formatting import print_problem
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.problem import Problem
from dbdyno.servers.changes import StoredChanges, stored_changes
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.url import parse_url
from dbdyno.servers.workspace import Workspace

EXPERIMENT = """
[experiment]
name = "changing"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 100
[load]
connections = [1]
duration = "300ms"
warmup = "0s"
[client]
workers = 1
[design]
repeat_disturbed = false
blocks = 2
state = "preserve"
pairing = "trials"
"""
# A variable, the earlier value, and what the experiment sets.
CHANGE = {
    "mariadb": ("innodb_io_capacity", "250", "333"),
    "mysql": ("innodb_io_capacity", "250", "333"),
    "postgresql": ("work_mem", "3MB", "8MB"),
}


class Theirs:
    """A server that somebody else has started, with an account that may change its variables."""

    def __init__(self, product: str, server: LocalServer | MySQLServer) -> None:
        self.product, self.server = product, server
        self.protocol = "postgresql" if product == "postgresql" else "mysql"
        address = server.address()
        self.password = address.password
        self.url = f"{self.protocol}://dbdyno@127.0.0.1:{address.port}/dbdyno"
        if product == "postgresql":
            server.query("ALTER ROLE dbdyno SUPERUSER")
        elif product == "mysql":
            server.query("GRANT ALL ON *.* TO dbdyno@'%'")
        else:
            # The lab's administrator may not GRANT.
            rights = server.query("SELECT Priv FROM mysql.global_priv WHERE User = 'dbdyno_admin'")
            access = json.loads(rights[0][0])["access"]
            server.query(
                f"UPDATE mysql.global_priv SET Priv = JSON_SET(Priv, '$.access', {access}) WHERE User = 'dbdyno'"
            )
            server.query("FLUSH PRIVILEGES")

    def remote(self, variables: Mapping[str, object], run: str = "", url: str = "") -> RemoteServer:
        spec = ServerSpec.model_validate(
            {"kind": "remote", "url": self.url, "set_global": bool(variables), "variables": dict(variables)}
        )
        return RemoteServer(parse_url(url or self.url), Password(self.password), "theirs", spec, run)

    def set(self, name: str, value: str) -> None:
        """As the owner does it; `value` is in SQL."""
        if self.product == "postgresql":
            self.server.query(f"ALTER SYSTEM SET {name} = {value}")
            self.server.query("SELECT pg_reload_conf()")
            time.sleep(0.1)
        else:
            self.server.query(f"SET GLOBAL {name} = {value}")

    def value(self, name: str) -> str:
        if self.product != "postgresql":
            return str(self.server.query(f"SELECT @@GLOBAL.{name}")[0][0])
        # A new connection: a session applies a reload at its next statement.
        self.server.query("SELECT 1")
        return str(self.server.query(f"SELECT current_setting('{name}')")[0][0])

    def state(self) -> object:
        """Everything that a change may leave."""
        if self.product != "postgresql":
            rows = self.server.query("SHOW GLOBAL VARIABLES")
            return {name: value for name, value in rows if "gtid" not in name and name != "timestamp"}
        (folder,) = self.server.query("SHOW data_directory")[0]
        settings = self.server.query("SELECT name, setting FROM pg_settings ORDER BY 1")
        return (Path(folder) / "postgresql.auto.conf").read_bytes(), settings

    def experiment(self, tmp_path: Path, *values: object) -> str:
        """Two variants of this server; each sets the variable to one of the values."""
        name, _, _ = CHANGE[self.product]
        secret = tmp_path / "password"
        secret.write_text(self.password)
        secret.chmod(0o600)
        text = EXPERIMENT
        for number, value in enumerate(values):
            text += f"""
[[variant]]
name = "v{number}"
[variant.server]
kind = "remote"
url = "{self.url}"
password_file = "{secret}"
set_global = true
variables = {{ {name} = "{value}" }}
"""
        return text

    def data(self, action: str, *, yes: bool = True, forget: bool = False) -> subprocess.CompletedProcess[str]:
        """The command within this process, which saves its start."""
        streams = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, {"DBDYNO_PASSWORD": self.password}),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
        ):
            try:
                data_command(Action(action), self.url, yes=yes, forget=forget)
                code = 0
            except Problem as problem:
                print_problem(problem)
                code = problem.exit_code
        return subprocess.CompletedProcess((), code, *(stream.getvalue() for stream in streams))


@pytest.fixture(scope="module")
def mariadb_of_others(workspace: Workspace) -> Iterator[Theirs]:
    spec = ServerSpec(product="mariadb", variables={"innodb_buffer_pool_size": "64M"})
    with closing(LocalServer(Variant(name="their mariadb", server=spec), workspace, None)) as server:
        server.start()
        yield Theirs("mariadb", server)


@pytest.fixture(scope="module")
def postgresql_of_others(workspace: Workspace) -> Iterator[Theirs]:
    spec = ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"})
    with closing(LocalServer(Variant(name="their postgresql", server=spec), workspace, None)) as server:
        server.start()
        yield Theirs("postgresql", server)


@pytest.fixture(scope="module")
def mysql_of_others(mysql: MySQLServer) -> Iterator[Theirs]:
    yield Theirs("mysql", mysql)
    mysql.sql("REVOKE ALL ON *.* FROM dbdyno@'%'")
    mysql.sql("GRANT ALL ON dbdyno.* TO dbdyno@'%'")


@pytest.fixture
def theirs(request: pytest.FixtureRequest) -> Iterator[Theirs]:
    """A server whose variable of `CHANGE` has a value that its owner has set; nothing is left on it."""
    server: Theirs = request.getfixturevalue(f"{request.param}_of_others")
    name, before, _ = CHANGE[server.product]
    was = server.value(name)
    server.set(name, f"'{before}'" if server.product == "postgresql" else before)
    at_first = server.state()
    yield server
    assert (server.state(), stored_changes()) == (at_first, [])
    if server.product == "postgresql":
        server.server.query(f"ALTER SYSTEM RESET {name}")
        server.server.query("SELECT pg_reload_conf()")
    else:
        server.set(name, was)


def killed(server: RemoteServer) -> StoredChanges:
    """What a process leaves that is killed while its changes are in force."""
    stored = server.changes._own
    assert stored is not None
    stored.release()
    server.changes._own = None
    server.close()
    return stored


ALL = pytest.mark.parametrize("theirs", CHANGE, indirect=True)
MARIADB = pytest.mark.parametrize("theirs", ["mariadb"], indirect=True)

# Variable -> the owner's value in SQL (None: the default), and that of the experiment. Some change others along.
ROUND_TRIPS: Mapping[str, Mapping[str, tuple[str | None, object]]] = {
    "mysql": {
        "sql_mode": ("'ANSI,NO_BACKSLASH_ESCAPES'", ""),
        "optimizer_switch": (None, "index_merge=off,mrr=off"),
        "init_connect": (r"'SELECT ''\\\\ä\"'''", "SELECT 1"),
        "innodb_max_dirty_pages_pct": ("75.5", 60),
        "long_query_time": ("0.000125", "2"),
        "innodb_io_capacity": ("250", 50_000),
        "collation_server": ("utf8mb4_unicode_ci", "utf8mb4_bin"),
        "character_set_server": (None, "latin1"),
        "collation_database": ("utf8mb4_unicode_ci", "utf8mb4_bin"),
        "slow_query_log": ("OFF", True),
        "innodb_ft_server_stopword_table": (None, "dbdyno/stop_words"),
        "max_allowed_packet": (None, "32M"),
        "innodb_buffer_pool_size": (None, "128M"),
        "binlog_row_image": ("MINIMAL", "full"),
        "super_read_only": ("OFF", True),
        "tmp_table_size": ("1048577", "16MiB"),
        "transaction_isolation": ("'READ-UNCOMMITTED'", "SERIALIZABLE"),
        "ft_boolean_syntax": (None, "+ -><()~*:\"\"&/"),
        "innodb_redo_log_capacity": (None, "32M"),
        "max_binlog_cache_size": (None, "8G"),
    },
    "mariadb": {
        "sql_mode": ("'ORACLE'", "TRADITIONAL"),
        "optimizer_switch": (None, "mrr=on"),
        "init_connect": (r"'SELECT ''\\\\ä\"'''", "SELECT 1"),
        "innodb_max_dirty_pages_pct": ("75.5", 60),
        "long_query_time": ("0.000125", "2"),
        "innodb_io_capacity": ("250", 50_000),
        "collation_server": ("utf8mb4_unicode_ci", "utf8mb4_bin"),
        "character_set_server": (None, "latin1"),
        "slow_query_log": ("OFF", True),
        "innodb_ft_server_stopword_table": (None, "dbdyno/stop_words"),
        "max_allowed_packet": (None, "32M"),
        "concurrent_insert": ("'NEVER'", "ALWAYS"),
        "tmp_table_size": ("1048576", "16MiB"),
        "innodb_flush_log_at_trx_commit": ("2", 0),
        "optimizer_disk_read_ratio": (None, 0.5),
        "log_slow_filter": ("''", "admin,filesort"),
        "use_stat_tables": ("'never'", "complementary"),
        "max_statement_time": (None, 2.5),
        "innodb_encrypt_tables": ("OFF", "OFF"),
    },
    "postgresql": {
        "work_mem": ("'1234kB'", "64MB"),
        "log_line_prefix": (r"'it''s %m \ \n '", "%p ''"),
        "search_path": ("'$user', 'Ta\"ble', public", '"$user", other'),
        "temp_tablespaces": (None, "pg_default"),
        "datestyle": ("'ISO, DMY'", "SQL, MDY"),
        "deadlock_timeout": ("'1500ms'", "2s"),
        "random_page_cost": ("1.1", 2),
        "autovacuum": ("off", True),
        "checkpoint_completion_target": (None, 0.5),
        "session_preload_libraries": (None, "auto_explain"),
        "log_destination": (None, "stderr"),
        "TimeZone": (None, "Asia/Seoul"),
    },
}  # fmt: skip


@ALL
def test_every_kind_of_value_gets_its_earlier_value_back(theirs: Theirs) -> None:
    """Each alone, by a normal end and by another process; and all together."""
    known = {name for name, *_ in theirs.server.query(
        "SELECT name FROM pg_settings" if theirs.product == "postgresql" else "SHOW GLOBAL VARIABLES"
    )} | {"datestyle"}  # fmt: skip
    table = {name: values for name, values in ROUND_TRIPS[theirs.product].items() if name in known}
    assert len(table) > len(ROUND_TRIPS[theirs.product]) - 3
    if theirs.product != "postgresql":
        theirs.server.query("CREATE TABLE dbdyno.stop_words (value VARCHAR(30)) ENGINE = InnoDB")
    at_first = {name: theirs.value(name) for name in table}
    entries = theirs.state()
    wrong: list[object] = []
    for name, (owners, value) in table.items():
        if owners is not None:
            theirs.set(name, owners)
        before = theirs.state()
        with closing(theirs.remote({name: value})) as server:
            server.start()
            changed = theirs.state()
        if theirs.state() != before or (changed == before and name != "innodb_encrypt_tables"):
            wrong.append((name, "normal end", changed == before))
        server = theirs.remote({name: value})
        server.start()
        killed(server)
        answer = theirs.data("restore")
        if theirs.state() != before or answer.returncode or stored_changes():
            wrong.append((name, answer.stderr))
            theirs.data("restore", forget=True)
    assert wrong == []
    before = theirs.state()
    with closing(theirs.remote({name: value for name, (_, value) in table.items()})) as server:
        server.start()
        killed(server)
    assert theirs.data("restore").returncode == 0
    if theirs.product != "postgresql":
        assert theirs.state() == before
        theirs.server.query("DROP TABLE dbdyno.stop_words")
        for name, (owners, _) in table.items():
            if owners is not None:
                theirs.set(name, _sql(at_first[name]))
        return
    for name, (owners, _) in table.items():
        if owners is not None and name != "work_mem":
            theirs.server.query(f"ALTER SYSTEM RESET {name}")
    theirs.set("work_mem", "'3MB'")
    assert theirs.state() == entries


def _sql(text: str) -> str:
    try:
        float(text)
    except ValueError:
        return "'" + text.replace("'", "''") + "'"
    return text
