"""Stores the warm-up trials, which run before the first block, and the warm-up time derived from them.

::

    warmup_trials.json              `WarmupTrials`
    warmup_trials/01-NAME.jsonl.gz  the engine's records of one warm-up trial
              01-NAME-hook-NAME.txt   output of the user's hooks
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NotRequired, TypedDict

from dbdyno.finding import FreeForm
from dbdyno.store import files
from dbdyno.store.run import Run
from dbdyno.store.trial import write_hook_output

WARMUP_TRIALS = "warmup_trials.json"
FOLDER = "warmup_trials"
# The name of the file in runs before the end of November 2026.
_EARLIER_NAME = "rehearsal.json"


class WarmupTrial(TypedDict):
    """One warm-up trial."""

    variant: str
    workload: str
    at: Mapping[str, int | float]
    length_s: float
    # Seconds until `series` was steady; None if it never was, or the trial failed.
    settle_s: float | None
    # Means over 5 s: transactions per second or, in an open loop, latency in microseconds.
    series: list[float]
    failure: str | None
    # Transactions per second at the end of the trial; only in a closed loop.
    peak: NotRequired[float]
    # Name of the file with the engine's records.
    records: str
    # Name of each hook -> its command line, exit status and duration.
    hooks: FreeForm


class WarmupTrials(TypedDict):
    """The content of warmup_trials.json."""

    schema: int
    warmup_s: float
    trials: list[WarmupTrial]


def read_warmup_trials(run: Run) -> WarmupTrials | None:
    """warmup_trials.json; None if the run has none. Raises StoreProblem."""
    paths = (run.path / WARMUP_TRIALS, run.path / _EARLIER_NAME)
    path = next((path for path in paths if path.exists()), None)
    if path is None:
        return None
    value: WarmupTrials = files.read_json(path)
    return value


def write_warmup_trials(run: Run, value: WarmupTrials) -> None:
    """Write warmup_trials.json. Raises StoreProblem."""
    files.write_json(run.path / WARMUP_TRIALS, value)


def derived_warmup_s(run: Run) -> float | None:
    """The warm-up time of all trials, derived from the warm-up trials; None without warm-up trials."""
    stored = read_warmup_trials(run)
    return None if stored is None else stored["warmup_s"]


def is_warm_state_checked(run: Run) -> bool:
    """Whether a warm-up trial of every variant on every workload completed."""
    stored = read_warmup_trials(run)
    return stored is not None and all(trial["failure"] is None for trial in stored["trials"])


class HookWriter:
    """Writes the output of hooks to files whose names begin as that of a file of records."""

    def __init__(self, plain: Path) -> None:
        self._plain = plain
        # Name of each hook -> its command line, exit status and duration, as in warmup_trials.json.
        self.hooks: dict[str, Any] = {}

    def write_hook(
        self, name: str, output: str, argv: list[str], exit_status: int | None, seconds: float
    ) -> None:
        """Store a hook's output, exit status and duration. Raises StoreProblem."""
        path = self._plain.with_name(f"{self._plain.stem}-hook-{name}.txt")
        self.hooks[name] = write_hook_output(path, output, argv, exit_status, seconds)


class WarmupTrialWriter(HookWriter):
    """Writes the files of one warm-up trial while it runs. Create it with `warmup_trial_writer`."""

    def __init__(self, plain: Path, file: BinaryIO) -> None:
        super().__init__(plain)
        self._file = file
        # Name of the file of records after compression.
        self.records = f"{plain.name}.gz"

    def append_event(self, line: bytes) -> None:
        """Append one line of the engine's output. Raises StoreProblem."""
        with files.store_errors(self._plain):
            self._file.write(line)


def hook_writer(run: Run, number: int, variant: str, folder: str) -> HookWriter:
    """The writer of hooks that belong to several files of records; `number` is that of the first one. Raises
    StoreProblem.
    """
    return HookWriter(_plain(run, number, variant, folder))


def _plain(run: Run, number: int, variant: str, folder: str) -> Path:
    files.make_folder(run.path / folder)
    return run.path / folder / f"{number:02}-{re.sub(r'[^A-Za-z0-9._-]+', '-', variant)}.jsonl"


@contextmanager
def warmup_trial_writer(
    run: Run, number: int, variant: str, folder: str = FOLDER
) -> Iterator[WarmupTrialWriter]:
    """Open the files of a warm-up trial; compress its records at the end. Raises StoreProblem."""
    plain = _plain(run, number, variant, folder)
    with files.store_errors(plain), plain.open("wb") as file:
        yield WarmupTrialWriter(plain, file)
        file.flush()
        os.fsync(file.fileno())
    files.compress(plain)
