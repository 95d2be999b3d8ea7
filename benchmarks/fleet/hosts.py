"""Hosts with own addresses on this machine: network namespaces that a bridge in another namespace connects.

A host can be cut off, slowed down or made to lose packets, and its processes together take at most a share of
a CPU. Needs root and the program `ip`.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

NETWORK = "10.231.7"
SERVER = f"{NETWORK}.100"
HEAD_PORT = 6379
CPU_SHARE = 0.4
_CGROUP = Path("/sys/fs/cgroup")
_SWITCH = "dbdyno-switch"


class Host:
    """One host."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.address, self._port = name, f"{NETWORK}.{number}", f"port{number}"
        _ip("netns", "add", name)
        _ip("-n", _SWITCH, "link", "add", self._port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("-n", _SWITCH, "link", "set", self._port, "master", "bridge", "up")
        _ip("-n", name, "address", "add", f"{self.address}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        self._namespace = Path("/run/netns") / name
        self._cgroup: Path | None = None
        self._share = 1.0
        # The process that copies the frames, and the file of its rule.
        self._cable: subprocess.Popen[bytes] | None = None
        self._rule: Path | None = None
        # The file with the offset of its clock, and the environment of processes that follow it.
        self.clock: Path | None = None
        self.environment: dict[str, str] = {}

    def limit_cpu(self, share: float) -> None:
        """Let the processes of this host together use at most this share of a CPU."""
        folder, name, value = _cgroup(self.name)
        (folder / name).write_text(value(share))
        for process in self.processes():
            with suppress(OSError):
                (folder / "cgroup.procs").write_text(str(process))
        self._cgroup, self._share = folder, share

    @contextmanager
    def unlimited(self) -> Iterator[None]:
        """Start processes at the machine's speed; afterwards the limit holds for them too."""
        was_limited, self._cgroup = self._cgroup is not None, None
        try:
            yield
        finally:
            if was_limited:
                self.limit_cpu(self._share)

    def step_clock(self, seconds: int) -> None:
        """Move the wall clock of the processes on this host, if `cluster` has prepared it."""
        assert self.clock is not None, "only the last host of a cluster has a clock of its own"
        with self.clock.open("r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))

    def argv(self, *command: str) -> list[str]:
        """The command line that runs a command on this host."""
        enter = ["nsenter", f"--net=/run/netns/{self.name}", *command]
        if self._cgroup is None:
            return enter
        return ["sh", "-c", f'echo $$ >{self._cgroup / "cgroup.procs"}; exec "$@"', "sh", *enter]

    def run(
        self,
        *command: str,
        environment: Mapping[str, str] | None = None,
        seconds: float = 120.0,
        stdin: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on this host."""
        return subprocess.run(
            self.argv(*command),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=seconds,
            env={**os.environ, **(environment or {})},
        )

    def cut(self) -> None:
        """Take the network cable out."""
        _ip("-n", _SWITCH, "link", "set", self._port, "down")

    def connect(self) -> None:
        """Put the cable back."""
        _ip("-n", _SWITCH, "link", "set", self._port, "up")

    def replace_cable(self, rule: Path) -> None:
        """Connect the host by a cable that obeys `impair`; `rule` is the file of its rule."""
        near, far = f"{self._port}n", f"{self._port}f"
        _ip("-n", _SWITCH, "link", "set", self._port, "nomaster")
        _ip("-n", _SWITCH, "link", "add", near, "type", "veth", "peer", "name", far)
        _ip("-n", _SWITCH, "link", "set", near, "master", "bridge", "up")
        _ip("-n", _SWITCH, "link", "set", far, "up")
        self._rule = rule
        self.impair()
        cable = [sys.executable, str(Path(__file__).with_name("cable.py")), self._port, far, str(rule)]
        self._cable = subprocess.Popen(["nsenter", f"--net=/run/netns/{_SWITCH}", *cable])

    def impair(self, delay_s: float = 0.0, loss: float = 0.0) -> None:
        """Delay frames, in each direction, and lose a share of them; by default neither."""
        assert self._rule is not None, "replace_cable comes first"
        self._rule.write_text(f"{delay_s} {loss}")

    def processes(self) -> list[int]:
        """The processes whose network is this host's."""
        if self._cgroup is not None:
            return [int(word) for word in (self._cgroup / "cgroup.procs").read_text().split()]
        own, processes = self._namespace.stat().st_ino, []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):
                    if (folder / "ns" / "net").stat().st_ino == own:
                        processes.append(int(folder.name))
        return processes

    def find(self, *words: str) -> list[int]:
        """The processes of this host whose command lines have all words."""
        found = []
        for process in self.processes():
            with suppress(OSError):
                line = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace")
                if all(word in line for word in words):
                    found.append(process)
        return found

    def close(self) -> None:
        """Kill all processes and remove the host."""
        for _ in range(20):
            processes = self.processes()
            for process in processes:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            if not processes:
                break
            time.sleep(0.1)
        _ip("netns", "delete", self.name, check=False)
        if self._cable is not None:
            self._cable.kill()
            self._cable.wait()
        if self._cgroup is not None:
            with suppress(OSError):
                self._cgroup.rmdir()


def _ip(*arguments: str, check: bool = True) -> None:
    subprocess.run(["ip", *arguments], check=check, capture_output=True, timeout=10)


def _cgroup(name: str) -> tuple[Path, str, Callable[[float], str]]:
    """A cgroup of version 1 or 2, the name of its file for the limit, and the limit as its content."""
    if (_CGROUP / "cpu").is_dir():
        folder = _CGROUP / "cpu" / name
        folder.mkdir(exist_ok=True)
        return folder, "cpu.cfs_quota_us", lambda share: str(round(share * 100_000))
    (_CGROUP / "cgroup.subtree_control").write_text("+cpu")
    folder = _CGROUP / name
    folder.mkdir(exist_ok=True)
    return folder, "cpu.max", lambda share: f"{round(share * 100_000)} 100000"


@contextmanager
def network(count: int) -> Iterator[tuple[Host, ...]]:
    """So many hosts, and after them one for the server."""
    _remove_leftovers()
    _ip("netns", "add", _SWITCH)
    hosts: list[Host] = []
    try:
        _ip("-n", _SWITCH, "link", "add", "bridge", "type", "bridge")
        _ip("-n", _SWITCH, "link", "set", "bridge", "up")
        hosts += [Host(f"dbdyno-host{number}", number) for number in range(1, count + 1)]
        hosts.append(Host("dbdyno-server", 100))
        yield tuple(hosts)
    finally:
        for host in hosts:
            host.close()
        _ip("netns", "delete", _SWITCH, check=False)


def _remove_leftovers() -> None:
    """Remove hosts of a call that was killed."""
    answer = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False, timeout=10)
    for line in answer.stdout.splitlines():
        name = line.split()[0]
        if not name.startswith("dbdyno-"):
            continue
        pids = subprocess.run(
            ["ip", "netns", "pids", name], capture_output=True, text=True, check=False, timeout=10
        )
        for word in pids.stdout.split():
            with suppress(ProcessLookupError):
                os.kill(int(word), signal.SIGKILL)
        _ip("netns", "delete", name, check=False)


@contextmanager
def cluster(hosts: Sequence[Host]) -> Iterator[Mapping[str, str]]:
    """A Ray node on each host, the first one with the head. Yields the environment of a driver on the first
    host.
    """
    home = Path(tempfile.mkdtemp(prefix="dbdyno-fleet-home-"))
    environment = {"HOME": str(home)}
    try:
        _prepare_clock(hosts[-1], home)
        hosts[-1].replace_cable(home / "cable")
        for number, host in enumerate(hosts):
            start_node(host, environment, None if number == 0 else hosts[0])
        yield environment
    finally:
        for host in hosts:
            for process in host.find("ray"):
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)


def _prepare_clock(host: Host, folder: Path) -> None:
    """Let the processes of a host read a clock of their own, which `step_clock` moves."""
    library, host.clock = folder / "clock_step.so", folder / "clock"
    source = Path(__file__).parents[1] / "faults" / "clock_step.c"
    subprocess.run(["cc", "-O", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    host.clock.write_bytes(bytes(8))
    host.environment = {"LD_PRELOAD": str(library), "DBDYNO_FAULTS_CLOCK": str(host.clock)}


def start_node(host: Host, environment: Mapping[str, str], head: Host | None) -> None:
    """Start Ray on a host with `dbdyno fleet up`."""
    join = ["--join", f"{head.address}:{HEAD_PORT}"] if head is not None else ["--port", str(HEAD_PORT)]
    answer = host.run(
        sys.executable, "-m", "dbdyno", "fleet", "up", *join, "--host", host.address, "--cpus", "2",
        environment={**environment, **host.environment},
    )  # fmt: skip
    if answer.returncode:
        raise RuntimeError(f"{host.name}: {answer.stdout}{answer.stderr}")
