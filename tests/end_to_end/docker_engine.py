"""A Docker engine of the tests' own: its data, socket and containers go with it; it needs no registry.

It has a bridge of its own and leaves the machine's firewall alone: a published port is Docker's proxy. Its
images are made of what is on this machine: MariaDB's of Debian's packages by `scripts/docker-image`, which
`make test` runs, MySQL's of the root that `scripts/mysql-root` has unpacked, and PostgreSQL's of the programs
that are installed. `benchmarks/examples.py` uses it too.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dbdyno.servers.products.postgresql import PostgreSQL

SERVERS = Path(__file__).parents[2] / ".servers"
MARIADB_ROOT = SERVERS / "docker-mariadb.tar"
MYSQL_ROOT = SERVERS / "mysql-9.7"
IMAGE = "dbdyno-test/mariadb:debian"
MYSQL_IMAGE = "dbdyno-test/mysql:9.7"
POSTGRESQL_IMAGE = "dbdyno-test/postgresql:here"
# A root whose programs lie below /usr, as everywhere today.
MERGED = ("bin", "sbin", "lib", "lib64")

# Generous: the machine may be busy with other tests.
START_S = 120.0
STOP_S = 60.0


@dataclass(frozen=True)
class DockerEngine:
    """One that runs."""

    host: str
    # Images that are there.
    _images: set[str] = field(default_factory=set, repr=False)

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

    def import_mariadb(self) -> str:
        """Make the image of a MariaDB; its name."""
        assert MARIADB_ROOT.is_file(), f"{MARIADB_ROOT} is missing; make docker makes it"
        if IMAGE not in self._images:
            self.docker("import", str(MARIADB_ROOT), IMAGE)
            self._images.add(IMAGE)
        return IMAGE

    def import_mysql(self) -> str:
        """Make the image of a MySQL 9.7, which is the unpacked root and a shell; its name."""
        server = MYSQL_ROOT / "usr/sbin/mysqld"
        assert server.is_file(), f"{server} is missing; make mysql unpacks it"

        def fill(image: tarfile.TarFile) -> None:
            image.add(MYSQL_ROOT, arcname="", recursive=True)
            image.add(Path("/bin/sh").resolve(), arcname="usr/bin/sh")

        return self._import(MYSQL_IMAGE, fill)

    def import_postgresql(self) -> str:
        """Make the image of the PostgreSQL that is installed, with the libraries it wants; its name."""
        return self._import(POSTGRESQL_IMAGE, _postgresql)

    def _import(self, name: str, fill: Callable[[tarfile.TarFile], None]) -> str:
        if name in self._images:
            return name
        command = ["docker", "--host", self.host, "import", "-", name]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as importing:
            assert importing.stdin is not None
            with tarfile.open(fileobj=importing.stdin, mode="w|") as image:
                fill(image)
                for folder in MERGED:
                    link = tarfile.TarInfo(folder)
                    link.type, link.linkname = tarfile.SYMTYPE, f"usr/{folder}"
                    image.addfile(link)
        assert importing.returncode == 0, f"docker import of {name} failed"
        self._images.add(name)
        return name

    def for_examples(self) -> list[str]:
        """Options of `dbdyno compare` that put a MySQL 9.7 in the place of every image of an example."""
        image = self.import_mysql()
        return ["--set", f'variant.server.image="{image}"', "--set", 'variant.server.version="9.7"']


def _postgresql(image: tarfile.TarFile) -> None:
    """Programs, shared files, a shell, time zones, and every library that one of them is linked to."""
    folder = PostgreSQL().binaries(None).server.parents[1]
    version = folder.name
    programs = [*(folder / "bin" / name for name in ("postgres", "initdb")), Path("/bin/sh")]
    # The compiler for queries is as large as all the rest, and PostgreSQL does without.
    modules = [path for path in (folder / "lib").glob("*.so") if "llvmjit" not in path.name]
    for path in (*programs, *modules):
        image.add(path.resolve(), arcname=_below_usr(path))
    for shared in (f"/usr/share/postgresql/{version}", "/usr/share/zoneinfo"):
        image.add(shared, arcname=shared[1:])
    wanted = subprocess.run(["ldd", *programs, *modules], capture_output=True, text=True, check=True).stdout
    for library in sorted(set(re.findall(r"(/\S+) \(0x", wanted))):
        image.add(Path(library).resolve(), arcname=_below_usr(Path(library)))


def _below_usr(path: Path) -> str:
    """A path of this machine in an image whose /bin and /lib are links to those of /usr."""
    name = str(path).removeprefix("/")
    return f"usr/{name}" if name.startswith(MERGED) else name


@contextlib.contextmanager
def running() -> Iterator[DockerEngine]:
    """A Docker engine without images, which everything that is started meanwhile takes for its own."""
    folder = Path(tempfile.mkdtemp(prefix="dbdyno-docker-", dir="/var/tmp"))
    engine = DockerEngine(f"unix://{folder / 'docker.sock'}")
    with _bridge() as bridge, _daemon(engine, folder, bridge):
        before = os.environ.get("DOCKER_HOST")
        os.environ["DOCKER_HOST"] = engine.host
        try:
            yield engine
        finally:
            os.environ.pop("DOCKER_HOST")
            if before is not None:
                os.environ["DOCKER_HOST"] = before


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
