"""Decides what follows failed trials: which of them run again, and whether a variant can run its load at all.

A trial that failed because of its server is a result and counts as 0 transactions/s. One that failed because
of dbdyno, the disk or a command of the user says nothing about a variant and runs once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dbdyno.experiment.model import Point
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.trial import unreachable_reason
from dbdyno.servers.server import MachineProblem, Server
from dbdyno.store import Run, StoreProblem
from dbdyno.store.trial import FailedBy

# Number of blocks in succession in which all trials of a variant fail before the run ends.
FAILED_BLOCKS_MAX = 2


class CannotRunProblem(Problem):
    """A variant cannot run its load. What is known until then can be judged and reported."""

    def __init__(self, variant: str, text: str, fix: str) -> None:
        super().__init__(text, fix, ExitCode.NOT_COMPARABLE)
        self.variant = variant


@dataclass(frozen=True)
class StartFailure:
    """Why the server of a group did not get ready, and what caused this."""

    reason: str
    failed_by: FailedBy

    @classmethod
    def of(cls, problem: Problem, server: Server) -> StartFailure:
        """The failure that `problem` describes; a server that answers is not its cause."""
        is_around = isinstance(problem, MachineProblem)
        is_by_server = not is_around and bool(unreachable_reason(server))
        return cls(problem.text, "server" if is_by_server else "harness")


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
        stored = {one.index: one for one in self._run.trials()}
        failed = [
            stored[one.index] for one in trials if one.index in stored and not stored[one.index].is_result
        ]
        failed = [one for one in failed if one.index not in self._repeated]
        if not failed:
            return [], ""
        indices = {one.index for one in failed}
        loads = {_load(one) for one in trials if one.index in indices} if self._in_slices else ()
        chosen = [one for one in trials if one.index in indices or _load(one) in loads]
        names = " and ".join(dict.fromkeys(str(one.meta["variant"]) for one in failed))
        which = "a trial" if len(failed) == 1 else f"{len(failed)} trials"
        text = f"{which} of {names} failed, but not because of the server ({failed[0].meta.get('reason')})"
        return self._repeat(chosen), text

    def repeats_after(self, problem: StoreProblem, trials: Sequence[Trial]) -> list[Trial]:
        """The trials of a group that run once more after a file of the run could not be written. Raises
        `problem` if that has happened to them before.
        """
        stored = {one.index for one in self._run.trials() if one.is_result}
        left = [one for one in trials if one.index not in stored]
        if self._in_slices:
            loads = {_load(one) for one in left}
            left = [one for one in trials if _load(one) in loads]
        if not left or any(one.index in self._repeated for one in left):
            raise problem
        return self._repeat(left)

    def _repeat(self, trials: list[Trial]) -> list[Trial]:
        self._repeated |= {one.index for one in trials}
        return trials

    def require_results(self, trials: Sequence[Trial]) -> None:
        """Raise CannotRunProblem if, with these trials of one block, every trial of a variant has failed in
        `FAILED_BLOCKS_MAX` blocks in succession.
        """
        block, planned = trials[0].block, self._run.schedule()
        stored = {one.index: one for one in self._run.trials()}
        for name in dict.fromkeys(trial.variant for trial in trials):
            own = [one.index for one in planned if one.block == block and one.variant == name]
            if any(index in stored and stored[index].is_done for index in own):
                self._failed_blocks[name] = set()
            elif all(index in stored for index in own):
                failed = self._failed_blocks.setdefault(name, set())
                failed.add(block)
                if len(failed) >= FAILED_BLOCKS_MAX:
                    reason = stored[own[0]].meta.get("reason")
                    raise self._problem(name, reason, f"in {len(failed)} blocks in succession")

    def require_any_results(self) -> None:
        """Raise CannotRunProblem if all trials of a variant have failed."""
        trials = self._run.trials()
        done = {one.meta["variant"] for one in trials if one.is_done}
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
