"""The hosts of a fleet: this machine alone, for limits of one process and for a try without a cluster, or a
cluster of Ray, whose processes on this machine are started and stopped here.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from dbdyno.binary import EngineProblem, find_program
from dbdyno.experiment.model import FLEET_LOCAL
from dbdyno.fleet.carrier import Carrier, FleetProblem, Place
from dbdyno.fleet.engine_host import EngineHost
from dbdyno.problem import ExitCode

MISSING_EXTRA = (
    "a fleet on several hosts needs Ray",
    'Install it on this machine: pip install "dbdyno[fleet]"',
)
# Processes of Ray that `start_node` started have this variable in their environment.
MARK = "DBDYNO_FLEET"
# Ray notices a host that fails within seconds instead of half a minute.
_HEALTH = (
    '{"health_check_initial_delay_ms":2000,"health_check_period_ms":1000,'
    '"health_check_timeout_ms":2000,"health_check_failure_threshold":3}'
)
_START_S_MAX, _STOP_S_MAX = 120.0, 10.0


@dataclass(frozen=True)
class NodeOptions:
    """How this machine takes part in a cluster."""

    # HOST:PORT of the head; None: this machine is the head.
    join: str | None = None
    # This machine's address for the other hosts; None: Ray chooses it.
    host: str | None = None
    port: int = 6379
    # How many engines fit on this machine; None: as many as it has CPUs.
    cpus: int | None = None


def ray_environment() -> dict[str, str]:
    """The environment of Ray's processes and of the driver: token authentication, and no usage reports."""
    return {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}


def token_file() -> Path:
    """The file of the token that every host of a cluster has."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def start_node(options: NodeOptions) -> str:
    """Start Ray on this machine; returns HOST:PORT of the cluster's head. Raises FleetProblem."""
    program = _find_program()
    _require_token(is_head=options.join is None)
    arguments = ["--address", options.join] if options.join else ["--head", f"--port={options.port}"]
    if options.join is None:
        arguments += ["--include-dashboard=false", "--system-config", _HEALTH]
    if options.host is not None:
        arguments.append(f"--node-ip-address={options.host}")
    if options.cpus is not None:
        arguments.append(f"--num-cpus={options.cpus}")
    try:
        answer = subprocess.run(
            [program, "start", *arguments, "--disable-usage-stats"],
            capture_output=True,
            text=True,
            timeout=_START_S_MAX,
            check=False,
            env={**os.environ, **ray_environment(), MARK: "1"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FleetProblem(f"Ray does not start: {error}", exit_code=ExitCode.NOT_REACHABLE) from error
    if answer.returncode:
        lines = [line.strip() for line in (answer.stderr + answer.stdout).splitlines() if line.strip()]
        raise FleetProblem(
            f"Ray does not start: {lines[-1] if lines else f'exit status {answer.returncode}'}",
            "See ray start --help; dbdyno fleet down stops what dbdyno has started before",
            ExitCode.NOT_REACHABLE,
        )
    address = re.search(r"Local node IP: (\S+)", answer.stdout)
    return options.join or f"{options.host or (address[1] if address else 'HOST')}:{options.port}"


def stop_nodes() -> int:
    """Stop the processes of Ray that dbdyno has started on this machine; returns their number."""
    processes = list(_started())
    for process in processes:
        with suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(processes, _STOP_S_MAX)
    for process in alive:
        with suppress(psutil.Error):
            process.kill()
    return len(processes)


def _started() -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.pid != os.getpid() and process.environ().get(MARK):
                yield process


def _find_program() -> str:
    """The path of the program `ray`. Raises FleetProblem."""
    try:
        return find_program("ray")
    except EngineProblem as problem:
        raise FleetProblem(*MISSING_EXTRA, ExitCode.USAGE) from problem


def _require_token(*, is_head: bool) -> None:
    """Create the token of a new cluster; require that of an existing one. Raises FleetProblem."""
    path = token_file()
    if path.exists() or os.environ.get("RAY_AUTH_TOKEN"):
        return
    if not is_head:
        raise FleetProblem(
            f"{path} is missing: every host of a cluster has the same token",
            f"Copy {path} from the head, readable by you alone (mode 600)",
            ExitCode.USAGE,
        )
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)
    path.write_text(os.urandom(32).hex())


# `read` waits in one thread; a stop, a clock or a start needs another one.
_THREADS = 3


class LocalPlace(Place):
    """An engine of this machine."""

    def __init__(self, number: int) -> None:
        self.host = socket.gethostname()
        self.name = f"engine {number}"
        self._engine = EngineHost()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix=self.name)

    def call(self, method: str, *arguments: object) -> Future[Any]:
        """See `Place`."""
        return self._threads.submit(getattr(self._engine, method), *arguments)

    def close(self) -> None:
        """Kill the engine."""
        self._engine.close()
        self._threads.shutdown(wait=True)


class LocalCarrier(Carrier):
    """Engines as child processes of dbdyno."""

    is_local = True

    def __init__(self) -> None:
        self._places: list[LocalPlace] = []

    def place(self, engines: int, per_host: int) -> Sequence[Place]:  # noqa: ARG002 — there is one host.
        """See `Carrier`. All engines are on this machine, however many `per_host` allows."""
        self._places = [LocalPlace(number) for number in range(1, engines + 1)]
        return self._places

    def count_hosts(self) -> int:
        """One: this machine."""
        return 1

    def release(self) -> None:
        """See `Carrier`."""
        while self._places:
            self._places.pop().close()


def open_carrier(address: str) -> Carrier:
    """What places the engines of a fleet with that address. Raises FleetProblem."""
    if address == FLEET_LOCAL:
        return LocalCarrier()
    # Ray reads them when it is imported.
    os.environ.update(ray_environment())
    try:
        from dbdyno.fleet.ray_carrier import RayCarrier  # noqa: PLC0415 — Ray is optional, and takes seconds.
    except ImportError as error:
        raise FleetProblem(*MISSING_EXTRA, ExitCode.USAGE) from error
    return RayCarrier(address)
