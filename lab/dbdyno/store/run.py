"""Creates, opens and reads a run: the folder of one execution of one experiment.

A stored run can be judged and reported again at any time, and resumed after an interruption.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dbdyno.experiment.file_reading import config_digests
from dbdyno.experiment.load import SHARES
from dbdyno.experiment.model import Experiment, Point
from dbdyno.experiment.overrides import change_overrides
from dbdyno.experiment.schedule import Trial, schedule, trial_number
from dbdyno.finding import FINDINGS, Finding, FreeForm
from dbdyno.problem import ExitCode
from dbdyno.store import afterwards, digests, files
from dbdyno.store.afterwards import AfterwardsFile, ChosenAfterwards
from dbdyno.store.document import TEXTS, read_texts, write_texts
from dbdyno.store.explained import ExplainedFile
from dbdyno.store.files import ChangedRun, StoreProblem
from dbdyno.store.measured import MeasuredFile
from dbdyno.store.older_versions import current_experiment, current_verdict
from dbdyno.store.trial import StoredTrial, TrialWriter, schedule_entry
from dbdyno.store.verdict import VerdictFile

# The rates that a probe has found for a latency objective.
RATES = "rates.json"
# Files that the package `judge` writes.
VERDICT, MEASURED, EXPLAINED = "verdict.json", "measured.json", "explained.json"
# How often, and how many seconds apart, a run is locked before it counts as used by another dbdyno.
LOCK_ATTEMPTS, LOCK_PAUSE_S = 20, 0.01
# The files that a list of runs, or the view of a run that goes on, shows.
_QUICK = ("experiment.json", "schedule.json", "checks.json", VERDICT)
# The files that the judge writes.
JUDGED = (VERDICT, MEASURED, EXPLAINED, TEXTS)


def trial_folder(run_folder: Path, index: int) -> Path:
    """The folder of the trial with that index. In runs of version 0.2.0 the names begin at 0000."""
    trials = run_folder / "trials"
    name = f"{index:04d}" if (trials / "0000").exists() else trial_number(index)
    return trials / name


# What the judge writes.
JudgeFiles = tuple[VerdictFile, MeasuredFile, ExplainedFile]


class Run:
    """The folder of a run. Use `create`, `open` or `resume` to get one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: int | None = None
        self._experiment: Experiment | None = None
        # Number of trials that have begun; None while it is unknown.
        self._begun: int | None = None

    @classmethod
    def create(
        cls,
        results_dir: Path,
        experiment: Experiment,
        source: bytes,
        profile: str | None = None,
        environment: FreeForm | None = None,
        *,
        assignments: Sequence[str] = (),
    ) -> Run:
        """Create the folder `results_dir`/<experiment>/<UTC time>-r<number> and lock it. Raises StoreProblem.

        The number is above those of all runs below `results_dir`. `assignments` are the keys that the command
        line changed.
        """
        run = cls(new_folder(results_dir, experiment.name))
        files.make_folder(run.path / "trials")
        with files.store_errors(run.path):
            digests.start(run.path)
        run.lock()
        files.write(run.path / "experiment.toml", source)
        files.write_json(run.path / "environment.json", dict(environment or {}))
        files.write_json(
            run.path / "schedule.json", [_planned_trial(trial) for trial in schedule(experiment)]
        )
        files.write_json(run.path / "checks.json", [])
        # Written last: a folder with experiment.json is a run.
        resolved = experiment.model_dump(mode="json")
        entry = {
            "hash": experiment_hash(resolved, experiment),
            "profile": profile,
            "assignments": list(assignments),
            "experiment": resolved,
            digests.KEY: digests.FORMAT,
        }
        files.write_json(run.path / "experiment.json", entry)
        return run

    @classmethod
    def open(
        cls, path: Path, fix: str = files.RESTORE, *, accept_changes: bool = False, quick: bool = False
    ) -> Run:
        """The run in `path`. Raises StoreProblem if there is none, and ChangedRun with that fix if its files
        were changed since they were written, unless the changes are accepted.

        No symbolic link of a run is followed, accepted or not: the trial behind it counts as missing.
        `quick` compares only the files of `_QUICK`, and looks whether all trials are there.
        """
        if not (path / "experiment.json").is_file():
            raise StoreProblem(
                f"{path} is not a run directory: it has no experiment.json", _suggest_run(path)
            )
        run = cls(path)
        changed = run.changed_files(quick=quick)
        if accept_changes:
            changed = [
                entry for entry in changed if (path / entry).is_symlink() and not entry.startswith("trials/")
            ]
        if changed:
            raise ChangedRun(path, changed, fix)
        return run

    @classmethod
    def resume(cls, results_dir: Path, experiment: Experiment) -> Run:
        """The newest run of that experiment, locked.

        Raises StoreProblem if there is none, if its experiment differs (another profile, another `--set`, a
        changed file), or if another process has locked it.
        """
        folder = results_dir / experiment.name
        stored = sorted((path.parent for path in folder.glob("*/experiment.json")), key=run_order)
        if not stored:
            raise StoreProblem(
                f"there is no run of {experiment.name} below {results_dir} to continue", "Leave out --resume"
            )
        run = cls(stored[-1])
        run.require_unchanged("Restore the files from a copy, or leave out --resume to start a new run")
        # If the file has no order_seed, use the one that was chosen when the run began. A limit on the time
        # is one of the call, not of the run. The default of version 0.2.0 was one event loop.
        earlier = run.experiment()
        stored_design = earlier.design
        experiment = experiment.with_order_seed(stored_design.order_seed)
        if stored_design.stop is not None:
            experiment = experiment.with_max_time(stored_design.stop.max_time_s)
        experiment = experiment.with_workers_of(earlier.client).with_pairing_of(stored_design)
        if difference := run._difference(experiment):
            # The default of version 0.2.0 was a fixed number of blocks.
            is_fixed = stored_design.stop is None and experiment.design.stop is not None
            blocks = f", --blocks {stored_design.blocks}" if is_fixed else ""
            if stored_design.stop is not None and experiment.design.stop is None:
                blocks = f" (to add blocks: --blocks +{experiment.design.blocks})"
            raise StoreProblem(
                f"{run.path} is a run of another experiment: {difference}",
                f"Use the file, --profile and --set of that run{blocks}, or leave out --resume to start a "
                "new run",
            )
        run.lock()
        return run

    def lock(self) -> None:
        """Lock the run against writes of other processes until this process ends. Raises StoreProblem."""
        descriptor = open_folder(self.path)
        for attempt in range(LOCK_ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as error:
                # Another process may only ask (`is_running`), which takes the lock for some microseconds.
                if attempt + 1 < LOCK_ATTEMPTS:
                    time.sleep(LOCK_PAUSE_S)
                    continue
                os.close(descriptor)
                raise StoreProblem(
                    f"{self.path} is in use by another dbdyno", "Wait until it has ended"
                ) from error
        self._lock = descriptor

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @property
    def judged_path(self) -> Path:
        """The folder of the judge's files, and of the report."""
        return self.path

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved experiment."""
        return str(self._experiment_json()["hash"])

    @property
    def profile(self) -> str | None:
        """The profile that was given when the run began."""
        profile = self._experiment_json()["profile"]
        return None if profile is None else str(profile)

    @property
    def assignments(self) -> list[str]:
        """The keys that the command line changed when the run began; [] in runs of version 0.2.0."""
        return [str(text) for text in self._experiment_json().get("assignments", ())]

    @property
    def resolved(self) -> dict[str, Any]:
        """The experiment as `hash` covers it."""
        value: dict[str, Any] = self._experiment_json()["experiment"]
        return value

    @property
    def environment(self) -> dict[str, Any]:
        """The client machine, the versions of dbdyno and its engine, and the command line."""
        value: dict[str, Any] = files.read_json(self.path / "environment.json")
        return value

    def source(self) -> str:
        """The experiment file. Raises StoreProblem."""
        with files.open_regular(self.path / "experiment.toml") as file:
            return file.read().decode(errors="replace")

    def experiment(self) -> Experiment:
        """The experiment with every default filled in. It is read once, since it never changes."""
        if self._experiment is None:
            self._experiment = stored_experiment(self.resolved)
            if (path := self.path / RATES).exists():
                self._experiment.load.set_found_rates(tuple(files.read_json(path)["rates"]))
            changes = [change for choice in afterwards.read_choices(self.path) for change in choice.changes]
            changed = afterwards.override_changes(changes)
            override = change_overrides(self._experiment.override, changed)
            self._experiment = self._experiment.model_copy(update={"override": override})
        return self._experiment

    def chosen_afterwards(self) -> list[ChosenAfterwards]:
        """What was chosen about the judgement when data of the run had been seen. Raises StoreProblem."""
        return [choice for choice in afterwards.read_choices(self.path) if choice.trials]

    def use_overrides(self, override: Mapping[str, str]) -> None:
        """Judge the run with another table [override], from now on. Raises StoreProblem."""
        if changes := afterwards.changed_overrides(self.experiment().override, override):
            choice = ChosenAfterwards(
                unix_us=time.time_ns() // 1000, trials=len(self.trials()), changes=changes
            )
            choices = [*afterwards.read_choices(self.path), choice]
            AfterwardsFile(choices=choices).write(self.path / afterwards.FILE)
            self._experiment = None

    def schedule(self) -> list[Trial]:
        """Every planned trial in order, then the trials of repeated blocks.

        Raises StoreProblem if the schedule does not belong to the experiment.
        """
        load = self.experiment().load
        # The schedule has shares of a peak instead of rates until a probe has found them.
        shares = zip(load.points(), SHARES, strict=True) if load.needs_probe else ()
        points: dict[tuple[tuple[str, float], ...], Point] = {
            (("rate", share),): point for point, share in shares
        }
        points |= {tuple(point.as_dict().items()): point for point in load.points()}
        try:
            return [
                Trial(point=points[tuple(entry.pop("at").items())], **entry)
                for entry in self._schedule_json()
            ]
        except (KeyError, TypeError) as error:
            raise StoreProblem(
                f"{self.path}: schedule.json has an entry that experiment.json does not explain ({error})",
                "Use the dbdyno that made the run",
            ) from error

    def set_rates(self, rates: Sequence[float], peaks: Mapping[str, float]) -> None:
        """Store the rates that a probe has found, and use them in the experiment and the schedule.

        `peaks` are the highest throughputs of the variants. Raises StoreProblem.
        """
        planned, load = self.schedule(), self.experiment().load
        before = load.points()
        files.write_json(self.path / RATES, {"schema": 1, "rates": list(rates), "peaks": dict(peaks)})
        load.set_found_rates(tuple(rates))
        with_rate = dict(zip(before, load.points(), strict=True))
        with_rates = [replace(trial, point=with_rate[trial.point]) for trial in planned]
        files.write_json(self.path / "schedule.json", [_planned_trial(trial) for trial in with_rates])

    def append_schedule(self, trials: Iterable[Trial]) -> None:
        """Append trials to the schedule. Raises StoreProblem."""
        files.write_json(
            self.path / "schedule.json",
            [*self._schedule_json(), *(_planned_trial(trial) for trial in trials)],
        )

    def trials(self) -> list[StoredTrial]:
        """The trials that have ended, in planned order."""
        folders = digests.folders(self.path / "trials")
        stored = [StoredTrial(path) for path in folders if os.path.lexists(path / "trial.json")]
        return sorted(stored, key=lambda trial: trial.index)

    def trials_begun(self) -> int:
        """Number of trials that have begun. Raises StoreProblem."""
        with files.store_errors(self.path / "trials"):
            return sum(1 for _ in (self.path / "trials").iterdir())

    def begin(self, trial: Trial, plan: Mapping[str, Any]) -> TrialWriter:
        """Begin a trial's folder; files of an earlier attempt move into a subfolder. Raises StoreProblem."""
        if self._begun is None:
            self._begun = max((entry.sequence for entry in self.trials()), default=0)
        self._begun += 1
        folder = trial_folder(self.path, trial.index)
        with files.store_errors(self.path):
            digests.note_folder(self.path, folder, is_open=True)
        return TrialWriter(folder, trial, plan, self._begun)

    def changed_files(self, *, quick: bool = False) -> list[str]:
        """The files and trials of the run that were changed or removed since they were written, and symbolic
        links, relative to its folder; [] for unchanged runs, and for those of version 0.2.0, which have no
        digests. `quick`: see `open`. Raises StoreProblem.
        """
        try:
            is_marked = self._experiment_json().get(digests.KEY) == digests.FORMAT
        except (StoreProblem, AttributeError):
            # Its own digest names it.
            is_marked = False
        with files.store_errors(self.path):
            return digests.changed(self.path, is_marked=is_marked, only=_QUICK if quick else None)

    def require_unchanged(self, fix: str) -> None:
        """Raise ChangedRun if `changed_files` has any."""
        if changed := self.changed_files():
            raise ChangedRun(self.path, changed, fix)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn an error that a damaged file causes into a StoreProblem. Errors about a run whose files are as
        they were written are those of dbdyno, and pass.
        """
        try:
            yield
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
            changed = self.changed_files()
            if (self.path / digests.NAME).is_file() and not changed:
                raise
            names = f" ({', '.join(changed[:3])})" if changed else ""
            raise StoreProblem(
                f"{self.path} cannot be read: a file is damaged{names}: {type(error).__name__}: {error}",
                files.RESTORE,
                ExitCode.NOT_COMPARABLE,
            ) from error

    def discard_if_empty(self) -> bool:
        """Remove the run if no trial has begun, for example because the servers could not start."""
        if any((self.path / "trials").iterdir()):
            return False
        shutil.rmtree(self.path, ignore_errors=True)
        return True

    def findings(self) -> list[Finding]:
        """The findings that the checks have reported so far. Raises StoreProblem."""
        read_texts(self.path)
        return FINDINGS.validate_python(files.read_json(self.path / "checks.json"))

    def add_findings(self, findings: Iterable[Finding]) -> list[Finding]:
        """Store the findings that are not stored yet, and return them."""
        stored_findings = self.findings()
        identities = {_identity(finding) for finding in stored_findings}
        new: list[Finding] = []
        for finding in findings:
            if _identity(finding) not in identities:
                identities.add(_identity(finding))
                new.append(finding)
        if new:
            stored = FINDINGS.dump_python(stored_findings + new, mode="json")
            write_texts(self.path, stored)
            files.write_json(self.path / "checks.json", stored)
        return new

    def verdict(self) -> VerdictFile | None:
        """verdict.json; None if the run was not judged, or was judged before version 0.2.0. Raises
        StoreProblem.
        """
        return VerdictFile.read(self.judged_path / VERDICT, current_verdict)

    def judge_files(self) -> JudgeFiles | None:
        """verdict.json, measured.json and explained.json, with texts that can be translated; None if one is
        missing or has an older schema. Raises StoreProblem.
        """
        read_texts(self.judged_path)
        # An older verdict is not translated, because its sentences have the words of that version.
        verdict = VerdictFile.read(self.judged_path / VERDICT)
        measured = MeasuredFile.read(self.judged_path / MEASURED)
        explained = ExplainedFile.read(self.judged_path / EXPLAINED)
        if verdict is None or measured is None or explained is None:
            return None
        return verdict, measured, explained

    def require_judged(self) -> JudgeFiles:
        """The files of the judge. Raises StoreProblem if the run was not judged."""
        judged = self.judge_files()
        if judged is None:
            raise StoreProblem(
                f"{self.path} has not been judged", f"Run dbdyno report {self.path}, which judges it first"
            )
        return judged

    def _difference(self, experiment: Experiment) -> str:
        """The first keys in which `experiment` differs from this run's experiment, as text; "" if none does.

        A run of an older dbdyno lacks newer keys, in its experiment and in its hash. So the comparison fills
        in the current defaults, and the stored hash shows only whether the configuration files have changed.
        """
        stored = self._experiment_json()["experiment"]
        was, now = (entry.model_dump(mode="json") for entry in (self.experiment(), experiment))
        # What concerns the judgement alone does not change what is measured.
        if differing := describe_differences(was, now | {"override": was["override"]}):
            return differing
        return "" if self.hash == experiment_hash(stored, experiment) else "a configuration file has changed"

    def _schedule_json(self) -> list[dict[str, Any]]:
        value: list[dict[str, Any]] = files.read_json(self.path / "schedule.json")
        return value

    def _experiment_json(self) -> dict[str, Any]:
        value: dict[str, Any] = files.read_json(self.path / "experiment.json")
        return value


def new_folder(results: Path, name: str) -> Path:
    """Create the folder `results`/<name>/<UTC time>-r<number>, with a number above all others. Raises
    StoreProblem.
    """
    now = datetime.now(UTC)
    stamp = f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03}Z"
    files.make_folder(results)
    with _locked(results):
        number = 1 + max((run_order(path)[0] for path in results.glob("*/*-r*")), default=0)
        path = results / name / f"{stamp}-r{number:04}"
        files.make_folder(path)
    return path


def run_order(path: Path) -> tuple[int, str]:
    """Sorts the folders of runs, the newest last. The number decides, because the clock may have been stepped
    back; runs of version 0.2.0 have none.
    """
    number = re.fullmatch(r".*-r(\d+)", path.name)
    return int(number[1]) if number else 0, path.name


def open_folder(path: Path) -> int:
    """A descriptor of a folder, for a lock. Raises StoreProblem."""
    with files.store_errors(path):
        return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a folder against other processes within the context. Raises StoreProblem."""
    descriptor = open_folder(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def stored_experiment(resolved: Mapping[str, Any]) -> Experiment:
    """The experiment that a run of this version or 0.2.0 stored. Raises ValueError."""
    return Experiment.model_validate_json(json.dumps(current_experiment(resolved)))


def experiment_hash(stored: Any, experiment: Experiment) -> str:
    """SHA-256 of a stored experiment and its configuration files."""
    digest = hashlib.sha256(canonical(stored))
    for config in filter(None, (variant.server.config for variant in experiment.variants)):
        with files.store_errors(config):
            digest.update(config_digests(config))
    return digest.hexdigest()


def describe_differences(was: Any, now: Any) -> str:
    """The first keys in which two stored values differ, as text; "" if none does."""
    differing = list(key_differences(was, now))
    shown = ", ".join(f"{key} was {_shown(old)} and is {_shown(new)}" for key, old, new in differing[:3])
    return shown + (f" and {len(differing) - 3} more" if len(differing) > 3 else "")


def key_differences(was: Any, now: Any, key_path: str = "") -> Iterable[tuple[str, Any, Any]]:
    """Key, old value and new value of each difference below the key `key_path`."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from key_differences(was.get(key), now.get(key), f"{key_path}.{key}" if key_path else key)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for index, (before, after) in enumerate(zip(was, now, strict=True), start=1):
            yield from key_differences(before, after, f"{key_path}[{index}]")
    elif canonical(was) != canonical(now):
        # In Python 1, 1.0 and True are equal; as values of a server variable they are not.
        yield key_path, was, now


def canonical(value: Any) -> bytes:
    """A JSON value as bytes; equal values have equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _shown(value: Any) -> str:
    """A stored value in a message; null is a key that is not set."""
    return "not set" if value is None else "set" if isinstance(value, dict | list) else repr(value)


def _planned_trial(trial: Trial) -> dict[str, Any]:
    """A planned trial in the format of schedule.json."""
    return {**schedule_entry(trial), **({} if trial.repeats is None else {"repeats": trial.repeats})}


def _identity(finding: Finding) -> tuple[str, str, str, str]:
    # A finding can recur in another group with other figures, such as a process id or a count. The titles of
    # two workloads may differ only in a number.
    workload = str(finding.evidence.get("workload", ""))
    return finding.code, finding.subject, workload, re.sub(r"\d+", "#", finding.text)


def _suggest_run(path: Path) -> str:
    """The fix for a path that is not a run: names the newest run below or next to it."""
    folder = path if path.is_dir() else path.parent
    runs = [*folder.glob("*/experiment.json"), *folder.glob("*/*/experiment.json")]
    newest = max((file.parent for file in runs), key=run_order, default=None)
    return f"The newest run there is {newest}" if newest else "Give the folder that dbdyno compare printed"
