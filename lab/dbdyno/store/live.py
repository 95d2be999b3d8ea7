"""Follows a run in progress by its folder alone: which trial runs, what it measures, findings, the end.

::

    follower = RunFollower(run)
    while (now := follower.read()).is_running:
        ...

A follower locks and writes nothing, and each call reads only what was written since the last one, so
following costs the measured machine little. The figures are those of the engine's records, before the judge:
the whole measuring phase counts, without the cut of `warmup = "auto"`.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.store import files
from dbdyno.store.document import read_texts
from dbdyno.store.endings import Ending, read_endings
from dbdyno.store.listing import is_running
from dbdyno.store.records import LINE_BYTES_MAX, Buckets, Record, parse, read_lines
from dbdyno.store.run import Run
from dbdyno.store.trial import EVENTS
from dbdyno.store.verdict import VerdictFile
from dbdyno.text import Text, as_json, from_json

# "interrupted": the trial has begun and not ended, and no dbdyno writes to the run.
State = Literal["running", "done", "failed", "interrupted"]
# Written by a run in progress.
PROGRESS = "progress.json"
# Records that live figures do not use.
_SKIPPED = (b'{"type":"tick"', b'{"type":"statements"', b'{"type":"hello"')


@dataclass(frozen=True)
class Part:
    """What a trial did in some time: an interval, a slice, or the whole measurement."""

    # The phase, such as "warmup" or "measure".
    phase: str
    # Microseconds since the load began.
    start_us: int
    end_us: int
    # The time that counts; less than from start to end if the load ran in slices.
    counted_us: int
    # Transactions that ended without error.
    events: int
    # Number of errors by MySQL error number or SQLSTATE.
    errors: Mapping[str, int]
    # Latencies as pairs of a bucket's lower edge in microseconds and a count.
    latency_us: Buckets
    # Percentiles such as "p95" -> microseconds, as the engine computed them; {} before the end of a trial.
    percentiles_us: Mapping[str, float] = field(default_factory=dict)

    @property
    def throughput(self) -> float:
        """Transactions per second."""
        return self.events * 1e6 / self.counted_us if self.counted_us > 0 else 0.0

    @property
    def error_count(self) -> int:
        """Number of errors of all kinds."""
        return sum(self.errors.values())


@dataclass(frozen=True)
class LiveTrial:
    """A trial that has begun."""

    trial: Trial
    state: State
    # Why it failed; "" if it did not.
    reason: str = ""
    # The phase of the load; "" while the trial prepares.
    phase: str = ""
    # The intervals or slices so far, of every phase; () for a trial that ended before the follower saw it.
    parts: tuple[Part, ...] = ()
    # The measurement: all of it if the trial has ended, else the part so far. None before it begins.
    measured: Part | None = None
    # CPUs that the server's processes used during the measurement; None until the trial ends, or if unknown.
    server_cpus: float | None = None


@dataclass(frozen=True)
class LiveRun:
    """A run at one moment."""

    # Whether a dbdyno writes to the run.
    is_running: bool
    # Every planned trial, in order; grows if blocks are added or repeated.
    planned: tuple[Trial, ...]
    # The trials that have begun, in planned order.
    trials: tuple[LiveTrial, ...]
    # "warm-up trials" or "pilot" while these run before the first trial; "" otherwise.
    preparation: str
    findings: tuple[Finding, ...]
    # What dbdyno does, and the seconds until the end of the run as it estimates them; "" and None if it has
    # said nothing.
    step: str
    left_s: float | None
    # How the last call of dbdyno has ended; None while one runs, and if it was killed before it could say.
    ending: Ending | None
    # The verdict; None while the run goes on, and if it was not judged.
    verdict: VerdictFile | None

    @property
    def running(self) -> tuple[LiveTrial, ...]:
        """The trials that run now: one, or one per variant if the load alternates in slices."""
        return tuple(trial for trial in self.trials if trial.state == "running")

    @property
    def ended(self) -> tuple[LiveTrial, ...]:
        """The trials that are done or failed."""
        return tuple(trial for trial in self.trials if trial.state in ("done", "failed"))


def write_progress(folder: Path, step: str, left_s: float) -> None:
    """Say what dbdyno does now, and how many seconds the run still takes. It is no data of the run: not noted
    in its digests, not synced, which would disturb a server, and missing if it cannot be written.
    """
    value = {"step": as_json(step) if isinstance(step, Text) else step, "end_unix_s": time.time() + left_s}
    path = folder / PROGRESS
    temporary = path.with_name(f".{PROGRESS}.partial")
    with suppress(OSError):
        temporary.unlink(missing_ok=True)
        with temporary.open("x", encoding="utf-8") as file:
            json.dump(value, file)
        temporary.replace(path)


def remove_progress(folder: Path) -> None:
    """Remove what `write_progress` wrote."""
    with suppress(OSError):
        (folder / PROGRESS).unlink(missing_ok=True)


def _read_progress(folder: Path) -> tuple[str, float | None]:
    """What dbdyno does, and the seconds until the end."""
    try:
        value = files.read_json(folder / PROGRESS)
        step = value["step"] if isinstance(value["step"], str) else from_json(value["step"])
        return step, max(0.0, float(value["end_unix_s"]) - time.time())
    except (files.StoreProblem, LookupError, TypeError, ValueError):
        return "", None


class RunFollower:
    """Reads a run again and again."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._folders: dict[int, _TrialFolder] = {}
        # File name -> its version, and what was read from it.
        self._cached: dict[str, tuple[tuple[int, int], Any]] = {}

    def read(self) -> LiveRun:
        """The run as it is now. Raises StoreProblem if its folder cannot be read."""
        # Asked first: what is read afterwards is complete if nobody writes any more.
        running = is_running(self._run)
        planned = tuple(self._if_changed("schedule.json", self._run.schedule))
        by_index = {trial.index: trial for trial in planned}
        trials = []
        for index, path in sorted(self._begun().items()):
            if index in by_index:
                folder = self._folders.setdefault(index, _TrialFolder(path))
                trials.append(folder.read(by_index[index], is_running=running))
        endings = [] if running else read_endings(self._run)
        if not running:
            # The verdict's sentences, for translations.
            read_texts(self._run.judged_path)
        step, left_s = _read_progress(self._run.path) if running else ("", None)
        return LiveRun(
            is_running=running,
            planned=planned,
            trials=tuple(trials),
            preparation=self._preparation() if running else "",
            findings=tuple(self._if_changed("checks.json", self._run.findings)),
            step=step,
            left_s=left_s,
            ending=endings[-1] if endings else None,
            verdict=None if running else self._run.verdict(),
        )

    def _begun(self) -> dict[int, Path]:
        """Index -> folder of each trial that has begun. The first folder is 0000 or 0001, by the version of
        dbdyno that made the run.
        """
        folder = self._run.path / "trials"
        with files.store_errors(folder), os.scandir(folder) as entries:
            names = {int(entry.name): entry.name for entry in entries if entry.name.isdigit()}
        first = 0 if 0 in names else 1
        return {number - first: folder / name for number, name in names.items()}

    def _preparation(self) -> str:
        """Which trials before the first block write their records now: these have no .gz yet."""
        for folder, text in (("pilot", "pilot"), ("warmup_trials", "warm-up trials")):
            if any((self._run.path / folder).glob("*.jsonl")):
                return text
        return ""

    def _if_changed(self, name: str, read: Any) -> Any:
        version = _version(self._run.path / name)
        if name not in self._cached or self._cached[name][0] != version:
            self._cached[name] = (version, read())
        return self._cached[name][1]


class _TrialFolder:
    """Reads one trial's folder again and again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended: tuple[tuple[int, int], LiveTrial] | None = None
        self._events = _Events(path / EVENTS)

    def read(self, trial: Trial, *, is_running: bool) -> LiveTrial:
        """The trial now. Raises StoreProblem if a file is damaged."""
        version = _version(self._path / "trial.json")
        if version != (0, 0):
            if self._ended is None or self._ended[0] != version:
                self._ended = version, self._read_ended(trial)
            return self._ended[1]
        # A failed trial that is repeated begins again without trial.json.
        self._ended = None
        self._events.read()
        return LiveTrial(
            trial,
            "running" if is_running else "interrupted",
            phase=self._events.phase,
            parts=tuple(self._events.parts),
            measured=self._events.measured.part(),
        )

    def _read_ended(self, trial: Trial) -> LiveTrial:
        meta = files.read_json(self._path / "trial.json")
        measured = _measured_in_slices(self._path, meta) if "slices" in meta else _measured(self._path)
        return LiveTrial(
            trial,
            "done" if meta["status"] == "done" else "failed",
            reason=str(meta.get("reason", "")),
            parts=tuple(self._events.parts),
            measured=measured,
            server_cpus=_server_cpus(self._path),
        )


class _Events:
    """Reads events.jsonl as it grows. A line counts when it is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = 0
        self._offset = 0
        self.parts: list[Part] = []
        self.measured = _Sum()
        self.phase = ""

    def read(self) -> None:
        """Read the lines that were written since the last call."""
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            # The trial has not begun to write, or has just compressed the file.
            return
        except OSError as error:
            with files.store_errors(self._path):
                raise error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if status.st_ino != self._inode or status.st_size < self._offset:
                # Another attempt writes a new file.
                self._inode, self._offset = status.st_ino, 0
                self.parts, self.measured, self.phase = [], _Sum(), ""
            file.seek(self._offset)
            while (line := file.readline(LINE_BYTES_MAX)).endswith(b"\n"):
                self._offset += len(line)
                self._add(line)

    def _add(self, line: bytes) -> None:
        if line.startswith(_SKIPPED):
            return
        for record in _records([line]):
            if record["type"] == "phase":
                self.phase = str(record["data"]["name"])
            elif record["type"] in ("interval", "slice"):
                part = _part(record["data"])
                self.parts.append(part)
                self.measured.add(part)


def _records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records; lines that are none, such as those of a damaged file, are left out."""
    for line in lines:
        with suppress(ValueError):
            yield parse(line)


def _part(span: Mapping[str, Any], percentiles_us: Mapping[str, float] | None = None) -> Part:
    return Part(
        # A slice and the totals of the measurement name no phase.
        phase=str(span.get("phase", "measure")),
        start_us=int(span["start_us"]),
        end_us=int(span["end_us"]),
        counted_us=int(span["end_us"]) - int(span["start_us"]),
        events=int(span["events"]),
        errors=span["errors"],
        latency_us=span["latency_us"],
        percentiles_us=percentiles_us or {},
    )


class _Sum:
    """Adds up the parts of a measurement as they come: a long trial has thousands of them."""

    def __init__(self) -> None:
        self._start_us = self._end_us = self._counted_us = self._events = 0
        self._errors: Counter[str] = Counter()
        self._latencies: Counter[int] = Counter()

    def add(self, part: Part) -> None:
        """Add a part, unless it is one of another phase."""
        if part.phase != "measure":
            return
        if not self._counted_us:
            self._start_us = part.start_us
        self._end_us = part.end_us
        self._counted_us += part.counted_us
        self._events += part.events
        self._errors.update(part.errors)
        for bucket, count in part.latency_us:
            self._latencies[bucket] += count

    def part(self) -> Part | None:
        """The measurement so far; None if it has not begun."""
        if not self._counted_us:
            return None
        return Part(
            phase="measure",
            start_us=self._start_us,
            end_us=self._end_us,
            counted_us=self._counted_us,
            events=self._events,
            errors=dict(self._errors),
            latency_us=sorted(self._latencies.items()),
        )


def _measured(folder: Path) -> Part | None:
    """The measurement of a trial that has ended, from the engine's totals; None if there are none."""
    last = deque(read_lines(folder / EVENTS, keeps_damaged=True), maxlen=1)
    for record in _records(last):
        totals = record["data"]["phases"].get("measure") if record["type"] == "end" else None
        if totals:
            percentiles = totals.get("percentiles_us") or {}
            return _part(totals, {name: float(entry["value_us"]) for name, entry in percentiles.items()})
    return None


def _measured_in_slices(folder: Path, meta: Mapping[str, Any]) -> Part | None:
    """The sum of the slices that count."""
    lines = read_lines(folder / EVENTS, keeps_damaged=True)
    records = _records(line for line in lines if not line.startswith(_SKIPPED))
    slices = (record["data"] for record in records if record["type"] == "slice")
    counted = (data for data in slices if data["slice"] >= meta["slices"]["warmup"])
    total = _Sum()
    for data in counted:
        total.add(_part(data))
    return total.part()


def _server_cpus(folder: Path) -> float | None:
    """CPUs that the server used, from its counters at both ends of the measurement."""
    path = folder / "server.json"
    if not path.exists():
        return None
    record = files.read_json(path)
    if (work := (record.get("slices") or {}).get("own")) and work["seconds"]:
        return float(work["cpu_s"]) / float(work["seconds"])
    edges = record.get("edges") or {}
    begin, end = edges.get("begin"), edges.get("end")
    if not begin or not end:
        return None
    seconds, cpu_s = (end["unix_us"] - begin["unix_us"]) / 1e6, 0.0
    for counter in ("cpu_user_s", "cpu_system_s"):
        if counter not in begin["process"] or counter not in end["process"]:
            return None
        cpu_s += end["process"][counter] - begin["process"][counter]
    return cpu_s / seconds if seconds > 0 else None


def _version(path: Path) -> tuple[int, int]:
    """Changes when the file is replaced; (0, 0) if it is missing."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return 0, 0
    return status.st_ino, status.st_mtime_ns
