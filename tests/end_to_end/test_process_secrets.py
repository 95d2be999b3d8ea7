"""Where a password is while dbdyno runs, and afterwards: /proc, output, results and core files."""

from __future__ import annotations

import os
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from tests.end_to_end.comparing import TWO_CONNECTIONS, environment
from tests.end_to_end.mysql_server import MySQLServer
from tests.end_to_end.test_run_command import url

from dbdyno.binary import COMPAT, ENGINE
from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.workspace import Workspace

SCRIPT = """
function thread_init() con = sysbench.sql.driver():connect() end
function event() con:query("SELECT SLEEP(0.01)") end
"""
TIME_LIMIT_S = 120.0
SHORT = ("--connections", "2", "--time", "500ms", "--warmup", "0s", "--table-size", "100", "--workers", "1")
# A hook that lives long enough to be seen, and keeps its environment.
HOOK = 'before_trial = ["sh", "-c", "env >FILE; sleep 0.1"]'
VARIABLE = "DBDYNO_PASSWORD"
# The variable that an experiment names.
NAMED = "SHOP_PASSWORD"


@dataclass
class Watch:
    """Where a password was while a command ran."""

    # File of /proc, and program; the command itself does not count.
    seen: set[tuple[str, str]] = field(default_factory=set)
    output: str = ""
    samples: int = 0
    exit_code: int | None = None


def processes_with(secret: bytes) -> Iterator[tuple[str, int]]:
    """File of /proc and process, for each process with the secret; this one does not count."""
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) == os.getpid():
            continue
        for file in ("cmdline", "environ"):
            with suppress(OSError):
                if secret in (process / file).read_bytes():
                    yield file, int(process.name)


def program(pid: int) -> str:
    """The program of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
    except OSError:
        return ""


def is_copy(pid: int, command: Sequence[str]) -> bool:
    """Whether a process is the command itself, or a child of it that has not begun its own program yet."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1] == [
            word.encode() for word in command
        ]
    except OSError:
        return True


def sightings(command: Sequence[str], secret: str, *, typed: bool = False, **variables: str) -> Watch:
    """Run the command and watch all processes, many times a second.

    Drop-ins get 0.2 s to overwrite their arguments. With `typed` the password is typed at a prompt.
    """
    watch = Watch()
    since: dict[tuple[str, int], float] = {}
    grace_s = 0.2 if command[3] in ("slap", "sysbench") else 0.0
    terminal, stdin = pty.openpty() if typed else (-1, subprocess.DEVNULL)
    with subprocess.Popen(
        command,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**environment(), **variables},
        start_new_session=True,
    ) as process:
        if typed:
            os.close(stdin)
        limit = threading.Timer(TIME_LIMIT_S, process.kill)
        limit.start()
        typed_at = 0.0
        while process.poll() is None:
            watch.samples += 1
            # A prompt discards what was typed before it.
            if typed and time.monotonic() - typed_at > 0.5:
                typed_at = time.monotonic()
                os.write(terminal, f"{secret}\n".encode())
            for place in processes_with(secret.encode()):
                first = since.setdefault(place, time.monotonic())
                if time.monotonic() - first >= grace_s and not is_copy(place[1], command):
                    watch.seen.add((place[0], program(place[1])))
            time.sleep(0.005)
        limit.cancel()
        assert process.stdout is not None
        watch.output, watch.exit_code = process.stdout.read(), process.returncode
    if typed:
        os.close(terminal)
    watch.seen.discard(("cmdline", ""))
    watch.seen.discard(("environ", ""))
    return watch


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "one.lua"
    path.write_text(SCRIPT)
    return path


@pytest.mark.parametrize("password", ["--password={}", "-p{}", "-vp{}"])
def test_no_process_shows_the_password_of_slap(mariadb: LocalServer, password: str) -> None:
    address = mariadb.address()
    options = ["--no-defaults", f"--host={address.host}", f"--port={address.port}", f"-u{address.user}"]
    load = ["--no-drop", f"--create-schema={address.database}", "--query=SELECT SLEEP(0.02)", "-i30", "-c2"]
    command = [sys.executable, "-m", "dbdyno", "slap", *options, password.format(address.password), *load]
    watch = sightings(command, address.password)
    assert "Average number of seconds" in watch.output
    assert watch.seen == set()


def test_no_process_shows_the_password_of_sysbench(mariadb: LocalServer, script: Path) -> None:
    address = mariadb.address()
    options = [f"--mysql-host={address.host}", f"--mysql-port={address.port}", f"--mysql-user={address.user}"]
    options += [f"--mysql-db={address.database}", f"--mysql-password={address.password}"]
    command = [
        sys.executable,
        "-m",
        "dbdyno",
        "sysbench",
        str(script),
        *options,
        "--time=1",
        "run",
    ]
    watch = sightings(command, address.password)
    assert "total number of events" in watch.output
    assert watch.seen == set()


Server = LocalServer | MySQLServer


@pytest.fixture
def server(request: pytest.FixtureRequest, mariadb: LocalServer, workspace: Workspace) -> Iterator[Server]:
    """A server of the product that the test names."""
    match request.param:
        case "mariadb":
            yield mariadb
        case "mysql":
            yield request.getfixturevalue("mysql")
        case _:
            spec = ServerSpec(product="postgresql", variables={"shared_buffers": "32MB"})
            postgresql = LocalServer(Variant(name="secret", server=spec), workspace, None)
            postgresql.start()
            yield postgresql
            postgresql.close()


def experiment(server: Server, results: Path, source: str) -> Path:
    """Two variants on one server, whose password has that source."""
    text = TWO_CONNECTIONS
    for name in ("a", "b"):
        text += f'[[variant]]\nname = "{name}"\n[variant.server]\nkind = "remote"\n'
        text += f'url = "{url(server.address())}"\n'
        text += {
            "file": f'password_file = "{results}/password"\n',
            "named": f'password_env = "{NAMED}"\n',
        }.get(source, "")
        text += HOOK.replace("FILE", f"{results}/environment-{name}") + "\n"
    path = results / "secrets.toml"
    path.write_text(text)
    return path


def commands(server: Server, results: Path, source: str) -> Iterator[list[str]]:
    """The commands that log in to a server."""
    dbdyno = [sys.executable, "-m", "dbdyno"]
    place = ["--results", str(results / "results")]
    target = ["--target", url(server.address())]
    target += ["--password-file", str(results / "password")] if source == "file" else []
    if source != "named":
        options = [*SHORT, "--keep-data", "--share-machine", *place, "--verbose"]
        yield [*dbdyno, "run", "oltp_read_write", *target, *options]
        yield [*dbdyno, "data", "list", *target]
        yield [*dbdyno, "data", "drop", *target, "--yes", "--share-machine"]
        yield [*dbdyno, "probe", *target]
    if source != "typed":
        file = str(experiment(server, results, source))
        yield [*dbdyno, "check", file, "--with-data", *place]
        yield [*dbdyno, "compare", file, "--share-machine", *place, "--verbose"]


def with_marks(products: Sequence[str], sources: Sequence[str]) -> list[object]:
    """All pairs; only MariaDB with a named variable is a short test."""
    return [
        pytest.param(
            product, source,
            marks=() if product == "mariadb" and source == "named" else pytest.mark.long,
        )
        for product in products for source in sources
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("server", "source"),
    with_marks(("mariadb", "mysql", "postgresql"), ("file", "variable", "named", "typed")),
    indirect=["server"],
)
def test_only_the_load_generator_has_the_password_of_a_server(
    server: Server, source: str, tmp_path: Path
) -> None:
    secret = server.address().password
    (tmp_path / "password").write_text(secret)
    variables = {"variable": {VARIABLE: secret}, "named": {NAMED: secret}}.get(source, {})
    for command in commands(server, tmp_path, source):
        watch = sightings(command, secret, typed=source == "typed", **variables)
        print(f"{source}: dbdyno {command[3]}: {watch.samples} samples, {sorted(watch.seen)}")  # noqa: T201 — with `pytest -s`.
        assert watch.exit_code == 0, watch.output
        # Only this user and root can read it there.
        assert watch.seen <= {("environ", ENGINE), ("environ", COMPAT)}, watch.output
        assert watch.samples > 20
        assert secret not in watch.output
    (tmp_path / "password").unlink()
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert stored
    assert source == "typed" or (tmp_path / "environment-a").exists()
    assert not [path for path in stored if secret.encode() in path.read_bytes()]


def abort(
    folder: Path, command: Sequence[str], find: Callable[[int], int | None], **variables: str
) -> list[Path]:
    """End a process of the command by SIGABRT while core files are allowed: the core files in `folder`."""
    folder.mkdir()
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**environment(), **variables},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2),  # noqa: PLW1509 — no other thread.
    ) as process:
        deadline = time.monotonic() + TIME_LIMIT_S
        while (pid := find(process.pid)) is None:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.01)
        os.kill(pid, signal.SIGABRT)
        process.wait(TIME_LIMIT_S)
    return [path for path in folder.rglob("*") if "core" in path.name]


def child(name: str) -> Callable[[int], int | None]:
    """Finds a process of that name below another one, which has the password in its memory."""

    def find(parent: int) -> int | None:
        with suppress(psutil.NoSuchProcess):
            below = psutil.Process(parent).children(recursive=True)
            return next((one.pid for one in below if one.name() == name[:15]), None)
        return None

    return find


def parent_of(name: str) -> Callable[[int], int | None]:
    """Finds the command, as soon as it has that child."""
    return lambda parent: parent if child(name)(parent) else None


def after_a_second(parent: int) -> int:
    """The command itself, which has replaced Python by then."""
    time.sleep(1.0)
    return parent


def test_no_process_with_a_password_writes_a_core_file(
    mariadb: LocalServer, script: Path, tmp_path: Path
) -> None:
    # Core files appear in the current folder; elsewhere this test could not fail.
    pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    if "/" in pattern or pattern.startswith("|"):
        pytest.skip(f"core files go to {pattern}")
    assert abort(tmp_path / "control", ["sleep", "60"], lambda parent: parent), (
        "core files are not written here"
    )
    address = mariadb.address()
    dbdyno = [sys.executable, "-m", "dbdyno"]
    run = [*dbdyno, "run", "oltp_point_select", "--target", url(address), *SHORT, "--share-machine"]
    run[run.index("500ms")] = "30s"
    run += ["--results", str(tmp_path / "results")]
    variables = {VARIABLE: address.password}
    assert abort(tmp_path / "engine", run, child(ENGINE), **variables) == []
    assert abort(tmp_path / "lab", run, parent_of(ENGINE), **variables) == []
    sysbench = [
        *dbdyno,
        "sysbench",
        str(script),
        f"--mysql-host={address.host}",
        f"--mysql-port={address.port}",
    ]
    sysbench += [f"--mysql-user={address.user}", f"--mysql-db={address.database}"]
    sysbench += [f"--mysql-password={address.password}", "--time=30", "run"]
    assert abort(tmp_path / "sysbench", sysbench, after_a_second) == []
