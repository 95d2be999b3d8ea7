"""Keeps passwords out of the environment of the programs that dbdyno starts, and out of core files.

Only this module reads passwords from environment variables. The load generator gets its password explicitly.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable

VARIABLE = "DBDYNO_PASSWORD"
# Values of the variables that are no longer in `os.environ`.
_hidden: dict[str, str] = {}


def protect() -> None:
    """Called at the start of a command: its programs do not inherit `VARIABLE`, and no core file is written.

    A limit of 0 does not hold for a core that the system pipes to a program; 1 prevents both (core(5)).
    """
    hide([VARIABLE])
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (1 if hard else 0, hard))


def hide(names: Iterable[str]) -> None:
    """Remove these variables from the environment; `read` still returns their values."""
    for name in names:
        if name in os.environ:
            _hidden[name] = os.environ.pop(name)


def read(name: str) -> str | None:
    """The value of an environment variable at the start of this process; None if it was not set."""
    return os.environ.get(name, _hidden.get(name))


def whole_environment() -> dict[str, str]:
    """The environment at the start of this process, for commands of dbdyno itself."""
    return {**_hidden, **os.environ}
