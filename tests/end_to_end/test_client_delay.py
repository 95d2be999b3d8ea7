"""The delay inside the client, on a real MariaDB: small where the client has a CPU, large without one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dbdyno.measure.recording import Recording, generator_delays, read
from dbdyno.run.engine import Engine
from dbdyno.servers.kinds.local import LocalServer

pytestmark = pytest.mark.alone
# Processes that take the client's CPU away.
HOGS = 8


@contextmanager
def hogged(cpu: str) -> Iterator[None]:
    """Keeps one CPU busy."""
    hog = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"]
    hogs = [subprocess.Popen(hog) for _ in range(HOGS)]
    try:
        yield
    finally:
        for process in hogs:
            process.kill()
            process.wait()


def delays(server: LocalServer, cpu: str, transport: str = "tcp") -> tuple[list[Any], Recording]:
    """The 99th percentile of each interval in microseconds, and all records."""
    address = server.address()
    plan = {
        "schema": 1,
        "target": address.target(transport),
        "workload": {"name": "oltp_point_select", "options": {"tables": 1, "table_size": 1000}},
        "load": {"connections": 4},
        "phases": {"measure_us": 3_000_000},
        "seed": 1,
    }
    records: list[Any] = []
    assert Engine().run("prepare", plan, address.environment()).done
    result = Engine().run("run", plan, address.environment(), records.append, cpu)
    assert result.done, result.failure()
    seen = [r["data"]["generator"]["client_delay_us_p99"] for r in records if r["type"] == "interval"]
    return seen, read(records)


def test_a_client_without_a_cpu_lets_replies_lie(mariadb: LocalServer) -> None:
    cpu = str(max(os.sched_getaffinity(0)))
    with_room, _ = delays(mariadb, cpu)
    with hogged(cpu):
        crowded, recording = delays(mariadb, cpu)
    assert all(delay is not None for delay in with_room + crowded)
    # The kernel gives each of the others some milliseconds at a time.
    assert sorted(crowded)[1] > 3_000
    # Other work on the machine can take the CPU from the first run too, but not in its best second.
    assert sorted(crowded)[1] > 2 * min(with_room)
    assert recording.measure["generator"]["client_delay_us_p99"] >= min(crowded)
    assert "client-delay" in [warning["code"] for warning in generator_delays(recording)]


def test_a_unix_socket_tells_nothing(mariadb: LocalServer) -> None:
    seen, _ = delays(mariadb, str(max(os.sched_getaffinity(0))), "unix")
    assert seen == [None, None, None]
