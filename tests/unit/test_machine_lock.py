"""One measurement at a time on a machine. Real processes hold the locks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = """
import sys
from dbdyno.run.machine_lock import only_measurement

name, share = sys.argv[1:]
tell = lambda text: print(text, flush=True)
with only_measurement(f"dbdyno compare {name}.toml", tell, share=share == "share"):
    print("measures", flush=True)
    sys.stdin.read()
"""


class Processes:
    """Processes that measure until they are ended."""

    def __init__(self, runtime: Path) -> None:
        self._environment = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
        self.started: list[subprocess.Popen[str]] = []

    def start(self, name: str, share: str = "") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, name, share],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )
        self.started.append(process)
        return process


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    processes = Processes(runtime)
    yield processes
    for process in processes.started:
        process.kill()
        process.communicate()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_measurement_waits_for_another_one_until_its_process_ends(processes: Processes) -> None:
    first = processes.start("a")
    assert line(first) == "measures"
    second = processes.start("b")
    assert line(second) == (
        f"waiting for dbdyno compare a.toml (process {first.pid}), which measures on this machine "
        "(--share-machine starts at once)"
    )
    first.kill()
    assert line(second) == "measures"


def test_a_shared_machine_is_not_waited_for_but_keeps_others_waiting(processes: Processes) -> None:
    first = processes.start("a")
    assert line(first) == "measures"
    shared = processes.start("b", "share")
    assert line(shared) == "measures"
    first.communicate()
    third = processes.start("c")
    assert line(third).startswith(f"waiting for dbdyno compare b.toml (process {shared.pid}),")
    shared.communicate()
    assert line(third) == "measures"


def test_a_directory_of_locks_that_others_may_use_is_refused_and_nothing_waits(tmp_path: Path) -> None:
    runtime = tmp_path / "open"
    (runtime / "dbdyno").mkdir(parents=True)
    (runtime / "dbdyno").chmod(0o777)
    processes = Processes(runtime)
    process = processes.start("a")
    assert "does not belong to this user alone" in line(process)
    assert line(process) == "measures"
    process.communicate()
