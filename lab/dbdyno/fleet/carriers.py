"""A fleet of processes on this machine, for limits of one process and for a try without a cluster; and the
choice of a carrier by its address.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from dbdyno.experiment.model import FLEET_LOCAL
from dbdyno.fleet.carrier import Carrier, FleetProblem, Place
from dbdyno.fleet.cluster import MISSING_EXTRA, ray_environment
from dbdyno.fleet.engine_host import EngineHost
from dbdyno.problem import ExitCode

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
