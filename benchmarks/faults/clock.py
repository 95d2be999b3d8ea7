"""The wall clock is stepped by an hour, forwards and backwards, for dbdyno and the load generator.

libfaketime changes what a process reads from the wall clock; the monotonic clock goes on, as in a real step.
The servers, which dbdyno starts with an environment of its own, keep the true time.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from .fault import Fault
from .scene import Scene

PLACES = ("/usr/lib/*/faketime/libfaketimeMT.so.1", "/usr/lib/faketime/libfaketimeMT.so.1")


def find_library() -> Path | None:
    """libfaketime; None if it is not installed."""
    return next((path for place in PLACES for path in Path("/").glob(place.removeprefix("/"))), None)


def _missing() -> str:
    return "" if find_library() else "needs libfaketime"


def _offset_file(scene: Scene) -> Path:
    return scene.results / "clock"


def _use_library(scene: Scene) -> None:
    _offset_file(scene).write_text("+0\n")
    scene.environment |= {
        "LD_PRELOAD": str(find_library()),
        "FAKETIME_TIMESTAMP_FILE": str(_offset_file(scene)),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_NO_CACHE": "1",
    }


def _step(offset: str) -> Callable[[Scene], None]:
    def inject(scene: Scene) -> None:
        replacement = _offset_file(scene).with_suffix(".new")
        replacement.write_text(f"{offset}\n")
        replacement.rename(_offset_file(scene))

    return inject


FAULTS = [
    Fault(
        f"clock-{name}",
        f"the clock is set {text} by an hour",
        _step(offset),
        before=_use_library,
        missing=_missing,
    )
    for name, text, offset in (("forward", "forward", "+3600"), ("back", "back", "-3600"))
]
