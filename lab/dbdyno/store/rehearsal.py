"""The rehearsal of a run: the long trials before the first block, and the warm-up time derived from them.

::

    rehearsal.json              {"schema": 1, "warmup_s": …, "trials": [{"variant", "workload", "at",
                                "length_s", "settle_s": … | null, "series": [means of 5 s],
                                "failure": text | null, "records": file,
                                "hooks": {name: {"argv", "exit_status", "seconds"}}}]}
    rehearsal/01-NAME.jsonl.gz  the engine's records of one long trial
              01-NAME-hook-NAME.txt   output of the user's hooks
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from dbdyno.store import files
from dbdyno.store.run import Run
from dbdyno.store.trial import write_hook

REHEARSAL = "rehearsal.json"
FOLDER = "rehearsal"


def read_rehearsal(run: Run) -> dict[str, Any] | None:
    """rehearsal.json; None if the run has none. Raises StoreProblem."""
    path = run.path / REHEARSAL
    if not path.exists():
        return None
    value: dict[str, Any] = files.read_json(path)
    return value


def write_rehearsal(run: Run, value: Mapping[str, Any]) -> None:
    """Write rehearsal.json. Raises StoreProblem."""
    files.write_json(run.path / REHEARSAL, value)


def rehearsed_warmup_s(run: Run) -> float | None:
    """The warm-up of every trial, as the long trials determined it; None without long trials."""
    rehearsal = read_rehearsal(run)
    return None if rehearsal is None else float(rehearsal["warmup_s"])


def is_warm_state_checked(run: Run) -> bool:
    """Whether a long trial of every variant on every workload completed."""
    rehearsal = read_rehearsal(run)
    return rehearsal is not None and all(trial["failure"] is None for trial in rehearsal["trials"])


class LongTrialWriter:
    """Writes the files of one long trial while it runs. Create it with `long_trial_writer`."""

    def __init__(self, plain: Path, file: BinaryIO) -> None:
        self._plain, self._file = plain, file
        # Name of the file of records after compression.
        self.records = f"{plain.name}.gz"
        # How each hook ended, in the format of rehearsal.json.
        self.hooks: dict[str, Any] = {}

    def event(self, line: bytes) -> None:
        """Append one line of the engine's stream, unchanged. Raises StoreProblem."""
        with files.store_errors(self._plain):
            self._file.write(line)

    def hook(self, name: str, words: str, argv: list[str], exit_status: int | None, seconds: float) -> None:
        """Store a hook's output and how the hook ended. Raises StoreProblem."""
        path = self._plain.with_name(f"{self._plain.stem}-hook-{name}.txt")
        self.hooks[name] = write_hook(path, words, argv, exit_status, seconds)


@contextmanager
def long_trial_writer(run: Run, number: int, variant: str) -> Iterator[LongTrialWriter]:
    """The writer of a long trial. Its records are compressed at the end. Raises StoreProblem."""
    files.make_folder(run.path / FOLDER)
    plain = run.path / FOLDER / f"{number:02}-{re.sub(r'[^A-Za-z0-9._-]+', '-', variant)}.jsonl"
    with files.store_errors(plain), plain.open("wb") as file:
        yield LongTrialWriter(plain, file)
        file.flush()
        os.fsync(file.fileno())
    files.compress(plain)
