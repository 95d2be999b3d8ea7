"""What dbdyno changes on servers that it does not start, and how it gets its earlier value back after a kill.

A kill of the process is SIGKILL of the command; for the instants between two steps, the state that such a
process leaves is made by hand.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.end_to_end.comparing import Comparing, environment, refused, wait_until
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.test_compare_reached_postgresql import RIGHTS

from dbdyno.commands.data import Action
from dbdyno.commands.data import data as data_command
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.problem import Problem
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.kinds.remote_changes import StoredChanges, stored_changes
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.url import parse_url
from dbdyno.servers.workspace import Workspace
from dbdyno.terminal.messages import print_problem

EXPERIMENT = """
[experiment]
name = "changing"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 100
[load]
connections = [1]
duration = "500ms"
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
                "UPDATE mysql.global_priv SET Priv = "
                f"JSON_SET(Priv, '$.access', {access}) WHERE User = 'dbdyno'"
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
            self.reload()
        else:
            self.server.query(f"SET GLOBAL {name} = {value}")

    def reload(self) -> None:
        loaded = self.server.query("SELECT pg_conf_load_time()::text")
        self.server.query("SELECT pg_reload_conf()")
        wait_until(lambda: self.server.query("SELECT pg_conf_load_time()::text") != loaded, "it is reloaded")

    def value(self, name: str) -> str:
        if self.product != "postgresql":
            return str(self.server.query(f"SELECT @@GLOBAL.{name}")[0][0])
        # A new connection: a session applies a reload at its next statement.
        self.server.query("SELECT 1")
        return str(self.server.query(f"SELECT current_setting('{name}')")[0][0])

    def state(self) -> Any:
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

    def data(
        self, action: Action, *, yes: bool = True, forget: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """The command within this process, which saves its start."""
        streams = io.StringIO(), io.StringIO()
        with (
            mock.patch.dict(os.environ, {"DBDYNO_PASSWORD": self.password}),
            contextlib.redirect_stdout(streams[0]),
            contextlib.redirect_stderr(streams[1]),
        ):
            try:
                data_command(action, self.url, yes=yes, forget=forget)
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
        server.reload()
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


def change(theirs: Theirs, run: str = "", **parts: str | None) -> StoredChanges:
    """What a killed process has left that has set the variable of `CHANGE`; `parts` of the stored change."""
    name, _, value = CHANGE[theirs.product]
    server = theirs.remote({name: value}, run)
    server.start()
    stored = killed(server)
    (one,) = stored.record.changes
    stored.write(changes=(one.model_copy(update=parts),))
    return stored


ALL = pytest.mark.parametrize("theirs", CHANGE, indirect=True)
MARIADB = pytest.mark.parametrize("theirs", ["mariadb"], indirect=True)

# Variable -> the owner's value in SQL (None: the default), and that of the experiment. Some change others.
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


@pytest.mark.parametrize("theirs", ["mariadb", "postgresql"], indirect=True)
def test_a_killed_comparison_is_found_and_resumed(theirs: Theirs, results: Path, tmp_path: Path) -> None:
    name, before, value = CHANGE[theirs.product]
    at_first = theirs.state()
    text = theirs.experiment(tmp_path, value, before)
    comparing = Comparing(made(results / f"killed-{theirs.product}"), text)

    def in_trial() -> bool:
        tables = theirs.server.query("SELECT 1 FROM information_schema.tables WHERE table_name = 'sbtest1'")
        return bool(tables) and theirs.value(name) == value

    if theirs.product == "mariadb":
        # At the first instant at which it can be seen from outside.
        end(comparing, lambda: theirs.value(name) == value, signal.SIGKILL)
    else:
        end(comparing, in_trial, signal.SIGKILL)
    answer = theirs.data("list")
    change = f"{name} is '{value}', was '{before}'"
    assert (answer.returncode, change in answer.stdout) == (0, True)
    assert f"of the run {comparing.newest().path}" in answer.stdout
    if theirs.product == "mariadb":
        # From another folder of results, without changes, and by another name of the server.
        text = text.replace("set_global = true", "").replace("127.0.0.1", "localhost")
        other = Comparing(made(results / "other"), text)
        refused(other.run("--no-report"), 4, change, "dbdyno data restore --target mysql://dbdyno@localhost")
        assert other.runs() == []
    refused(theirs.data("drop"), 4, change, f"dbdyno data restore --target {theirs.url}")
    assert theirs.value(name) == value
    again = f"{name} has its earlier value '{before}' again"
    if theirs.product == "mariadb":
        # Ctrl-C in the resumed run.
        code = end(comparing, in_trial, signal.SIGINT, "--resume")
        assert code == 130, (comparing.results / "ended.log").read_text()
        assert again in (comparing.results / "ended.log").read_text()
    else:
        answer = comparing.run("--no-report", "--resume")
        assert (answer.returncode, again in answer.stderr) == (0, True), answer.stderr
    assert (theirs.state(), stored_changes()) == (at_first, [])
    theirs.data("drop")


INDEXES = {
    "mariadb": "SELECT 1 FROM information_schema.statistics WHERE index_name = 'by_day'",
    "postgresql": "SELECT 1 FROM pg_indexes WHERE indexname = 'by_day'",
}


@pytest.mark.parametrize(
    "theirs", ["mariadb", pytest.param("postgresql", marks=pytest.mark.long)], indirect=True
)
def test_an_index_on_their_table_is_there_for_its_variant_only(
    theirs: Theirs, results: Path, tmp_path: Path
) -> None:
    query = theirs.server.query
    place = "dbdyno." if theirs.product == "mariadb" else ""
    query(f"CREATE TABLE {place}orders (id INT PRIMARY KEY, day INT NOT NULL)")
    query(f"INSERT INTO {place}orders VALUES {', '.join(f'({i}, {i % 50})' for i in range(2_000))}")
    rows = f"SELECT COUNT(*), SUM(day) FROM {place}orders"
    if theirs.product == "postgresql":
        query("ALTER TABLE orders OWNER TO dbdyno")
    before = query(rows)
    text = theirs.experiment(tmp_path, "1", "2").replace("set_global = true\n", "")
    text = re.sub(r"variables = .*\n", "", text).replace('name = "changing"', 'name = "index"')
    text = re.sub(
        r"\[\[workload\]\].*?\[load\]\n",
        '[[workload]]\nname = "sql"\n[workload.parameters]\nd = "uniform(0, 49)"\n[[workload.transactions]]\n'
        'sql = "SELECT COUNT(*) FROM orders WHERE day = :d"\n[load]\n',
        text,
        flags=re.DOTALL,
    )
    text += '[variant.data]\nafter = ["CREATE INDEX by_day ON orders (day)"]\n'
    comparing = Comparing(made(results / f"index-{theirs.product}"), text)

    refusal = comparing.run("--no-report")
    assert refusal.returncode == 4
    assert "P28 v1: sql writes to tables that dbdyno has not created: orders (data.after)" in refusal.stderr
    assert not query(INDEXES[theirs.product])

    allowed = ("--set", "load.writes=replay")
    end(comparing, lambda: query(INDEXES[theirs.product]), signal.SIGKILL, *allowed)
    answer = theirs.data("list")
    assert "CREATE INDEX by_day ON orders (day)" in answer.stdout, answer
    if theirs.product == "mariadb":
        restored = theirs.data("restore")
        assert (restored.returncode, "undone: CREATE INDEX by_day" in restored.stderr) == (0, True), restored
    answer = comparing.run("--no-report", "--resume", *allowed)
    assert answer.returncode == 0, answer.stderr
    blocks = [trial.meta["block"] for trial in comparing.newest().trials() if trial.is_done]
    assert sorted(blocks) == [0, 0, 1, 1]
    assert not query(INDEXES[theirs.product])
    assert query(rows) == before

    # An index of this name that is the owner's stays.
    query(f"CREATE INDEX by_day ON {place}orders (day)")
    answer = comparing.run("--no-report", *allowed)
    assert answer.returncode == 2
    assert "orders has an index by_day already" in answer.stderr
    assert query(INDEXES[theirs.product])
    query(f"DROP TABLE {place}orders")


def made(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


def end(comparing: Comparing, is_due: Callable[[], object], number: signal.Signals, *arguments: str) -> int:
    """Start the command, and end it by a signal when it `is_due`. Returns its exit code.

    SIGKILL goes to what it has started too, so that nothing of it writes later.
    """
    log = comparing.results / "ended.log"
    with log.open("w") as file:
        command = comparing.command("--no-report", *arguments)
        process = subprocess.Popen(
            command, stdout=file, stderr=file, env=environment(), start_new_session=True
        )
    deadline = time.monotonic() + 60.0
    try:
        while not is_due():
            if process.poll() is not None:
                assert process.returncode == 0, log.read_text()
                break
            assert time.monotonic() < deadline
            time.sleep(0.001)
        if number != signal.SIGKILL:
            process.send_signal(number)
            return process.wait(60.0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    return process.returncode


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
    if theirs.product == "postgresql":
        # ALTER SYSTEM moves an entry to the end of the file.
        assert sorted(theirs.state()[0].splitlines()) == sorted(before[0].splitlines())
        assert theirs.state()[1] == before[1]
    else:
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


@ALL
def test_a_process_that_ends_between_two_steps(theirs: Theirs) -> None:
    name, before, value = CHANGE[theirs.product]
    earlier = f"'{before}'" if theirs.product == "postgresql" else before
    # The value is stored, and not yet set. Nothing is to undo, so nothing is refused.
    change(theirs, state="planned", after=None)
    theirs.set(name, earlier)
    with closing(theirs.remote({})) as server:
        server.start()
    assert (server.notes, stored_changes()) == ([f"{name} has its earlier value '{before}' already"], [])
    # Set, and what the server has made of it is not stored.
    change(theirs, state="planned", after=None)
    answer = theirs.data("restore")
    assert (answer.returncode, stored_changes(), theirs.value(name)) == (0, [], before)
    # In force.
    change(theirs)
    with pytest.raises(ServerProblem, match=f"{name} is '{value}', was '{before}'") as caught:
        theirs.remote({}).start()
    fix = f"restore them: dbdyno data restore --target {theirs.url}"
    assert (caught.value.exit_code, caught.value.fix) == (4, fix)
    assert "needs your confirmation" in theirs.data("restore", yes=False).stderr
    assert theirs.value(name) == value
    answer = theirs.data("restore")
    assert (answer.returncode, stored_changes(), theirs.value(name)) == (0, [], before)
    # Restored, and the file is not yet removed.
    change(theirs)
    theirs.set(name, earlier)
    answer = theirs.data("restore")
    assert (answer.returncode, stored_changes(), theirs.value(name)) == (0, [], before)
    assert "already" in answer.stderr
    # The run that has made the change restores it itself.
    change(theirs, run="/a/run")
    with closing(theirs.remote({name: value}, run="/a/run")) as server:
        server.start()
        assert (server.notes, theirs.value(name)) == (
            [f"{name} has its earlier value '{before}' again"],
            value,
        )
    assert theirs.data("list").stdout == ""


@ALL
def test_a_value_that_somebody_has_set_since_stays(theirs: Theirs) -> None:
    name, before, _ = CHANGE[theirs.product]
    third, text = ("'5MB'", "5MB") if theirs.product == "postgresql" else ("444", "444")
    for is_confirmed in (True, False):
        stored = change(theirs)
        if not is_confirmed:
            (one,) = stored.record.changes
            stored.write(changes=(one.model_copy(update={"state": "planned", "after": None}),))
        theirs.set(name, third)
        answer = theirs.data("restore")
        told = f"{name} is '{text}'"
        assert (answer.returncode, told in answer.stderr, theirs.value(name)) == (4, True, text)
        assert f"It was '{before}' before" in answer.stderr
        assert [len(one.record.changes) for one in stored_changes()] == [1]
        answer = theirs.data("restore", forget=True)
        assert (answer.returncode, stored_changes(), theirs.value(name)) == (0, [], text)
        theirs.set(name, f"'{before}'" if theirs.product == "postgresql" else before)
    # It was changed while the run that has set it went on.
    server = theirs.remote({name: CHANGE[theirs.product][2]})
    server.start()
    theirs.set(name, third)
    with pytest.raises(ServerProblem, match="another user may have set it since"):
        server.close()
    theirs.set(name, f"'{before}'" if theirs.product == "postgresql" else before)
    assert theirs.data("restore").returncode == 0


@pytest.mark.long
@pytest.mark.parametrize("theirs", ["mysql", "postgresql"], indirect=True)
def test_kills_at_many_instants(theirs: Theirs, results: Path, tmp_path: Path) -> None:
    """One run, killed again and again, later and later, and resumed until it is complete."""
    value = CHANGE[theirs.product][2]
    at_first = theirs.state()
    comparing = Comparing(
        made(results / f"often-{theirs.product}"), theirs.experiment(tmp_path, value, "4567kB")
    )
    if theirs.product == "mysql":
        comparing.file.write_text(comparing.file.read_text().replace("4567kB", "444"))
    changed, resume = 0, list[str]()
    log = comparing.results / "ended.log"
    for number in range(12):
        due: list[float] = []

        def is_due(after_s: float = 0.3 * number, due: list[float] = due) -> bool:
            """This time after the command has begun to use the server."""
            if not due and "to verify settings" in log.read_text():
                due.append(time.monotonic() + after_s)
            return bool(due) and time.monotonic() >= due[0]

        end(comparing, is_due, signal.SIGKILL, *resume)
        is_changed = theirs.state() != at_first
        changed += is_changed
        # What differs from the owner's values is always stored.
        assert stored_changes() or not is_changed
        resume = ["--resume"] if comparing.runs() else []
    assert changed > 0
    answer = comparing.run("--no-report", *resume)
    assert (answer.returncode, theirs.state(), stored_changes()) == (0, at_first, [])
    theirs.data("drop")


@MARIADB
def test_one_process_at_a_time_changes_a_server(theirs: Theirs) -> None:
    name, before, value = CHANGE[theirs.product]
    with closing(theirs.remote({name: value})) as server:
        server.start()
        for variables in ({}, {name: "444"}):
            with pytest.raises(ServerProblem, match="changed for another measurement") as caught:
                theirs.remote(variables).start()
            assert caught.value.exit_code == 4
        assert theirs.data("restore").returncode == theirs.data("restore", forget=True).returncode == 4
        assert "a measurement in progress uses these values" in theirs.data("list").stderr
        # Another group of the same variant.
        server.start()
        assert theirs.value(name) == value
        (stored,) = stored_changes()
        text = stored.path.read_text()
        assert theirs.password not in text
        assert (stored.path.stat().st_mode & 0o777, stored.path.parent.stat().st_mode & 0o777) == (
            0o600,
            0o700,
        )
    assert theirs.value(name) == before
    assert list(stored.path.parent.iterdir()) == []


@MARIADB
def test_another_server_at_the_url_and_none(theirs: Theirs) -> None:
    name, before, _ = CHANGE[theirs.product]
    stored = change(theirs)
    theirs.set(name, before)
    stored.write(identity={**stored.record.identity, "datadir": "/another/"})
    with closing(theirs.remote({})) as server:
        server.start()
    (note,) = server.notes
    assert note.startswith(f"dbdyno has changed {name} on another server that had the URL {theirs.url}, by")
    answer = theirs.data("restore")
    assert (answer.returncode, note in answer.stderr, len(stored_changes())) == (0, True, 1)
    with mock.patch.object(theirs, "url", "mysql://dbdyno@127.0.0.1:1/dbdyno"):
        assert theirs.data("restore").returncode == 3
        stored.write(url=theirs.url)
        answer = theirs.data("restore")
        assert answer.returncode == 4
        assert f"{name} was '{before}' (SET GLOBAL {name} = {before})" in answer.stderr
        answer = theirs.data("restore", forget=True)
        assert (answer.returncode, answer.stderr, stored_changes()) == (0, f"forgotten: {name}\n", [])


@MARIADB
def test_what_is_stored_first_must_be_stored(theirs: Theirs, tmp_path: Path) -> None:
    name, before, value = CHANGE[theirs.product]
    (tmp_path / "file").write_text("")
    with (
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": str(tmp_path / "file")}),
        pytest.raises(ServerProblem, match="stores what it changes on servers: Not a directory"),
    ):
        theirs.remote({name: value}).start()
    assert theirs.value(name) == before
    folder = tmp_path / "dbdyno" / "server-changes"
    folder.mkdir(parents=True)
    (folder / "broken.json").write_text("{}")
    with (
        mock.patch.dict(os.environ, {"XDG_STATE_HOME": str(tmp_path)}),
        pytest.raises(
            ServerProblem, match="json, which says what dbdyno has changed on a server, is invalid"
        ),
    ):
        theirs.remote({}).start()
    with pytest.raises(ServerProblem, match="may contain a password"):
        theirs.remote({"report_password": "x"}).start()


@pytest.mark.parametrize("theirs", ["postgresql"], indirect=True)
def test_an_account_that_may_not_reload_the_configuration(theirs: Theirs) -> None:
    name, before, value = CHANGE[theirs.product]
    query, may_reload = theirs.server.query, "EXECUTE ON FUNCTION pg_reload_conf()"
    query("ALTER ROLE dbdyno NOSUPERUSER")
    for right in RIGHTS:
        if may_reload not in right:
            query(right)
    try:
        with pytest.raises(ServerProblem, match=r"may not call pg_reload_conf\(\)"):
            theirs.remote({name: value}).start()
        assert (stored_changes(), theirs.value(name)) == ([], before)
        query(f"GRANT {may_reload} TO dbdyno")
        server = theirs.remote({name: value})
        server.start()
        query(f"REVOKE {may_reload} FROM dbdyno")
        with pytest.raises(ServerProblem, match=f"{name} was '{before}', and dbdyno could not restore it"):
            server.close()
        assert (len(stored_changes()), theirs.value(name)) == (1, value)
        # The file has the earlier value again, which the server has not read.
        assert theirs.data("restore").returncode == 4
        query(f"GRANT {may_reload} TO dbdyno")
        assert theirs.data("restore").returncode == 0
    finally:
        for right in RIGHTS:
            query(right.replace("GRANT", "REVOKE").replace(" TO ", " FROM "))
        query("ALTER ROLE dbdyno SUPERUSER")


def test_a_restart_of_the_server_ends_its_changes(workspace: Workspace) -> None:
    spec = ServerSpec(
        product="mariadb",
        variables={"innodb_buffer_pool_size": "64M", "innodb_io_capacity": 260},
    )
    with closing(LocalServer(Variant(name="restarted", server=spec), workspace, None)) as server:
        server.start()
        theirs = Theirs("mariadb", server)
        theirs.set("innodb_io_capacity", "250")
        stored = change(theirs)
        server.stop(clean=True)
        server.start()
        theirs = Theirs("mariadb", server)
        # The start was a second ago, or less; the tolerance is that of clocks.
        stored.write(started_unix_s=(stored.record.started_unix_s or 0) - 10, connection=10_000)
        with closing(theirs.remote({})) as remote:
            remote.start()
        assert (stored_changes(), theirs.value("innodb_io_capacity")) == ([], "260")
        (note,) = remote.notes
        assert "the server has restarted since, so '260' is from its configuration, and stays" in note
