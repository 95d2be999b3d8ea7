"""`dbdyno shims DIR`: creates symlinks named sysbench and mysqlslap for scripts that call these programs.

Scripts, cron, xargs and `#!/usr/bin/env sysbench` ignore shell aliases but use the first folder in PATH.
Every link points to dbdyno-compat, which behaves like the program by whose name it is called.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.binary import COMPAT, ENGINE, LINKS, find_program
from dbdyno.problem import Problem


def shims(
    folder: Annotated[
        Path,
        typer.Argument(help="Folder for the links; created if missing.", metavar="DIR", show_default=False),
    ],
) -> None:
    """Create sysbench, mysqlslap and mariadb-slap symlinks in DIR."""
    program = Path(find_program(COMPAT)).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in LINKS:
            _link(folder / name, program)
            print(folder / name)
    except OSError as error:
        raise Problem(
            f"no link could be created in {folder}: {error.strerror}", "Choose a folder that you can write to"
        ) from error
    print(f'Put this folder first in PATH: export PATH="{folder.resolve()}:$PATH"', file=sys.stderr)


def _link(path: Path, program: Path) -> None:
    """Create a link at `path`; only an older link to dbdyno is replaced."""
    # Before version 0.1 the links pointed to the engine.
    replaceable = path.is_symlink() and path.readlink().name in (COMPAT, ENGINE)
    if not replaceable and (path.exists() or path.is_symlink()):
        raise Problem(f"{path} exists and is not a link to dbdyno", "Remove it or choose another folder")
    # Create it under another name and rename it, so that a running script always finds a link.
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.symlink_to(program)
    temporary.replace(path)
