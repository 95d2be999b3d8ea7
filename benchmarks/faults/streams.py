"""Standard output that is full, and standard error that nobody reads any more."""

from __future__ import annotations

from .fault import Fault, except_in, nothing
from .scene import Scene


def _use_full(scene: Scene) -> None:
    scene.stdout = "/dev/full"


FAULTS = [
    Fault(
        "stdout-full",
        "standard output is on a full disk",
        nothing,
        before=_use_full,
        acts_from_start=True,
        never=except_in("judge", why="dbdyno compare writes to standard output only after the judge"),
    ),
    Fault(
        "stderr-closed",
        "the reader of standard error ends",
        Scene.close_stderr,
        is_silent=True,
    ),
]
