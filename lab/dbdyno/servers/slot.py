"""A place on disk for a server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Slot:
    """One place. Paths are as long, and ports have as many digits, as those of every other in its `Slots`."""

    directory: Path
    # Holds the socket: `directory`, or a short one where a socket's path in it would be too long.
    sockets: Path
    port: int
    admin_port: int
