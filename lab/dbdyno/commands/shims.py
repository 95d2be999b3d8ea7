"""`dbdyno shims DIR`: links named as the originals, for scripts that call them by name.

A shell's alias does not reach a script, cron, xargs or `#!/usr/bin/env sysbench`; a folder that stands first
in PATH does. A link leads straight to dbdyno-compat, which is the program by whose name it is started.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from dbdyno.binary import COMPAT, ENGINE, find_program
from dbdyno.drop_ins import LINKS
from dbdyno.problem import Problem


def shims(
    folder: Annotated[
        Path, typer.Argument(help="Where to make them; made if missing.", metavar="DIR", show_default=False)
    ],
) -> None:
    """Make links under which scripts find the drop-ins by the originals' names."""
    program = Path(find_program(COMPAT)).resolve()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in LINKS:
            _link(folder / name, program)
            print(folder / name)
    except OSError as error:
        raise Problem(
            f"no link could be made in {folder}: {error.strerror}", "choose a folder you may write to"
        ) from error
    print(f'Put it first: export PATH="{folder.resolve()}:$PATH"', file=sys.stderr)


def _link(path: Path, program: Path) -> None:
    """A link at `path`, in place of an older one of ours and of nothing else."""
    # Until version 0.1 the engine itself was these programs.
    ours = path.is_symlink() and path.readlink().name in (COMPAT, ENGINE)
    if not ours and (path.exists() or path.is_symlink()):
        raise Problem(
            f"{path} is there already, and is no link of ours", "remove it or choose another folder"
        )
    # Made aside and renamed, so that a script that runs at this moment finds one or the other.
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    aside.symlink_to(program)
    aside.replace(path)
