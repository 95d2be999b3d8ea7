"""Finds stored runs: all of them, the newest first, or the one that a user names.

Documents of others are stored next to the runs, with what `dbdyno read` says of them, and are found likewise.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.store import files
from dbdyno.store.files import StoreProblem
from dbdyno.store.run import Run, new_folder, open_folder, run_order

EXPERIMENT = "experiment.json"
# How users name a run instead of its folder: the number at the end of the folder's name.
_NUMBER = re.compile(r"r?0*(\d{1,9})")
# Files of a stored document: what was read, and the document itself.
READING, _SOURCE = "reading.json", "document"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_MAX = 60


def list_runs(results: Path, experiment: str | None = None) -> list[Path]:
    """The folders of all runs below `results`, or of those of one experiment, the newest first."""
    folders = [results / experiment] if experiment else list(_folders(results))
    paths = [path for folder in folders for path in _folders(folder)]
    # A folder becomes a run when its experiment.json is written; asking for 10,000 files would take a second.
    return sorted(paths, key=run_order, reverse=True)


def find_run(
    results: Path,
    name: Path | None,
    fix: str = files.RESTORE,
    *,
    accept_changes: bool = False,
    quick: bool = False,
) -> Run:
    """The run in this folder, or with this number, or the newest run of the experiment with this name, or the
    newest of all runs if there is no name. Raises StoreProblem; the other arguments are those of `Run.open`.
    """
    folder = find_folder(results, name, (EXPERIMENT,))
    return Run.open(folder, fix, accept_changes=accept_changes, quick=quick)


def find_folder(results: Path, name: Path | None, files_of: Sequence[str]) -> Path:
    """The folder that `find_run` describes, with one of these files, unless it is named by its path. Raises
    StoreProblem.
    """
    if name is not None and (len(name.parts) > 1 or name.is_dir()):
        return name
    paths = list_runs(results)
    if name is not None and (number := _NUMBER.fullmatch(name.name)):
        paths = [path for path in paths if run_order(path)[0] == int(number[1])]
    elif name is not None:
        paths = [path for path in paths if path.parent.name == name.name]
    for path in paths:
        if any((path / file).is_file() for file in files_of):
            return path
    named = "" if name is None else f" {name}"
    raise StoreProblem(
        f"there is no run{named} below {results}",
        "Name a run by its folder, its number or its experiment (dbdyno list shows all), or choose another "
        "folder with --results",
    )


def began(path: Path) -> datetime | None:
    """When the run in this folder began, in UTC; None if the folder's name does not tell it."""
    stamp = re.match(r"\d{8}T\d{6}", path.name)
    try:
        return datetime.strptime(stamp[0], "%Y%m%dT%H%M%S").replace(tzinfo=UTC) if stamp else None
    except ValueError:
        return None


def is_running(run: Run) -> bool:
    """Whether a dbdyno writes to the run."""
    descriptor = open_folder(run.path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _folders(path: Path) -> Iterator[Path]:
    """The folders in a folder, without hidden ones; none if it does not exist. Raises StoreProblem."""
    with files.store_errors(path):
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
        except (FileNotFoundError, NotADirectoryError):
            return
    yield from (path / name for name in names)


class Imported:
    """A stored document."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, results: Path, name: str, source: bytes, reading: Mapping[str, Any]) -> Imported:
        """Store a document as `results`/<name>/<UTC time>-r<number>. Raises StoreProblem."""
        folder = _NOT_IN_NAMES.sub("-", name).strip("-.")[:_NAME_MAX] or "document"
        stored = cls(new_folder(results, folder))
        files.make_folder(stored.path)
        files.write(stored.path / _SOURCE, source)
        # Written last: a folder with reading.json is complete.
        files.write_json(stored.path / READING, dict(reading))
        return stored

    @classmethod
    def open(cls, path: Path) -> Imported:
        """The document in this folder. Raises StoreProblem if there is none."""
        if not is_imported(path):
            raise StoreProblem(f"{path} has no {READING}", "dbdyno read --store writes such folders")
        return cls(path)

    @property
    def reading(self) -> dict[str, Any]:
        """What was read, as `dbdyno read --format json` prints it. Raises StoreProblem."""
        value: dict[str, Any] = files.read_json(self.path / READING)
        return value

    @property
    def source(self) -> Path:
        """The document itself."""
        return self.path / _SOURCE


def is_imported(path: Path) -> bool:
    """Whether a folder has a document, not a run."""
    return (path / READING).is_file()
