"""Decides which trials run again, and whether a variant can run its load at all.

Blocks with foreign load run again: when every planned trial has ended, or, if the judge decides after every
block whether to stop (`design.stop`), directly after the block. A trial that failed, but not because of its
server, runs once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.experiment import repeats
from dbdyno.experiment.model import Experiment, Point
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import ExitCode, Problem
from dbdyno.server_record import ForeignRecord
from dbdyno.store import Run, StoreProblem

# Number of blocks in succession in which all trials of a variant fail before the run ends.
FAILED_BLOCKS_MAX = 2


class CannotRunProblem(Problem):
    """A variant cannot run its load. What is known until then can be judged and reported."""

    def __init__(self, variant: str, text: str, fix: str) -> None:
        super().__init__(text, fix, ExitCode.NOT_COMPARABLE)
        self.variant = variant


class Failures:
    """The failed trials of one call of `compare`."""

    def __init__(self, run: Run, *, in_slices: bool) -> None:
        self._run, self._in_slices = run, in_slices
        # Indices of the trials that this call has repeated.
        self._repeated: set[int] = set()
        # Variant -> its blocks in succession without a completed trial.
        self._failed_blocks: dict[str, set[int]] = {}

    def repeats(self, trials: Sequence[Trial]) -> tuple[list[Trial], str]:
        """Those of a group's `trials` that run once more, with the reason. In slices the trials of a point
        run together. Raises StoreProblem.
        """
        stored = {trial.index: trial for trial in self._run.trials()}
        failed = [
            stored[trial.index]
            for trial in trials
            if trial.index in stored and not stored[trial.index].is_result
        ]
        failed = [entry for entry in failed if entry.index not in self._repeated]
        if not failed:
            return [], ""
        indices = {entry.index for entry in failed}
        loads = {_load(trial) for trial in trials if trial.index in indices} if self._in_slices else ()
        chosen = [trial for trial in trials if trial.index in indices or _load(trial) in loads]
        names = " and ".join(dict.fromkeys(str(entry.meta["variant"]) for entry in failed))
        which = "a trial" if len(failed) == 1 else f"{len(failed)} trials"
        text = f"{which} of {names} failed, but not because of the server ({failed[0].meta.get('reason')})"
        return self._repeat(chosen), text

    def repeats_after(self, problem: StoreProblem, trials: Sequence[Trial]) -> list[Trial]:
        """The trials of a group that run once more after a file of the run could not be written. Raises
        `problem` if that has happened to them before.
        """
        stored = {trial.index for trial in self._run.trials() if trial.is_result}
        left = [trial for trial in trials if trial.index not in stored]
        if self._in_slices:
            loads = {_load(entry) for entry in left}
            left = [trial for trial in trials if _load(trial) in loads]
        if not left or any(entry.index in self._repeated for entry in left):
            raise problem
        return self._repeat(left)

    def _repeat(self, trials: list[Trial]) -> list[Trial]:
        self._repeated |= {trial.index for trial in trials}
        return trials

    def require_results(self, trials: Sequence[Trial]) -> None:
        """Raise CannotRunProblem if, with these trials of one block, every trial of a variant has failed in
        `FAILED_BLOCKS_MAX` blocks in succession.
        """
        block, planned = trials[0].block, self._run.schedule()
        stored = {trial.index: trial for trial in self._run.trials()}
        for name in dict.fromkeys(trial.variant for trial in trials):
            indexes = [entry.index for entry in planned if entry.block == block and entry.variant == name]
            if any(index in stored and stored[index].is_done for index in indexes):
                self._failed_blocks[name] = set()
            elif all(index in stored for index in indexes):
                failed = self._failed_blocks.setdefault(name, set())
                failed.add(block)
                if len(failed) >= FAILED_BLOCKS_MAX:
                    reason = stored[indexes[0]].meta.get("reason")
                    raise self._problem(name, reason, f"in {len(failed)} blocks in succession")

    def require_any_results(self) -> None:
        """Raise CannotRunProblem if all trials of a variant have failed."""
        trials = self._run.trials()
        done = {entry.meta["variant"] for entry in trials if entry.is_done}
        for trial in trials:
            if trial.meta["variant"] not in done:
                raise self._problem(trial.meta["variant"], trial.meta.get("reason"), "of the run")

    def _problem(self, variant: str, reason: object, where: str) -> CannotRunProblem:
        return CannotRunProblem(
            variant,
            f"{variant} cannot run this load ({reason}): all its trials {where} failed",
            f"Find the cause in {self._run.path}/trials and in the server's log",
        )


def _load(trial: Trial) -> tuple[str, Point]:
    """What the trials of a block that run together have in common."""
    return trial.workload, trial.point


@dataclass(frozen=True)
class Repeats:
    """Trials added to a run's schedule, and the reason as a sentence."""

    trials: list[Trial]
    text: str


def may_repeat(experiment: Experiment, planned: list[Trial]) -> bool:
    """Whether blocks may still be added to the schedule `planned`."""
    return (
        experiment.design.repeat_disturbed
        and repeats.repeats_max(experiment.design.blocks) > 0
        and all(trial.repeats is None for trial in planned)
    )


def plan_repeats(experiment: Experiment, run: Run) -> Repeats | None:
    """Add the repeats to the run's schedule; None if there are none, or if they were planned before.

    Raises StoreProblem.
    """
    planned = run.schedule()
    if not may_repeat(experiment, planned):
        return None
    blocks = {trial.index: trial.block for trial in planned}
    interrupts = repeats.subtract_interrupts(_foreign_loads(run), planned)
    shares = repeats.largest_shares((blocks[index], load["share"]) for index, load in interrupts.items())
    total = experiment.design.blocks
    chosen = repeats.blocks_to_repeat(shares, total)
    if not chosen:
        return None
    trials = repeats.repeat_blocks(planned, chosen)
    run.append_schedule(trials)
    disturbed = repeats.disturbed_blocks(shares)
    processes = repeats.largest_processes(
        load for index, load in interrupts.items() if blocks[index] in disturbed
    )
    reason = (
        f"other processes used more than {100 * repeats.FOREIGN_LIMIT:.0f} % of the CPUs of server and "
        f"client in {len(disturbed)} of {total} blocks ({repeats.describe_processes(processes)})"
    )
    if len(chosen) < len(disturbed):
        worst = "the worst one is" if len(chosen) == 1 else f"the worst {len(chosen)} are"
        return Repeats(trials, f"{reason}; {worst} repeated (limit: a quarter of the blocks)")
    return Repeats(trials, f"{reason}, which {'is' if len(chosen) == 1 else 'are'} repeated")


def plan_repeat(experiment: Experiment, run: Run, block: int) -> Repeats | None:
    """Add the repeat of one block to the run's schedule, before its result is looked at.

    None if the block met no foreign load, or if a quarter of the largest number of blocks is repeated
    already. Raises StoreProblem.
    """
    planned = run.schedule()
    repeated = {trial.repeats for trial in planned if trial.repeats is not None}
    limit = repeats.repeats_max(experiment.design.blocks)
    if not experiment.design.repeat_disturbed or block in repeated or len(repeated) >= limit:
        return None
    of_block = {trial.index for trial in planned if trial.block == block}
    interrupts = repeats.subtract_interrupts(_foreign_loads(run), planned)
    loads = [load for index, load in interrupts.items() if index in of_block]
    if all(load["share"] <= repeats.FOREIGN_LIMIT for load in loads):
        return None
    trials = repeats.repeat_blocks(planned, [block])
    run.append_schedule(trials)
    names = repeats.describe_processes(repeats.largest_processes(loads))
    return Repeats(
        trials,
        f"other processes used more than {100 * repeats.FOREIGN_LIMIT:.0f} % of the CPUs of server and "
        f"client in block {block + 1} ({names}), which is repeated",
    )


def _foreign_loads(run: Run) -> dict[int, ForeignRecord]:
    """The foreign load of every trial in which it is known, by the trial's index."""
    loads = {trial.index: repeats.read_foreign_load(trial.server) for trial in run.trials()}
    return {index: load for index, load in loads.items() if load is not None}
