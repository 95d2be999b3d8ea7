"""Later judgements of a run: judged again when its data had been seen, with other choices.

Each has a folder below `judged-again/` in the run's folder, with the files of the judge, its report, and what
was chosen. The judgement that was planned before the data were seen stays in the run's folder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.overrides import change_overrides
from dbdyno.experiment.rejudging import Rejudging
from dbdyno.experiment.schedule import Trial
from dbdyno.finding import Finding
from dbdyno.store import afterwards, digests, files
from dbdyno.store.afterwards import AfterwardsFile, ChosenAfterwards, KeyChange, LeftOut
from dbdyno.store.document import Why
from dbdyno.store.endings import read_endings
from dbdyno.store.run import VERDICT, Run
from dbdyno.store.trial import StoredTrial

FOLDER = "judged-again"
# Why the last call of `compare` ended, if the run has its result.
_ENDED: frozenset[Why] = frozenset({"decided", "blocks", "time"})


class LaterJudgement(Run):
    """A run as one of its later judgements sees it."""

    def __init__(self, run: Run, folder: Path, choice: ChosenAfterwards) -> None:
        super().__init__(run.path)
        self._run, self._folder, self.choice = run, folder, choice
        self._rejudging = _rejudging(choice)

    @property
    def judged_path(self) -> Path:
        """Its own folder."""
        return self._folder

    def experiment(self) -> Experiment:
        """The experiment with the changes, and without what is left out."""
        if self._experiment is None:
            self._experiment = self._rejudging.apply(self._run.experiment())
        return self._experiment

    def schedule(self) -> list[Trial]:
        """The planned trials that are not left out; with a block its repeats are left out too."""
        left_out = self._rejudging
        return [
            entry
            for entry in self._run.schedule()
            if (entry.block if entry.repeats is None else entry.repeats) + 1 not in left_out.blocks
            and entry.workload not in left_out.workloads
            and entry.point.level not in left_out.loads
        ]

    def trials(self) -> list[StoredTrial]:
        """The trials that have ended and are not left out, in planned order."""
        indices = {entry.index for entry in self.schedule()}
        return [trial for trial in self._run.trials() if trial.index in indices]

    def findings(self) -> list[Finding]:
        """The findings of the checks, without those about workloads that are left out."""
        return [
            finding
            for finding in self._run.findings()
            if finding.evidence.get("workload") not in self._rejudging.workloads
        ]

    def chosen_afterwards(self) -> list[ChosenAfterwards]:
        """What was chosen when data of the run had been seen, oldest first."""
        return [*self._run.chosen_afterwards(), self.choice]


def later_judgements(run: Run) -> list[LaterJudgement]:
    """The later judgements of a run, oldest first. Raises StoreProblem."""
    folders = digests.folders(run.path / FOLDER)
    return [
        LaterJudgement(run, folder, choices[0])
        for folder in folders
        if (choices := afterwards.read_choices(folder))
    ]


def store_judgement(run: Run, rejudging: Rejudging, reason: str | None) -> LaterJudgement:
    """The later judgement of the run with these choices: the stored one, or a new one, which has no files
    until the run is judged and `complete_judgement` ends it. Raises StoreProblem.
    """
    choice = _choice(run, rejudging, reason)
    stored = later_judgements(run)
    for entry in stored:
        if entry.choice.model_copy(update={"unix_us": choice.unix_us}) == choice:
            return entry
    folder = run.path / FOLDER / f"{_next_number(run):02d}"
    files.make_folder(folder)
    with files.store_errors(folder):
        if (run.path / digests.NAME).exists():
            digests.note_folder(run.path, folder, is_open=True)
            digests.start(folder)
    return LaterJudgement(run, folder, choice)


def complete_judgement(judgement: LaterJudgement) -> None:
    """Store what a judged later judgement has changed, without which it does not count, and note that its
    files are complete, so that R16 notices a change. Raises StoreProblem.
    """
    if not (judgement.judged_path / afterwards.FILE).exists():
        AfterwardsFile(choices=[judgement.choice]).write(judgement.judged_path / afterwards.FILE)
    with files.store_errors(judgement.judged_path):
        digests.note_folder(judgement.path, judgement.judged_path)


def has_ended(run: Run) -> bool:
    """Whether the run has its result: no check, error or interruption ended its last call of `compare`."""
    endings = read_endings(run)
    return bool(endings) and endings[-1].why in _ENDED


def newest_verdict_ns(run: Run) -> int:
    """When the newest judgement of a judged run was written, in nanoseconds. Raises StoreProblem."""
    with files.store_errors(run.path):
        paths = [run.path / VERDICT, *(run.path / FOLDER).glob(f"*/{VERDICT}")]
        return max(path.stat().st_mtime_ns for path in paths)


def numbered_blocks(schedule: Sequence[Trial]) -> dict[int, int | None]:
    """The numbers of the blocks, from 1, each with the one that it repeats or None."""
    return {entry.block + 1: None if entry.repeats is None else entry.repeats + 1 for entry in schedule}


def _next_number(run: Run) -> int:
    """The number of the next folder."""
    names = [folder.name for folder in digests.folders(run.path / FOLDER)]
    return 1 + max((int(name) for name in names if name.isdecimal()), default=0)


def _choice(run: Run, rejudging: Rejudging, reason: str | None) -> ChosenAfterwards:
    experiment = run.experiment()
    was = experiment.design.model_dump(mode="json") | {"metrics": list(experiment.metric_names)}
    changes = [
        KeyChange(key=f"design.{key}", was=was[key], now=list(now) if isinstance(now, tuple) else now)
        for key, now in sorted(rejudging.design.items())
    ]
    override = change_overrides(experiment.override, rejudging.override)
    changes += afterwards.changed_overrides(experiment.override, override)
    loads, is_open = sorted(rejudging.loads), experiment.load.is_open
    left_out = LeftOut(
        blocks=sorted(rejudging.blocks),
        connections=[] if is_open else [int(load) for load in loads],
        rates=loads if is_open else [],
        workloads=sorted(rejudging.workloads),
    )
    return ChosenAfterwards(
        unix_us=time.time_ns() // 1000,
        trials=len(run.trials()),
        changes=changes,
        left_out=left_out if rejudging.leaves_out else None,
        reason=reason,
    )


def _rejudging(choice: ChosenAfterwards) -> Rejudging:
    values = {
        change.key.removeprefix("design."): tuple(change.now) if isinstance(change.now, list) else change.now
        for change in choice.changes
        if change.key.startswith("design.")
    }
    left_out = choice.left_out or LeftOut()
    return Rejudging(
        design=values,
        override=afterwards.override_changes(choice.changes),
        blocks=left_out.blocks,
        loads=[*left_out.connections, *left_out.rates],
        workloads=left_out.workloads,
    )
