"""`dbdyno clean`: the loaded data that runs keep for the next run (snapshots), and how large they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem

if TYPE_CHECKING:
    from dbdyno.servers.snapshots.directories import CachedSnapshot


def clean(
    results: options.Results = options.RESULTS,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Remove all loaded data except those in use and the N used last.", min=0
        ),
    ] = None,
) -> None:
    """Show the loaded data that runs have left in the cache, or remove them with --keep."""
    from dbdyno.servers.snapshots import directories
    from dbdyno.servers.workspace import Workspace

    if not results.is_dir():
        raise Problem(f"there is no folder {results}", "Choose a folder with --results DIR")
    with closing(Workspace.open(results, removes=keep is not None)) as workspace:
        if keep is not None:
            removed = directories.remove_unused_snapshots(workspace, keep)
            directories.remove_unused_empty(workspace, keep)
            for folder_removed in removed:
                print(f"removed {_line(folder_removed)}")
            print(f"{_size(removed)} removed from {workspace.snapshots}", file=sys.stderr)
        left = directories.cached_snapshots(workspace)
        for folder_removed in left:
            print(_line(folder_removed))
        for path in workspace.unmarked():
            print(
                f"{path} has no mark of dbdyno, which therefore does not remove it: if it is of an earlier "
                "version, remove it yourself",
                file=sys.stderr,
            )
        fix = "" if keep is not None or not left else "; dbdyno clean --keep 2 removes all but the last two"
        in_use = " (in use)" if keep is not None and len(left) > keep else ""
        print(f"{_size(left)} left in {workspace.snapshots}{in_use}{fix}", file=sys.stderr)


def _line(snapshot: CachedSnapshot) -> str:
    from dbdyno.experiment.base import format_duration

    age = format_duration(max(0.0, time.time() - snapshot.last_used))
    return f"{snapshot.key}  {snapshot.bytes / 2**20:>10,.1f} MiB  used {age} ago  {snapshot.describe()}"


def _size(snapshots: Sequence[CachedSnapshot]) -> str:
    count = f"{len(snapshots)} snapshot{'' if len(snapshots) == 1 else 's'}"
    return f"{count} of loaded data, {sum(snapshot.bytes for snapshot in snapshots) / 2**20:,.1f} MiB,"
