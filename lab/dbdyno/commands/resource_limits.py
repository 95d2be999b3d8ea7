"""Errors whose cause is a limit of this process or machine."""

from __future__ import annotations

import errno


def exhausted_resource(error: Exception) -> str:
    """The resource of this process or machine whose limit caused an error; empty if none did."""
    number = error.errno if isinstance(error, OSError) else None
    if number in (errno.EMFILE, errno.ENFILE):
        return "file handles (ulimit -n)"
    # Python's only error of a thread that cannot start.
    if isinstance(error, MemoryError) or number == errno.ENOMEM or str(error) == "can't start new thread":
        return "memory or threads (ulimit -v, ulimit -u)"
    return ""
