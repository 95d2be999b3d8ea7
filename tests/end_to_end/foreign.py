"""Starts servers that speak a protocol and are other products, for tests: `make foreign` fetches them.

Each is a child of the test on loopback, with a folder of its own, and ends with it.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.servers import ports
from dbdyno.servers.admin.connection import ConnectFailure
from dbdyno.servers.kinds.process import die_with_parent
from dbdyno.servers.kinds.remote import Password, RemoteServer
from dbdyno.servers.server import ServerProblem
from dbdyno.servers.url import parse_url

ROOT = Path(__file__).parents[2] / ".servers" / "foreign"
START_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Foreign:
    """One product: its name, its file below ROOT, command line, and how a client connects."""

    title: str
    file: str
    # From the folder of its data and its port.
    command: Callable[[Path, int], list[str]]
    # With {port}.
    url: str
    password: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)


def _questdb(folder: Path, port: int) -> list[str]:
    conf = folder / "conf"
    conf.mkdir()
    settings = {
        "http.enabled": "false",
        "http.min.enabled": "false",
        "line.tcp.enabled": "false",
        "telemetry.enabled": "false",
        "pg.net.bind.to": f"127.0.0.1:{port}",
        "shared.worker.count": "1",
    }
    (conf / "server.conf").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    module = ["-p", str(ROOT / "questdb.jar"), "-m", "io.questdb/io.questdb.ServerMain"]
    return ["java", "-Xmx512m", *module, "-d", str(folder), "-n"]


def _h2(folder: Path, port: int) -> list[str]:
    options = ["-Xmx512m", "-Dh2.bindAddress=127.0.0.1", "-cp", str(ROOT / "h2.jar"), "org.h2.tools.Server"]
    return ["java", *options, "-pg", "-pgPort", str(port), "-baseDir", str(folder), "-ifNotExists"]


def _go(_folder: Path, port: int) -> list[str]:
    return [str(ROOT / "go-mysql-server"), f"127.0.0.1:{port}", "bench"]


def _seekdb(folder: Path, port: int) -> list[str]:
    program = next(path for path in (ROOT / "seekdb").rglob("seekdb") if path.is_file())
    sizes = "memory_limit=2G,datafile_size=1G,log_disk_size=2G,cpu_count=2"
    return [str(program), "--nodaemon", "--base-dir", str(folder), "--port", str(port), "--parameter", sizes]


_CLEAR = "?allow-clear-text=yes"
SERVERS: Mapping[str, Foreign] = {
    "questdb": Foreign(
        "QuestDB", "questdb.jar", _questdb, f"postgresql://admin@127.0.0.1:{{port}}/qdb{_CLEAR}", "quest"
    ),
    "h2": Foreign("H2", "h2.jar", _h2, f"postgresql://sa@127.0.0.1:{{port}}/bench{_CLEAR}", "secret"),
    "go-mysql-server": Foreign(
        "go-mysql-server", "go-mysql-server", _go, "mysql://root@127.0.0.1:{port}/bench"
    ),
    "seekdb": Foreign("seekdb", "seekdb", _seekdb, "mysql://root@127.0.0.1:{port}/test"),
}


@contextmanager
def running(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """The server while it runs, as its URL and password."""
    product = SERVERS[name]
    assert (ROOT / product.file).exists(), f"{ROOT / product.file} is missing: scripts/foreign-servers {ROOT}"
    port, _ = ports.reserve_pair(f"{folder} {name}", None)
    parent = os.getpid()
    log = folder / "output.log"
    data = folder / "data"
    data.mkdir()
    with log.open("wb") as output:
        process = subprocess.Popen(
            product.command(data, port),
            cwd=data,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: die_with_parent(parent),  # noqa: PLW1509 — it only makes system calls.
        )
    url = product.url.format(port=port)
    try:
        _wait(process, url, product.password, log)
        yield url, product.password
    finally:
        process.kill()
        process.wait()
        ports.release(f"{folder} {name}")


def _wait(process: subprocess.Popen[bytes], url: str, password: str, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while (problem := _refusal(url, password)) is not None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise AssertionError(f"{problem}; {log.read_text(errors='replace')[-2000:]}")
        time.sleep(0.2)


def _refusal(url: str, password: str) -> Exception | None:
    """Why the server does not answer yet."""
    with closing(RemoteServer(parse_url(url), Password(password))) as server:
        try:
            server.start()
        except (ConnectFailure, ServerProblem) as problem:
            return problem
    return None
