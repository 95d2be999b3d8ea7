"""SHA-256 digests of the files of a folder, in its file digests.jsonl.

They show mistakes and naive changes of files. Anyone who can write to the folder can write the digests too.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path

NAME = "digests.jsonl"
# Files without which a run is incomplete. Others may have been removed by dbdyno itself.
_REQUIRED = frozenset(
    {
        "experiment.json",
        "schedule.json",
        "checks.json",
        "plan.json",
        "server.json",
        "trial.json",
        "events.jsonl.gz",
    }
)


def start(folder: Path) -> None:
    """Note the digests of all files that are written into `folder` from now on. Raises OSError."""
    (folder / NAME).touch()


def note(path: Path, content: Path) -> None:
    """Note the digest of `path`, which gets the bytes of `content`, if its folder notes digests. Raises
    OSError.
    """
    listed = path.with_name(NAME)
    if not listed.exists():
        return
    with content.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    line = json.dumps({"file": path.name, "sha256": digest}) + "\n"
    descriptor = os.open(listed, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
    try:
        os.write(descriptor, line.encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def changed(folder: Path) -> Iterator[str]:
    """The names of the files of `folder` that were changed or removed since they were written.

    Raises OSError. A file may have each of its noted digests, because a process may be killed between the
    note and the file.
    """
    known: dict[str, set[str]] = {}
    listed = folder / NAME
    if not listed.is_file():
        return
    for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            entry = json.loads(line)
            known.setdefault(str(entry["file"]), set()).add(str(entry["sha256"]))
        except (ValueError, TypeError, KeyError):
            # A process was killed while it wrote the last line; any other such line is a change.
            continue
    for name, expected in sorted(known.items()):
        path = folder / name
        if path.is_file():
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() not in expected:
                    yield name
        elif name in _REQUIRED and not path.with_name(f".{name}.partial").exists():
            yield name
