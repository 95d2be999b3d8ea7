"""What a run measures before its first block: the ceiling of the load generator, the pilot that determines
its number of event loops, and the warm-up trials, from which the warm-up time is derived.

::

    ceiling.json                    `Ceiling` of each workload: the throughput without a server
    workers.json                    `Workers`
    pilot/01-NAME.jsonl.gz          the engine's records of one step of the pilot
          01-NAME-hook-NAME.txt     output of the user's hooks around the steps of one variant and workload
    warmup_trials.json              `WarmupTrials`
    warmup_trials/01-NAME.jsonl.gz  the engine's records of one warm-up trial
              01-NAME-hook-NAME.txt   output of the user's hooks
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NotRequired, TypedDict, cast

from dbdyno.finding import FreeForm
from dbdyno.store import files
from dbdyno.store.run import Run
from dbdyno.store.trial import write_hook_output

CEILING, WORKERS, WARMUP_TRIALS = "ceiling.json", "workers.json", "warmup_trials.json"
PILOT_FOLDER, WARMUP_FOLDER = "pilot", "warmup_trials"


class Ceiling(TypedDict):
    """The ceiling of one workload."""

    # Connections of its highest load, with which it was measured.
    connections: int
    # Transactions per second; None if the measurement failed.
    events_per_s: float | None
    failure: str | None


def read_ceilings(run: Run) -> dict[str, Ceiling]:
    """Title of a workload -> its ceiling; {} if none was measured. Raises StoreProblem."""
    stored = _read(run, CEILING)
    return stored["workloads"] if stored else {}


def write_ceilings(run: Run, value: dict[str, Ceiling]) -> None:
    """Write ceiling.json. Raises StoreProblem."""
    files.write_json(run.path / CEILING, {"schema": 1, "workloads": value})


def _read(run: Run, name: str) -> Any:
    path = run.path / name
    return files.read_json(path) if path.exists() else None


class Usage(TypedDict):
    """What one step of the pilot measured."""

    # CPU time of the busiest event loop, and its time of waiting for a CPU, divided by wall time.
    busy: float
    waiting: float
    # Transactions per second.
    events_per_s: float


class Step(TypedDict):
    """One step of the pilot: a few seconds of load with a number of event loops."""

    variant: str
    workload: str
    workers: int
    # None if the step failed.
    usage: Usage | None
    failure: str | None
    # Name of the file with the engine's records.
    records: str


class Workers(TypedDict):
    """The content of workers.json."""

    schema: int
    # Event loops in every trial.
    workers: int
    # The largest number that the pilot may choose.
    limit: int
    # Why there was no pilot; "" if there was one.
    reason: str
    steps: list[Step]


def read_workers(run: Run) -> Workers | None:
    """workers.json; None if the run has none. Raises StoreProblem."""
    return cast("Workers | None", _read(run, WORKERS))


def write_workers(run: Run, value: Workers) -> None:
    """Write workers.json. Raises StoreProblem."""
    files.write_json(run.path / WORKERS, value)


def discard_steps(run: Run) -> None:
    """Delete the files of a pilot that was interrupted. Raises StoreProblem."""
    folder = run.path / PILOT_FOLDER
    if folder.exists():
        with files.store_errors(folder):
            shutil.rmtree(folder)


def chosen_workers(run: Run) -> int | None:
    """The number of event loops that the pilot has chosen; None if the experiment declares it."""
    stored = read_workers(run)
    return None if stored is None else stored["workers"]


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
    # With a latency objective: the rate whose half meets it, which is `peak`, a half of it, a quarter …
    top_rate: NotRequired[float]
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
    return cast("WarmupTrials | None", _read(run, WARMUP_TRIALS))


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
    run: Run, number: int, variant: str, folder: str = WARMUP_FOLDER
) -> Iterator[WarmupTrialWriter]:
    """Open the files of a warm-up trial; compress its records at the end. Raises StoreProblem."""
    plain = _plain(run, number, variant, folder)
    with files.store_errors(plain), plain.open("wb") as file:
        yield WarmupTrialWriter(plain, file)
        file.flush()
        os.fsync(file.fileno())
    files.compress(plain)
