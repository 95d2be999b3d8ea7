"""A Docker engine of the tests' own: its data, socket and containers go with it; it needs no registry.

It has a bridge of its own and leaves the machine's firewall alone: a published port is Docker's proxy. Its
image is made of Debian's packages by `scripts/docker-image`, which `make test` runs.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT_FILE = Path(__file__).parents[2] / ".servers" / "docker-mariadb.tar"
IMAGE = "dbdyno-test/mariadb:debian"

# Generous: the machine may be busy with other tests.
START_S = 120.0
STOP_S = 60.0


@dataclass(frozen=True)
class DockerEngine:
    """One that runs."""

    host: str

    def docker(self, *words: str) -> str:
        """What `docker WORDS` says."""
        answer = subprocess.run(
            ["docker", "--host", self.host, *words], capture_output=True, text=True, timeout=300, check=False
        )
        assert answer.returncode == 0, answer.stderr
        return answer.stdout

    def containers(self) -> list[str]:
        """Names of all containers, stopped ones too."""
        return self.docker("ps", "--all", "--format", "{{.Names}}").split()


@contextlib.contextmanager
def running() -> Iterator[DockerEngine]:
    """A Docker engine with the image of a MariaDB server."""
    assert ROOT_FILE.is_file(), (
        f"{ROOT_FILE} is missing; make test makes it, and so does scripts/docker-image"
    )
    folder = Path(tempfile.mkdtemp(prefix="dbdyno-docker-", dir="/var/tmp"))
    engine = DockerEngine(f"unix://{folder / 'docker.sock'}")
    with _bridge() as bridge, _daemon(engine, folder, bridge):
        engine.docker("import", str(ROOT_FILE), IMAGE)
        yield engine


@contextlib.contextmanager
def _bridge() -> Iterator[str]:
    """A bridge that nothing else is connected to; its name and its network are this process's own."""
    name, network = f"dbdyno{os.getpid()}", f"10.213.{20 + os.getpid() % 200}.1/24"
    subprocess.run(["ip", "link", "add", "name", name, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "address", "add", network, "dev", name], check=True)
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "delete", name], check=True)


@contextlib.contextmanager
def _daemon(engine: DockerEngine, folder: Path, bridge: str) -> Iterator[None]:
    """dockerd, up to its end and that of whatever it leaves."""
    log = folder / "log"
    command = [
        "dockerd",
        f"--host={engine.host}",
        f"--data-root={folder / 'data'}",
        f"--exec-root={folder / 'exec'}",
        f"--pidfile={folder / 'pid'}",
        f"--bridge={bridge}",
        "--iptables=false",
        "--ip-forward=false",
    ]
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    with log.open("wb") as words:
        daemon = subprocess.Popen(
            command, stdout=words, stderr=words, env={**os.environ, "PATH": path}, start_new_session=True
        )
    try:
        deadline = time.monotonic() + START_S
        while not _answers(engine):
            assert daemon.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.1)
        yield
    finally:
        daemon.send_signal(signal.SIGTERM)
        try:
            daemon.wait(STOP_S)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        _unmount(folder)
        shutil.rmtree(folder, ignore_errors=True)


def _answers(engine: DockerEngine) -> bool:
    asked = ["docker", "--host", engine.host, "info"]
    return subprocess.run(asked, capture_output=True, check=False, timeout=60).returncode == 0


def _unmount(folder: Path) -> None:
    """What an engine that was killed has left mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        place = line.split()[1]
        if place.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", place], capture_output=True, check=False)
