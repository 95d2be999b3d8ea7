"""The rehearsal of a run: the long trials before the first block, and the warm-up that came of them.

::

    rehearsal.json              {"schema": 1, "warmup_s": …, "trials": [{"variant", "workload", "at",
                                "length_s", "settle_s": … | null, "series": [means of 5 s],
                                "failure": text | null, "records": file}]}
    rehearsal/01-NAME.jsonl.gz  the engine's records of one long trial
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dbdyno.store import files
from dbdyno.store.run import Run

REHEARSAL = "rehearsal.json"
FOLDER = "rehearsal"


def read_rehearsal(run: Run) -> dict[str, Any] | None:
    """rehearsal.json; None where the run has none. Raises StoreProblem."""
    path = run.path / REHEARSAL
    if not path.exists():
        return None
    value: dict[str, Any] = files.read_json(path)
    return value


def write_rehearsal(run: Run, value: Mapping[str, Any]) -> None:
    """Write rehearsal.json. Raises StoreProblem."""
    files.write_json(run.path / REHEARSAL, value)


def rehearsed_warmup_s(run: Run) -> float | None:
    """The warm-up that the rehearsal chose for every trial; None without a rehearsal."""
    rehearsal = read_rehearsal(run)
    return None if rehearsal is None else float(rehearsal["warmup_s"])


def is_warm_state_checked(run: Run) -> bool:
    """Whether a long trial of every variant on every workload came to its end."""
    rehearsal = read_rehearsal(run)
    return rehearsal is not None and all(trial["failure"] is None for trial in rehearsal["trials"])


@contextmanager
def rehearsal_records(run: Run, number: int, variant: str) -> Iterator[tuple[str, Callable[[bytes], None]]]:
    """The name of a long trial's records, and a function that appends a line to them. Compressed at the end.

    Raises StoreProblem.
    """
    files.make_folder(run.path / FOLDER)
    plain = run.path / FOLDER / f"{number:02}-{re.sub(r'[^A-Za-z0-9._-]+', '-', variant)}.jsonl"
    with files.plainly(plain), plain.open("wb") as file:

        def append(line: bytes) -> None:
            with files.plainly(plain):
                file.write(line)

        yield f"{plain.name}.gz", append
        file.flush()
        os.fsync(file.fileno())
    files.compress(plain)
