"""Private MariaDB servers for real: configuration, isolation, life and death."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psutil
import pymysql
import pytest
from tests.conftest import variant

from dbdyno.servers import ports
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.process import _CPUS_AT_START
from dbdyno.servers.server import Address, ServerProblem
from dbdyno.servers.snapshots.slots import Slots
from dbdyno.servers.workspace import Workspace

Started = Callable[..., LocalServer]


def connect(address: Address, **how: object) -> pymysql.connections.Connection:
    return pymysql.connect(user=address.user, password=address.password, database=address.database, **how)


def test_the_load_has_an_ordinary_account_over_both_transports(mariadb: LocalServer) -> None:
    address = mariadb.address()
    for how in ({"host": address.host, "port": address.port}, {"unix_socket": address.unix_socket}):
        with closing(connect(address, **how)) as connection, connection.cursor() as cursor:
            cursor.execute("SHOW GRANTS")
            grants = [row[0].partition(" IDENTIFIED")[0].partition(" TO ")[0] for row in cursor.fetchall()]
            assert grants == ["GRANT USAGE ON *.*", "GRANT ALL PRIVILEGES ON `dbdyno`.*"]
            cursor.execute("CREATE TABLE mine (a INT) ENGINE=InnoDB")
            cursor.execute("DROP TABLE mine")
            with pytest.raises(pymysql.err.OperationalError):
                cursor.execute("SET GLOBAL max_connections = 5")


def test_nobody_gets_in_without_a_password(mariadb: LocalServer) -> None:
    users = {row[0] for row in mariadb.query("SELECT User FROM mysql.user")}
    assert users == {"dbdyno", "dbdyno_admin", "mariadb.sys"}
    for user in ("root", "", "dbdyno"):
        with pytest.raises(pymysql.err.OperationalError, match=r"denied|not allowed"):
            pymysql.connect(host="127.0.0.1", port=mariadb.address().port, user=user)


def test_it_says_who_it_is(mariadb: LocalServer) -> None:
    description = mariadb.describe()
    identity = description.identity
    process = psutil.Process(identity["pid"])
    assert description.product == "mariadb"
    assert "MariaDB" in description.version
    assert description.variables["version"] == description.version
    assert description.variables["datadir"].rstrip("/") == identity["datadir"]
    assert description.variables["port"] == str(identity["port"])
    assert description.declared["innodb_buffer_pool_size"] == "64M"
    assert process.uids().real != 0
    assert abs(process.create_time() * 1e6 - identity["start_unix_us"]) < 2e4
    # What was raised for the harness is really in force, or it would only be claimed.
    assert description.origins["innodb_buffer_pool_size"] == "config"
    for name, value in description.set_by_dbdyno.items():
        assert description.variables[name] == value, name
    listening = {c.laddr.ip for c in process.net_connections("tcp") if c.status == "LISTEN"}
    assert listening == {"127.0.0.1"}
    use = mariadb.process()
    assert {
        "cpu_user_s",
        "cpu_system_s",
        "context_switches",
        "rss_bytes",
        "cpu_wait_s",
        "read_bytes",
        "write_bytes",
    } <= use.keys()
    assert use["rss_bytes"] > 10_000_000


def test_passwords_are_in_no_file_and_no_argument(mariadb: LocalServer, workspace: Workspace) -> None:
    secrets = (mariadb.address().password, mariadb._admin_password)
    command = " ".join(psutil.Process(mariadb.describe().identity["pid"]).cmdline())
    own = Path(mariadb.describe().identity["datadir"]).parent
    files = [path for path in own.iterdir() if path.is_file()]
    assert {path.name for path in files} == {".dbdyno", "error.log", "server.cnf", "server.pid"}
    for text in (command, repr(mariadb.address()), *(path.read_text() for path in files)):
        assert not any(secret in text for secret in secrets)


def test_administration_does_not_wait_for_a_full_thread_pool(started: Started) -> None:
    variables = {"thread_handling": "pool-of-threads", "thread_pool_size": 1, "thread_pool_max_threads": 2}
    server = started("pool", variables=variables)
    address = server.address()
    sleepers = [connect(address, host=address.host, port=address.port, read_timeout=20) for _ in range(6)]
    for connection in sleepers:
        connection._execute_command(3, "SELECT SLEEP(15)")
    began = time.monotonic()
    assert server.query("SELECT 1") == [(1,)]
    assert int(server.status()["Threads_connected"]) >= len(sleepers)
    assert time.monotonic() - began < 5
    for connection in sleepers:
        connection._force_close()


def test_cpus_are_set_before_the_server_counts_them(started: Started) -> None:
    cpu = max(_CPUS_AT_START)
    server = started("pinned", cpus=str(cpu), variables={"thread_handling": "pool-of-threads"})
    description = server.describe()
    assert psutil.Process(description.identity["pid"]).cpu_affinity() == [cpu]
    assert description.variables["thread_pool_size"] == "1"
    assert description.identity["cpus"] == str(cpu)


def test_a_lab_on_its_own_cpu_does_not_pull_a_server_along(started: Started) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        server = started("free")
        assert set(psutil.Process(server.describe().identity["pid"]).cpu_affinity()) == set(_CPUS_AT_START)
    finally:
        os.sched_setaffinity(0, before)


def test_the_users_own_file_arguments_and_statements_reach_the_server(
    started: Started, tmp_path: Path
) -> None:
    config = tmp_path / "my.cnf"
    config.write_text(
        "[mysqld]\nmax_connections = 123\nsort_buffer_size = 1M\ndatadir = /nowhere\n[client]\nport = 1\n"
    )
    server = started(
        "own",
        config=config,
        variables={"sort_buffer_size": "512KiB", "innodb_flush_sync": False},
        arguments=("--log-warnings=1",),
        init_sql=("SET GLOBAL long_query_time = 7",),
    )
    description = server.describe()
    wanted = {
        "max_connections": "123",
        "sort_buffer_size": "524288",
        "innodb_flush_sync": "OFF",
        "log_warnings": "1",
        "long_query_time": "7.000000",
    }
    assert {name: description.variables[name] for name in wanted} == wanted
    assert description.declared["max_connections"] == "123"
    assert "max_connections" not in description.set_by_dbdyno
    assert "datadir" not in description.declared


@pytest.mark.parametrize(
    ("spec", "told", "exit_code"),
    [
        (
            {"variables": {"max_conections": 5, "inodb_page_size": "8k"}},
            [
                "'max_conections' (did you mean 'max_connections'?)",
                "'inodb_page_size' (did you mean 'innodb_page_size'?)",
            ],
            2,
        ),
        ({"variables": {"thread_handling": "blah"}}, ["refuses the value 'blah' for 'thread_handling'"], 2),
        (
            {"variables": {"innodb_buffer_pool_size": "9000G"}},
            ["not enough memory for a buffer pool of 9000G"],
            2,
        ),
        ({"arguments": ("--plugin-load-add=nosuch",)}, ["ignored a declared setting", "nosuch.so"], 2),
        ({"init_sql": ("NONSENSE",)}, ["init_sql of 'bad'", "'NONSENSE'"], 2),
        ({"cpus": "8191"}, ["this machine has no CPU 8191"], 2),
        (
            {"basedir": Path("/usr/share")},
            ["mariadbd is neither in this folder nor in its subfolders"],
            2,
        ),
    ],
)
def test_a_variant_that_cannot_be_served_is_told_why(
    workspace: Workspace, spec: dict[str, object], told: list[str], exit_code: int
) -> None:
    with (
        pytest.raises(ServerProblem) as caught,
        closing(LocalServer(variant("bad", **spec), workspace, None)) as server,
    ):
        server.start()
    assert all(part in caught.value.text for part in told), caught.value.text
    assert caught.value.exit_code == exit_code
    assert not (workspace.base / "servers" / "bad").exists()


def test_a_missing_program_names_the_package(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.servers.sources.programs.SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ServerProblem, match="mariadbd is not installed") as caught:
        LocalServer(variant("missing"), workspace, None)
    assert "mariadb-server-core" in caught.value.fix


def test_a_port_in_use_is_told_and_a_free_one_is_used(started: Started) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ServerProblem, match=f"port {port} on 127.0.0.1 is in use") as caught:
            started("taken", variables={"port": port})
        assert caught.value.exit_code == 3
    assert started("taken", variables={"port": port}).address().port == port


def test_stop_and_start_keep_data_and_place(started: Started) -> None:
    server = started("kept")
    before = server.describe().identity
    server.query("CREATE TABLE dbdyno.t AS SELECT 7 AS a")
    server.stop(clean=True)
    server.stop(clean=True)
    assert server.stop_seconds is not None
    assert 0 < server.stop_seconds < 60
    assert server.process() == {}
    with pytest.raises(ServerProblem, match="is not running"):
        server.query("SELECT 1")
    server.start()
    after = server.describe().identity
    assert server.query("SELECT a FROM dbdyno.t") == [(7,)]
    assert {key: before[key] for key in ("datadir", "socket", "port")} == {
        key: after[key] for key in ("datadir", "socket", "port")
    }
    assert after["pid"] != before["pid"]
    server.stop(clean=False)
    server.restore()
    server.start()
    with pytest.raises(ServerProblem, match="doesn't exist"):
        server.query("SELECT a FROM dbdyno.t")


def test_servers_exchange_their_places_and_leave_no_data_there(workspace: Workspace) -> None:
    with contextlib.ExitStack() as stack:
        slots = stack.enter_context(closing(Slots(workspace, 2)))
        first, second = (
            stack.enter_context(closing(LocalServer(variant(name), workspace, None)))
            for name in ("moves", "moves to another place")
        )
        seen = []
        for server, number in ((first, 0), (second, 1), (first, 1), (second, 0), (second, 0)):
            place = slots.assign(number, server)
            server.restore()
            server.start()
            assert server.query("SHOW TABLES FROM dbdyno") == []
            server.query("CREATE TABLE dbdyno.t (a INT)")
            assert server.variables()["datadir"] == f"{place['datadir']}/"
            assert server.variables()["port"] == str(place["port"]) == str(slots[number].port)
            assert server.describe().identity["socket"] == place["socket"]
            server.stop(clean=False)
            seen.append(place)
        assert seen[0] == seen[3] == seen[4] != seen[1] == seen[2]
        # Of the places they began in nothing is left, of the others the last tenant's data.
        assert not list((workspace.base / "servers").glob("moves*"))
        assert [(slots[number].directory / "data").exists() for number in (0, 1)] == [True, True]
        first.start()
        with pytest.raises(AssertionError, match="previous server has stopped"):
            slots.assign(1, second)
        first.stop(clean=False)
        slots.assign(1, second)
        assert [(slots[number].directory / "data").exists() for number in (0, 1)] == [False, False]
    assert not list((workspace.base / "servers").glob("*slot*"))


def test_a_declared_port_stays_in_every_place(workspace: Workspace) -> None:
    port = ports.reserve_pair("declared", None)[0]
    ports.release("declared")
    with (
        closing(Slots(workspace, 2, [port])) as slots,
        closing(LocalServer(variant("declared", variables={"port": port}), workspace, None)) as server,
    ):
        assert [slots.assign(number, server)["port"] for number in (0, 1)] == [port, port]


def test_a_server_that_dies_is_explained(started: Started) -> None:
    server = started("dies")
    psutil.Process(server.describe().identity["pid"]).kill()
    time.sleep(0.2)
    with pytest.raises(ServerProblem, match=r"dies: the MariaDB server ended \(exit status -9\)") as caught:
        server.status()
    assert caught.value.exit_code == 4


def test_close_leaves_nothing(workspace: Workspace) -> None:
    server = LocalServer(variant("leaves nothing"), workspace, None)
    server.start()
    pid, directory = server.describe().identity["pid"], workspace.base / "servers" / "leaves-nothing"
    assert directory.exists()
    server.close()
    server.close()
    assert not psutil.pid_exists(pid)
    assert not directory.exists()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_server_outlives_the_command(results: Path, end: signal.Signals) -> None:
    code = f"""
import sys, time
from pathlib import Path
sys.path[:0] = {[str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "lab")]!r}
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace
from tests.conftest import variant
server = LocalServer(variant("orphan"), Workspace.open(Path({str(results / "orphans")!r})), None)
server.start()
print(server.describe().identity["pid"], flush=True)
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as lab:
        assert lab.stdout is not None
        pid = int(lab.stdout.readline())
        server = psutil.Process(pid)
        assert server.is_running()
        lab.send_signal(end)
        lab.wait(timeout=30)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, "the server is still there"
        time.sleep(0.05)
    # What a killed command could not remove, the next one does.
    with closing(Workspace.open(results / "orphans", removes=True)) as workspace:
        assert not list((workspace.base / "servers").iterdir())


@pytest.mark.parametrize("product", ["mariadb", "postgresql"])
def test_nothing_that_an_installer_starts_outlives_the_command(results: Path, product: str) -> None:
    code = f"""
from pathlib import Path
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace
variant = Variant(name="orphan", server=ServerSpec(product={product!r}))
server = LocalServer(variant, Workspace.open(Path({str(results / "installers")!r})), None)
server.restore()
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    place = str(results / "installers")

    def started() -> list[psutil.Process]:
        words = ("mariadbd", "postgres --")
        return [one for one, line in processes_in(place) if any(word in line for word in words)]

    with subprocess.Popen([sys.executable, "-c", code], env=environment) as lab:
        try:
            wait_until(lambda: bool(started()))
            # It does not end by itself, because its input has ended.
            for one in started():
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.suspend()
        finally:
            lab.kill()
    wait_until(lambda: not processes_in(place))
    with closing(Workspace.open(results / "installers", removes=True)) as workspace:
        assert not list((workspace.base / "servers").iterdir())


def processes_in(place: str) -> list[tuple[psutil.Process, str]]:
    """The processes that run in a folder below `place`, with their command lines."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd().startswith(place):
                found.append((process, " ".join(process.cmdline())))
    return found


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_full_disk_is_told_before_it_happens(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dbdyno.servers.kinds.local.WORKING_BYTES", 10**15)
    server = LocalServer(variant("full"), workspace, None)
    with (
        closing(server),
        pytest.raises(ServerProblem, match="no space left for the data") as caught,
    ):
        server.restore()
    assert caught.value.exit_code == 4
