"""One trial's folder: the plan, the engine's records, and the description of the server.

::

    trials/0007/trial.json       written last; without it the trial was interrupted
                plan.json
                events.jsonl.gz  (events.jsonl while it runs)
                engine-N.jsonl.gz  the records of engine N of a fleet, which events.jsonl.gz has together
                background-NAME.jsonl.gz  the records of a background load; NAME has + for /
                server.json
                hook-NAME.txt   output of the user's hooks
                attempt-1/      the folder of an earlier attempt that failed, with its own trial.json
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from dbdyno.experiment.schedule import Trial
from dbdyno.server_record import ServerRecord
from dbdyno.store import digests, files
from dbdyno.store.files import StoreProblem
from dbdyno.store.records import Record, parse, read_lines

# The file of the engine's records, while they are written.
EVENTS = "events.jsonl"
# Folders of earlier attempts, followed by their number.
ATTEMPT = "attempt-"
# The fields of the record `ready` that a connection negotiates with its server.
SESSION = ("tls", "compression", "authentication")
Session = Mapping[str, str | None]

Status = Literal["done", "failed"]
# Cause of a failure. If the server under test failed, the failure is a result; if dbdyno failed ("harness"),
# the trial is repeated.
FailedBy = Literal["server", "harness"]


class StoredTrial:
    """A trial that has ended, read from its folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.meta: dict[str, Any] = files.read_json(path / "trial.json")

    @property
    def index(self) -> int:
        """Position in schedule.json, from 0."""
        return int(self.meta["index"])

    @property
    def sequence(self) -> int:
        """Place in the order in which the trials began, from 1; 0 in runs of version 0.2.0. A change of the
        clock does not affect it.
        """
        return int(self.meta.get("sequence", 0))

    @property
    def is_done(self) -> bool:
        """Whether the trial ran to its planned end."""
        return bool(self.meta["status"] == "done")

    @property
    def failed_by(self) -> FailedBy | None:
        """The cause of the failure; None if the trial completed.

        A failure without a known cause counts against its server: leaving it out would favour a variant that
        fails.
        """
        if self.is_done:
            return None
        return "harness" if self.meta.get("failed_by") == "harness" else "server"

    @property
    def is_result(self) -> bool:
        """Whether the trial counts: it completed, or its server failed. Trials that failed because of dbdyno
        run again.
        """
        return self.failed_by != "harness"

    @property
    def attempts(self) -> list[StoredTrial]:
        """Earlier attempts, oldest first."""
        folders = (path.parent for path in self.path.glob(f"{ATTEMPT}*/trial.json"))
        return sorted(
            (StoredTrial(folder) for folder in folders), key=lambda entry: int(entry.meta["attempt"])
        )

    @property
    def plan(self) -> dict[str, Any]:
        """The plan that was sent to the engine."""
        return self._json("plan.json")

    @property
    def server(self) -> ServerRecord:
        """The server: identity, configuration, status counters, resource use."""
        return cast("ServerRecord", self._json("server.json"))

    def background(self, title: str) -> Iterator[Record]:
        """The records of the background load with that title, as `records`."""
        return self.records(_background(title))

    def records(self, name: str = EVENTS) -> Iterator[Record]:
        """The engine's records in order; none if it wrote none.

        An incomplete last line (the engine died while writing) is left out. Raises StoreProblem for any other
        line that is not a record.
        """
        for number, line in enumerate(read_lines(self.path / name), start=1):
            try:
                # The recorded runs of `benchmarks/` have the counter's name of engines before version 0.2.0.
                yield parse(line.replace(b'"off_contract"', b'"row_count_mismatches"'))
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return
                raise StoreProblem(
                    f"{self.path}, line {number} of the events is not valid JSON: {error}"
                ) from error

    def session(self) -> Session:
        """TLS, compression and authentication of the first connection; {} without a record `ready`."""
        for record in self.records():
            if record["type"] == "ready":
                return {key: record["data"].get(key) for key in SESSION}
            if record["type"] in ("tick", "interval", "end"):
                break
        return {}

    def _json(self, name: str) -> dict[str, Any]:
        if not (self.path / name).exists():
            return {}
        value: dict[str, Any] = files.read_json(self.path / name)
        return value


def sessions_of(trials: Iterable[StoredTrial]) -> dict[str, Session]:
    """Variant -> what its connections have negotiated, by its first trial with a record of it."""
    sessions: dict[str, Session] = {}
    for trial in trials:
        name = str(trial.meta["variant"])
        if not sessions.get(name):
            sessions[name] = trial.session()
    return sessions


class TrialWriter:
    """Writes one trial's folder while the trial runs. Until `finish` the trial counts as interrupted."""

    def __init__(self, path: Path, trial: Trial, plan: Mapping[str, Any], sequence: int) -> None:
        """Begin a trial in `path`. The files of a completed attempt move into a subfolder; those of an
        interrupted attempt are removed. `sequence`: see `StoredTrial`.
        """
        self._path = path
        with files.store_errors(path):
            attempt = _archive_attempt(path)
        self._meta = {**schedule_entry(trial), "attempt": attempt, "sequence": sequence}
        with files.store_errors(path):
            digests.start(path)
            for earlier in _attempts(path):
                digests.note_folder(path, earlier)
            files.write_json(path / "plan.json", plan)
            # Name of each file of records -> the file.
            self._files: dict[str, BinaryIO] = {EVENTS: (path / EVENTS).open("ab", buffering=0)}

    def append_event(self, line: bytes, name: str = EVENTS) -> None:
        """Append one line of the engine's output. Raises StoreProblem."""
        with files.store_errors(self._path / name):
            view = memoryview(line)
            while view:
                view = view[self._files[name].write(view) :]

    def open_background(self, title: str) -> Callable[[bytes], None]:
        """Open the file for the records of a background load; returns what appends one line. Raises
        StoreProblem.
        """
        return self._open(_background(title))

    def open_engine(self, index: int) -> Callable[[bytes], None]:
        """Open the file for the records of one engine of a fleet; returns what appends one line. Raises
        StoreProblem.
        """
        return self._open(f"engine-{index + 1}.jsonl")

    def _open(self, name: str) -> Callable[[bytes], None]:
        with files.store_errors(self._path / name):
            self._files[name] = (self._path / name).open("ab", buffering=0)
        return lambda line: self.append_event(line, name)

    def write_server(self, record: ServerRecord) -> None:
        """Write server.json. Raises StoreProblem."""
        files.write_json(self._path / "server.json", record)

    def write_hook(
        self, name: str, output: str, argv: list[str], exit_status: int | None, seconds: float
    ) -> None:
        """Store a hook's output in hook-NAME.txt; its exit status and duration go to trial.json. Raises
        StoreProblem.
        """
        outcome = write_hook_output(self._path / f"hook-{name}.txt", output, argv, exit_status, seconds)
        self._meta.setdefault("hooks", {})[name] = outcome

    def finish(self, status: Status, **facts: Any) -> StoredTrial:
        """End the trial: write trial.json with its schedule entry and `facts`. Raises StoreProblem."""
        self.close()
        for name in self._files:
            files.compress(self._path / name)
        files.write_json(self._path / "trial.json", {**self._meta, "status": status, **facts})
        return StoredTrial(self._path)

    def close(self) -> None:
        """Close the files of records. Idempotent."""
        for name, file in self._files.items():
            if not file.closed:
                with files.store_errors(self._path / name):
                    os.fsync(file.fileno())
                    file.close()

    def __enter__(self) -> TrialWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        # The first error (for example a full disk) is the one to report, not the error of closing.
        if kind is None:
            self.close()
            return
        with suppress(StoreProblem):
            self.close()


def _background(title: str) -> str:
    """The file of the records of a background load."""
    # No title has a +, so two titles have two files.
    return f"background-{title.replace('/', '+')}.jsonl"


def schedule_entry(trial: Trial) -> dict[str, Any]:
    """The keys of a planned trial that schedule.json and trial.json have in common."""
    return {
        "index": trial.index,
        "block": trial.block,
        "group": trial.group,
        "variant": trial.variant,
        "workload": trial.workload,
        "at": trial.point.as_dict(),
        "slot": trial.slot,
    }


def write_hook_output(
    path: Path, output: str, argv: list[str], exit_status: int | None, seconds: float
) -> dict[str, Any]:
    """Write a hook's output; returns command line, exit status and duration. Raises StoreProblem."""
    with files.store_errors(path):
        files.write(path, output.encode(errors="replace"))
    return {"argv": argv, "exit_status": exit_status, "seconds": round(seconds, 3)}


def _attempts(path: Path) -> list[Path]:
    """The folders of earlier attempts, oldest first."""
    return sorted(path.glob(f"{ATTEMPT}*"), key=lambda folder: int(folder.name.removeprefix(ATTEMPT)))


def _archive_attempt(path: Path) -> int:
    """Move the files of a completed attempt into a subfolder, so that `path` is empty. Returns the number of
    the new attempt, from 1.
    """
    earlier = path.with_name(f".{path.name}.earlier")
    # dbdyno was killed while it moved them.
    if earlier.exists():
        _move_below(earlier, path)
    if (path / "trial.json").exists():
        path.rename(earlier)
        _move_below(earlier, path)
    path.mkdir(parents=True, exist_ok=True)
    attempts = _attempts(path)
    for leftover in path.iterdir():
        if leftover not in attempts:
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    return len(attempts) + 1


def _move_below(earlier: Path, path: Path) -> None:
    """Make a folder a further attempt of `path`, after the attempts in it."""
    path.mkdir(exist_ok=True)
    for folder in _attempts(earlier):
        folder.rename(path / folder.name)
    earlier.rename(path / f"{ATTEMPT}{len(_attempts(path)) + 1}")
