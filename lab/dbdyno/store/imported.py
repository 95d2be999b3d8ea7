"""A document of others, stored next to the runs: the file, and what `dbdyno read` says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.store import files
from dbdyno.store.files import StoreProblem
from dbdyno.store.run import new_folder

READING = "reading.json"
_SOURCE = "document"
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_MAX = 60


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
