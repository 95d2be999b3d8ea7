"""A server that stops for good while dbdyno waits without a time limit: a long statement, or loading."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from tests.conftest import variant
from tests.end_to_end.comparing import TWO_EQUAL, Comparing, environment, left_running
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.stopping import continue_all, stop_all
from tests.end_to_end.test_answer_timeout import PRODUCTS
from tests.end_to_end.test_run_command import Running

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.admin import connection
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.snapshots.directories import remove_unused_empty
from dbdyno.servers.workspace import Workspace

# Logins of 10 s and 2 s, 5 s before them, and what a busy machine adds.
NOTICED_S_MAX = 40.0
# Options of servers and of the programs that create their data.
DATA_OPTIONS = ("--datadir=", "--pgdata=", "-D", "--defaults-file=")
SLEEP = {"mysql": "SELECT SLEEP(300)", "postgresql": "SELECT pg_sleep(300)"}
POSTGRESQL = Variant(name="small", server=ServerSpec(product="postgresql"))
RUN = ("--connections", "2", "--time", "5s", "--warmup", "0s", "--table-size", "500", "--workers", "1")
BOTH = pytest.mark.parametrize("spec", [variant(), POSTGRESQL], ids=PRODUCTS)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter limits of dbdyno's logins; the tests of `dbdyno compare` below wait for the real ones."""
    monkeypatch.setattr(connection, "LOGIN_EVERY_S", 1.0)
    monkeypatch.setattr(connection, "LOGIN_TIMEOUTS_S", (3, 1))


@BOTH
@pytest.mark.usefixtures("impatient")
def test_a_statement_without_limit_ends_if_no_login_is_answered(spec: Variant, workspace: Workspace) -> None:
    with closing(LocalServer(spec, workspace, None)) as server:
        server.start()
        began = time.monotonic()
        with (
            stopped_after(1.0, server.describe().identity["pid"]),
            answers_within(None),
            pytest.raises(
                ServerProblem, match=r"has answered neither 'SELECT .*300.*' nor 2 logins of dbdyno"
            ),
        ):
            server.query(SLEEP[server.address().protocol])
        assert 4.0 < time.monotonic() - began < NOTICED_S_MAX
        assert server.query("SELECT 1") == [(1,)], "it goes on, and answers again"


@BOTH
@pytest.mark.usefixtures("impatient")
def test_a_slow_statement_goes_on_if_logins_are_answered(spec: Variant, workspace: Workspace) -> None:
    with closing(LocalServer(spec, workspace, None)) as server, answers_within(None):
        server.start()
        server.query(SLEEP[server.address().protocol].replace("300", "4"))


@BOTH
def test_an_installer_that_is_stopped_is_named(spec: Variant, workspace: Workspace) -> None:
    # Otherwise it would be copied.
    remove_unused_empty(workspace, 0)
    with closing(LocalServer(spec, workspace, None)) as server, stopping_next_child(), named():
        server.restore()


def test_a_server_that_is_stopped_while_it_starts_is_named(workspace: Workspace) -> None:
    # MariaDB; PostgreSQL is ready too soon to be hit every time.
    with closing(LocalServer(variant(), workspace, None)) as server:
        server.restore()
        with stopping_next_child(), named():
            server.start()


@contextmanager
def named() -> Iterator[None]:
    with pytest.raises(ServerProblem, match="does not start: a signal has stopped its process") as raised:
        yield
    assert raised.value.exit_code == 4


@BOTH
def test_a_stopped_server_still_stops_cleanly(spec: Variant, workspace: Workspace) -> None:
    with closing(LocalServer(spec, workspace, None)) as server:
        server.start()
        stop_all(server.describe().identity["pid"])
        server.stop(clean=True)
        assert server.stop_seconds is not None
        assert server.stop_seconds < 60.0


@contextmanager
def stopping_next_child() -> Iterator[None]:
    """Within the context, stop the next program of a server that this process starts, with its processes."""
    stopper = threading.Thread(target=stop_next_child, args=[set(psutil.Process().children())])
    stopper.start()
    yield
    stopper.join()


def stop_next_child(known: set[psutil.Process]) -> None:
    """Stop the next program of a server that this process starts, with all its processes."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        for child in set(psutil.Process().children()) - known:
            # After the exec, and before the server is ready.
            with suppress(psutil.Error):
                if any(word.startswith(DATA_OPTIONS) for word in child.cmdline()):
                    stop_all(child.pid)
                    return


LOADED = """
[experiment]
name = "loaded"
[[workload]]
name = "oltp_point_select"
tables = 4
table_size = 500_000
[load]
connections = [1]
duration = "1s"
[client]
workers = 1
"""
LOADED += TWO_EQUAL


# Both servers stop in the same way.
@pytest.mark.parametrize(
    "product", ["mariadb", *(pytest.param(product, marks=pytest.mark.long) for product in PRODUCTS[1:])]
)
def test_a_server_stopped_while_its_tables_are_loaded_ends_the_run(product: str, results: Path) -> None:
    comparing = Comparing(results, LOADED.replace("PRODUCT", product))
    with subprocess.Popen(
        comparing.command("--no-report", "--share-machine"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            messages, took_s = stop_while_loading(process)
        finally:
            process.terminate()
    assert process.returncode == 4, messages
    assert "the server has answered neither the load of oltp_point_select nor 2 logins" in messages
    assert took_s < NOTICED_S_MAX
    assert left_running(results) == []


@pytest.mark.long
def test_a_server_stopped_while_its_tables_are_read_ends_the_trial(results: Path) -> None:
    text = LOADED.replace("PRODUCT", "mariadb").replace("500_000", "200_000")
    comparing = Comparing(results, text.replace("[load]", '[load]\nprewarm = "scan"\nwarmup = "0s"'))
    with subprocess.Popen(
        comparing.command("--no-report", "--share-machine"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        try:
            events = wait_for(results, "*/*/trials/*/events.jsonl", lambda text: '"prewarmed"' in text)
            stop_all(server_of(process))
            wait_for(events.parent, "trial.json", bool)
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate()
    meta = json.loads((events.parent / "trial.json").read_text())
    assert meta["failed_by"] == "server"
    assert "the server has answered neither the load generator nor 2 logins of dbdyno" in meta["reason"]
    assert left_running(results) == []


@pytest.mark.long
@pytest.mark.parametrize("product", ["mariadb", "mysql", "postgresql"])
def test_run_ends_when_its_server_stops_under_load(
    product: str, request: pytest.FixtureRequest, workspace: Workspace, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        if product == "mysql":
            mysql: MySQLServer = request.getfixturevalue("start_mysql")("stopped under load")
            running, pid = Running(mysql, tmp_path), mysql.pid
        else:
            spec = variant() if product == "mariadb" else POSTGRESQL
            server = stack.enter_context(closing(LocalServer(spec, workspace, None)))
            server.start()
            running, pid = Running(server, tmp_path), server.describe().identity["pid"]
        process = stack.enter_context(
            subprocess.Popen(
                running.command("oltp_read_write", *RUN, "--share-machine"),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=running.environment(),
            )
        )
        wait_for(tmp_path, "*/*/trials/*/events.jsonl", lambda text: '"measure"' in text)
        stop_all(pid)
        began = time.monotonic()
        _, messages = process.communicate(timeout=120)
        took_s = time.monotonic() - began
        continue_all(pid)
    assert process.returncode == 4, messages
    assert "Traceback" not in messages
    assert took_s < NOTICED_S_MAX + 20.0


def wait_for(folder: Path, pattern: str, is_so: Callable[[str], bool]) -> Path:
    """The first file below a folder with this path and content; waits for as long as loading may take."""
    deadline = time.monotonic() + 120.0
    while time.monotonic() < deadline:
        for path in folder.glob(pattern):
            with suppress(FileNotFoundError):
                if is_so(path.read_text()):
                    return path
        time.sleep(0.01)
    raise AssertionError(f"there is no such {pattern}")


def stop_while_loading(process: subprocess.Popen[str]) -> tuple[str, float]:
    """Stop the server a second after `dbdyno compare` has begun to load: what it says until its end, and how
    many seconds that takes.
    """
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if "loading" in line:
            break
    time.sleep(1.0)
    stop_all(server_of(process))
    began = time.monotonic()
    lines += process.stderr
    process.wait()
    return "".join(lines), time.monotonic() - began


def server_of(process: subprocess.Popen[str]) -> int:
    """The process id of the server that dbdyno has started."""
    (server,) = (
        child
        for child in psutil.Process(process.pid).children()
        if any(word.startswith(DATA_OPTIONS) for word in child.cmdline())
    )
    return int(server.pid)


@contextmanager
def stopped_after(seconds: float, pid: int) -> Iterator[None]:
    """Stop a server after some seconds; let it go on at the end."""
    timer = threading.Timer(seconds, stop_all, (pid,))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        continue_all(pid)
