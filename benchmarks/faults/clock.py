"""The wall clock is stepped by an hour, forwards and backwards, for dbdyno and the load generator.

`clock_step.c` changes what a process reads from the wall clock; the monotonic clock goes on, as in a real
step. The servers, which dbdyno starts with an environment of its own, keep the true time.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from .fault import Fault
from .scene import Scene

SOURCE = Path(__file__).with_name("clock_step.c")
STEP_S = 3600


def _missing() -> str:
    return "" if shutil.which("cc") else "needs a C compiler"


def _offset_file(scene: Scene) -> Path:
    return scene.results / "clock"


def _use_library(scene: Scene) -> None:
    library = scene.results / "clock_step.so"
    subprocess.run(["cc", "-O", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    _write(scene, 0)
    scene.environment |= {"LD_PRELOAD": str(library), "DBDYNO_FAULTS_CLOCK": str(_offset_file(scene))}


def _write(scene: Scene, offset_s: int) -> None:
    """Change the mapped file in place."""
    path = _offset_file(scene)
    path.touch()
    with path.open("r+b") as file:
        file.write(offset_s.to_bytes(8, "little", signed=True))


def _step(offset_s: int) -> Callable[[Scene], None]:
    return lambda scene: _write(scene, offset_s)


FAULTS = [
    Fault(
        "clock-forward", "the clock is set forward by an hour", _step(STEP_S), _use_library, missing=_missing
    ),
    Fault("clock-back", "the clock is set back by an hour", _step(-STEP_S), _use_library, missing=_missing),
]
