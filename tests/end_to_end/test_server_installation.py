"""`dbdyno servers`: real versions from a package registry and from a mirror, and a comparison of them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.end_to_end.comparing import Comparing

from dbdyno.servers.sources.source import SOURCES, choose_release

NEW, OLD = "18", "14"
EXPERIMENT = """
[experiment]
name = "versions"
[[workload]]
name = "oltp_point_select"
tables = 1
table_size = 1_000
[load]
connections = [2]
duration = "500ms"
warmup = "100ms"
[design]
repeat_disturbed = false
blocks = 1
[[variant]]
name = "old"
server = { product = "postgresql", version = "14" }
[[variant]]
name = "new"
server = { product = "postgresql", version = "18" }
[[variant]]
name = "packaged"
server = { product = "postgresql", version = "15" }
"""


@dataclass
class Files:
    """An HTTP server of one file, which can end a connection early."""

    content: bytes
    # Bytes after which the next connection ends; None: never.
    cut_after: int | None = None
    # First byte of each request.
    begins: list[int] = field(default_factory=list)
    address: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Send the file, or the part that the request asks for."""
        begin = int(handler.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.begins.append(begin)
        rest = self.content[begin:]
        handler.send_response(206 if begin else 200)
        handler.send_header("Content-Length", str(len(rest)))
        handler.end_headers()
        handler.wfile.write(rest[: self.cut_after])
        self.cut_after = None


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of PostgreSQL 18 from its registry."""
    release, source = choose_release("postgresql", NEW, "maven"), SOURCES["maven"]
    folder = tmp_path_factory.mktemp("archive")
    source.fetch(release, folder, lambda _: None)
    return folder / source.file_name(release)


@pytest.fixture
def files(archive: Path) -> Iterator[Files]:
    """A server of that file."""
    served = Files(archive.read_bytes())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.answer(self)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of servers."""
    folder = tmp_path / "servers"
    monkeypatch.setenv("DBDYNO_SERVERS", str(folder))
    return folder


def servers(*words: str) -> subprocess.CompletedProcess[str]:
    """Run `dbdyno servers`."""
    command = [sys.executable, "-m", "dbdyno", "servers", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def install_by_url(address: str, checksum: str) -> subprocess.CompletedProcess[str]:
    return servers("install", "postgresql", "18", "--url", address, "--sha256", checksum)


def test_installed_versions_are_compared(results: Path, cache: Path, archive: Path) -> None:
    comparing = Comparing(results, EXPERIMENT)
    refused = comparing.run()
    assert refused.returncode == 2
    assert "dbdyno servers install postgresql 14" in refused.stderr
    # One from the registry, and one from the file that was fetched from there already.
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    for answer in (servers("install", "postgresql", OLD), install_by_url(str(archive), checksum)):
        assert answer.returncode == 0, answer.stderr
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    records = {trial.meta["variant"]: trial.server for trial in comparing.newest().trials()}
    assert records["old"]["version"].startswith("14.")
    assert records["new"]["version"].startswith("18.")
    assert records["packaged"]["version"].startswith("15.")
    assert records["old"]["build"]["compiler"] == records["new"]["build"]["compiler"]
    findings = json.loads((comparing.newest().path / "verdict.json").read_text())["checks"]
    builds = [one for one in findings if one["code"] == "P23"]
    # The packages of this machine are built by its distribution; the two others by one vendor.
    assert builds
    assert all({"packaged"} < set(one["evidence"]["compiler"]) for one in builds)
    listed = servers("list", "postgresql", OLD).stdout
    assert "MiB" in listed
    assert servers("remove", "postgresql", OLD).returncode == 0
    assert servers("path", "postgresql", OLD).returncode == 2
    assert "MiB" not in servers("list", "postgresql", OLD).stdout


def test_a_mirror_replaces_the_registry(cache: Path, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBDYNO_SERVERS_MIRROR", files.address)
    # No client of a registry is needed then.
    monkeypatch.setenv("PATH", "/nowhere")
    answer = servers("install", "postgresql", NEW, "--source", "maven")
    assert answer.returncode == 0, answer.stderr
    programs = Path(servers("path", "postgresql", NEW).stdout.strip())
    assert programs.is_relative_to(cache)
    shown = subprocess.run(
        [programs / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
    )
    assert "PostgreSQL) 18." in shown.stdout


def test_an_interrupted_download_is_resumed(cache: Path, files: Files) -> None:
    checksum, half = hashlib.sha256(files.content).hexdigest(), len(files.content) // 2
    files.cut_after = half
    address = f"{files.address}/server.jar"
    interrupted = install_by_url(address, checksum)
    assert interrupted.returncode == 2
    assert f"the first {half:,} bytes are kept" in interrupted.stderr
    assert not list(cache.glob("postgresql-*/release.json"))
    resumed = install_by_url(address, checksum)
    assert resumed.returncode == 0, resumed.stderr
    assert files.begins == [0, half]
    assert not list((cache / "downloads").iterdir())


def test_a_wrong_file_is_refused(cache: Path, files: Files, archive: Path) -> None:
    address = f"{files.address}/server.jar"
    refused = install_by_url(address, "0" * 64)
    assert refused.returncode == 2
    assert "is not the expected file" in refused.stderr
    assert not [
        path
        for path in cache.rglob("*")
        if path.is_file() and path.suffix != ".lock" and path.name != ".dbdyno"
    ]
    # A file with the right checksum that is another version.
    checksum = hashlib.sha256(files.content).hexdigest()
    other = servers("install", "postgresql", "17", "--url", str(archive), "--sha256", checksum)
    assert other.returncode == 2
    assert "not 17" in other.stderr
    no_server = servers("install", "mariadb", "18", "--url", str(archive), "--sha256", checksum)
    assert "contains no mariadbd" in no_server.stderr
    assert not list(cache.glob("*/release.json"))


def test_two_installations_at_once(cache: Path, files: Files) -> None:
    command = [sys.executable, "-m", "dbdyno", "servers", "install", "postgresql", NEW]
    environment = {**os.environ, "DBDYNO_SERVERS_MIRROR": files.address}
    both = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    messages = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], messages
    assert len(files.begins) == 1
    assert len(list(cache.glob("postgresql-*/server/bin/postgres"))) == 1


def test_a_killed_installation_is_repeated(cache: Path, files: Files) -> None:
    command = [sys.executable, "-m", "dbdyno", "servers", "install", "postgresql", NEW]
    environment = {**os.environ, "DBDYNO_SERVERS_MIRROR": files.address}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not list(cache.glob("*.unfinished/unpacked/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert "MiB" not in servers("list").stdout
    assert servers("path", "postgresql", NEW).returncode == 2
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    # The download was complete.
    assert len(files.begins) == 1
    assert not list(cache.glob("*.unfinished"))


def test_all_errors_are_told_at_once(cache: Path) -> None:
    answer = servers("install", "oracle", "x", "--url", "a", "--sha256", "b", "--source", "npm")
    assert answer.returncode == 2
    for text in ("'oracle'", "'x'", "exclude each other", "64 hexadecimal digits"):
        assert text in answer.stderr
    unknown = servers("install", "postgresql", "9.6")
    assert unknown.returncode == 2
    assert "10.23" in unknown.stderr
    assert "--url URL" in unknown.stderr
    assert not cache.exists()
