"""Decides after every block whether a comparison with `design.stop` goes on, and interrupts trials when the
time is over.

The judge decides whether the verdict is decided; the limits are those of the experiment and of this call.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from dbdyno.decide.stopping import Progress, decide
from dbdyno.experiment.base import format_duration
from dbdyno.experiment.model import BLOCKS_LIMIT, Experiment, Stop
from dbdyno.experiment.schedule import Trial, planned_blocks, top_up
from dbdyno.experiment.slices import load_s
from dbdyno.problem import Problem, is_interrupted
from dbdyno.run import progress
from dbdyno.run.times import Estimate
from dbdyno.store import Run
from dbdyno.store.document import Why
from dbdyno.store.endings import read_endings

# Ends of a call after which a call without a top-up has nothing to do.
FINAL: tuple[Why, ...] = ("decided", "blocks")


@dataclass(frozen=True)
class Limits:
    """What one call of `compare` may do; the defaults are those of the experiment."""

    # Seconds; no block begins that is expected to end later, and one that runs then is interrupted.
    max_time_s: float | None = None
    # Blocks to add to those that a run has. The call then ends after them.
    more_blocks: int | None = None
    # Says after each block how far the run is, by default the judge; a bisection has another question.
    decide: Callable[[Run], Progress] | None = None

    def time_s(self, stop: Stop | None) -> float:
        """Seconds that the call may take; infinity for a fixed number of blocks."""
        if stop is None:
            return math.inf
        return stop.max_time_s if self.max_time_s is None else self.max_time_s


# The signal by which a thread interrupts the main thread, and the interval in seconds at which it is sent
# again: Python swallows an exception that a signal raises in a destructor or a callback.
SIGNAL, _REPEAT_S = signal.SIGVTALRM, 0.1


class TimeIsOver(KeyboardInterrupt):
    """The time of the call is over while trials run. Whatever handles Ctrl-C ends them in the same way."""


class Deadline:
    """The end of the time of one call of `compare`."""

    def __init__(self, limit_s: float) -> None:
        """`limit_s`: seconds that the call may take; infinity for no limit."""
        self.limit_s = limit_s
        self._ends_at = time.monotonic() + limit_s
        # Indices of the trials that may be interrupted and have not ended.
        self._running: set[int] = set()

    @property
    def left_s(self) -> float:
        """Seconds until the end; negative afterwards."""
        return self._ends_at - time.monotonic()

    def listen(self, value: progress.Progress) -> None:
        """A trial that has ended is no longer interrupted, nor is what follows the last one of a context."""
        if isinstance(value, progress.TrialEnded):
            self._running.discard(value.trial.index)

    @contextmanager
    def interrupting(self, trials: Iterable[Trial]) -> Iterator[None]:
        """Raise TimeIsOver when the time is over, unless all `trials` have ended by then. Only the main
        thread can be interrupted.
        """
        if math.isinf(self.limit_s):
            yield
            return
        if self.left_s <= 0.0:
            raise TimeIsOver
        is_left = threading.Event()
        thread = threading.Thread(target=self._interrupt, args=(is_left,), name="deadline", daemon=True)
        before = signal.signal(SIGNAL, self._handle)
        try:
            self._running = {trial.index for trial in trials}
            thread.start()
            try:
                yield
            finally:
                self._running = set()
        finally:
            self._running = set()
            is_left.set()
            thread.join()
            signal.signal(SIGNAL, before)

    def _interrupt(self, is_left: threading.Event) -> None:
        main = threading.main_thread().ident
        assert main is not None, "the main thread runs"
        while not is_left.wait(max(_REPEAT_S, self.left_s)):
            signal.pthread_kill(main, SIGNAL)

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self._running and self.left_s <= 0.0 and not is_interrupted():
            raise TimeIsOver


class Stopping:
    """The end of one call of `compare`."""

    def __init__(
        self, experiment: Experiment, run: Run, limits: Limits, estimate: Estimate, deadline: Deadline
    ) -> None:
        assert experiment.design.stop is not None, "a fixed number of blocks has no limits"
        self._experiment, self._stop, self._run = experiment, experiment.design.stop, run
        self._estimate, self._deadline = estimate, deadline
        self._last_look = time.monotonic()
        # Measured seconds of the last block but the first one, which begins with loading.
        self._last_block_s = 0.0
        self._looks = 0
        self._more_blocks, self._decide = limits.more_blocks, limits.decide or decide
        # Whether blocks are left to run, or may be added.
        self.may_get_blocks = True
        # Why the call ends; None while it goes on.
        self.why: Why | None = None

    def plan(self, finished: set[int]) -> list[Trial]:
        """The trials of this call in running order, without those in `finished`; a top-up adds its blocks to
        the run. Raises Problem if the run may get no more blocks.
        """
        trials = self._run.schedule()
        open_blocks = {trial.block for trial in trials if trial.index not in finished}
        added: list[Trial] = []
        if self._more_blocks is None:
            ends = [ending.why for ending in read_endings(self._run)]
            # A call that failed, or that was limited to some of the open blocks, does not end the run.
            ends = [why for why in ends if why != "failed" and not (why == "blocks" and open_blocks)]
            if ends and ends[-1] in FINAL:
                self.why = ends[-1]
                self.may_get_blocks = bool(open_blocks) or self._stop.top_up
                return []
        else:
            done = [block for block in planned_blocks(trials) if block not in open_blocks]
            missing = len(done) + self._more_blocks - len(planned_blocks(trials))
            if missing > 0:
                self._require_top_up(missing, len(planned_blocks(trials)) + missing)
                added = top_up(self._experiment, trials, missing)
                trials += added
            chosen = [block for block in planned_blocks(trials) if block not in done][: self._more_blocks]
            open_blocks = {*chosen, *(t.block for t in trials if t.repeats in done or t.repeats in chosen)}
        todo = [trial for trial in trials if trial.index not in finished and trial.block in open_blocks]
        self._require_time(todo)
        if added:
            self._run.append_schedule(added)
        # A repeated block runs directly after the block.
        return sorted(todo, key=_running_order)

    def look(self, todo: Sequence[Trial], last: Trial) -> progress.BlockEnded:
        """Ask the judge after the block of `last`; `todo` are the remaining trials. Sets `why` if the call
        ends.
        """
        blocks = planned_blocks(self._run.schedule())
        now = time.monotonic()
        left_s = self._deadline.left_s
        # A repeated block has run twice since the last look.
        runs = 1 if last.repeats is None else 2
        self._last_block_s = (now - self._last_look) / runs if self._looks else 0.0
        self._last_look, self._looks = now, self._looks + 1
        answer = self._decide(self._run)
        if answer.is_decided and self._more_blocks is None:
            self.why = "decided"
        elif not todo:
            self.why = "blocks"
        elif max(self._estimate.block_s, self._last_block_s) > left_s:
            self.why = "time"
        done = len(finished_blocks(self._run))
        return progress.BlockEnded(done, len(blocks), answer, max(0.0, left_s), self.why)

    def _require_top_up(self, missing: int, total: int) -> None:
        if total > BLOCKS_LIMIT:
            raise Problem(
                f"--blocks +{self._more_blocks}: the run would have {total} blocks; the limit is "
                f"{BLOCKS_LIMIT}",
                "Add fewer blocks",
            )
        if not self._stop.top_up:
            raise Problem(
                f"the run has at most {self._experiment.design.blocks} blocks and cannot get {missing} more: "
                "with top_up = false the looks up to there spend the whole chance of a wrong verdict",
                "Leave out --resume to start a new run; runs with top_up = true may get more blocks",
            )

    def _require_time(self, todo: Sequence[Trial]) -> None:
        """Raise Problem if not even the load of one block fits into the time."""
        block = [trial for trial in todo if trial.block == todo[0].block]
        warmup_s = self._experiment.load.warmup_s or 0.0
        least_s = sum(
            sum(load_s(self._experiment, entry.workload, entry.point.connections, warmup_s))
            for entry in block
        )
        if least_s > self._deadline.limit_s:
            raise Problem(
                f"max_time is {format_duration(self._deadline.limit_s)}, but the load of one block takes "
                f"{format_duration(least_s)}: no block would begin",
                "Raise max_time in [design] stop, or give --max-time",
            )


def finished_blocks(run: Run) -> list[int]:
    """The planned blocks of which every trial has ended. Raises StoreProblem."""
    trials = run.schedule()
    finished = {trial.index for trial in run.trials()}
    unfinished = {trial.block for trial in trials if trial.index not in finished}
    return [block for block in planned_blocks(trials) if block not in unfinished]


def _running_order(trial: Trial) -> tuple[int, bool, int]:
    repeats = trial.repeats is not None
    return (trial.repeats if trial.repeats is not None else trial.block), repeats, trial.index
