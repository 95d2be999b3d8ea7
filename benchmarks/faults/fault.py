"""The interface of a fault; `registry` lists the modules that define faults."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .cells import PHASES
from .scene import Scene

URL = ("remote", "command")
PRIVATE = ("local", "docker")


def nothing(_scene: Scene) -> None:
    """Changes nothing."""


def available() -> str:
    """No requirement."""
    return ""


def except_in(*phases: str, why: str) -> dict[str, str]:
    """The reason for all phases but these."""
    return {phase: why for phase in PHASES if phase not in phases}


# A server and a load generator run only in these.
WITH_SERVER = except_in("rehearse", "prepare", "restore", "warm-up", "measure", why="no server is in use")
WITH_ENGINE = except_in("prepare", "warm-up", "measure", why="no load generator runs")


@dataclass(frozen=True)
class Fault:
    """One fault: how it is injected, and where it can happen."""

    name: str
    # For the document.
    text: str
    inject: Callable[[Scene], None]
    # Changes the scene before dbdyno starts.
    before: Callable[[Scene], None] = nothing
    # Phase or kind of server -> why the fault cannot happen there.
    never: Mapping[str, str] = field(default_factory=dict)
    # Why this machine cannot make the fault; empty if it can.
    missing: Callable[[], str] = available
    # Whether the fault acts from the start of dbdyno, so that everything that it prints counts.
    acts_from_start: bool = False
    # Seconds after the fault within which dbdyno must have ended.
    limit_s: float = 45.0
    # Whether the run ends by the fault itself, so that it is resumed afterwards.
    ends_lab: bool = False
    # Whether standard error is closed, so that nothing can be printed.
    is_silent: bool = False
