"""The time of a run: which steps have taken how much, and how much remains.

The remaining time is estimated from the run's plan and the measured durations of its parts.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial
from dbdyno.experiment.slices import load_s
from dbdyno.experiment.workload import ROW_BYTES
from dbdyno.run import progress
from dbdyno.store.endings import FAILED, INTERRUPTED, MEASURING, OTHER, WARMUP

# Initial estimates, measured with MariaDB 10.11 and 200,000 rows on two cores: starting the server for a
# group of trials, the time between trials, and loading.
GROUP_S = 2.0
TRIAL_OVERHEAD_S = 0.4
LOADING_S = 8.0
ROWS_PER_S = 60_000.0
# A group's data are restored before its trials.
COPY_BYTES_PER_S = 300e6
# A pilot has one to three steps of 3 s, rarely more (run/pilot.py).
PILOT_S = 6.0


class StepTimes:
    """Adds up the seconds of each step. A step within a step interrupts it, so the sum is the whole time."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._running = [OTHER]
        self._since = self._trial_began = time.monotonic()
        # Planned seconds of the trials that run.
        self._planned_s = 0.0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """The time of a context is that of a step."""
        self._add()
        self._running.append(name)
        try:
            yield
        except KeyboardInterrupt:
            self._end_trials(INTERRUPTED)
            raise
        finally:
            self._add()
            self._running.pop()

    def listen(self, value: progress.Progress, load_s: Callable[[Trial], tuple[float, float]]) -> None:
        """Divide the time of a trial that has ended: what its warm-up and its measurement (`load_s`, in
        seconds) leave is the time of the running step.
        """
        match value:
            case progress.TrialBegan():
                self._trial_began = time.monotonic()
                self._planned_s += sum(load_s(value.trial))
            case progress.TrialEnded(reason=""):
                warmup_s, measured_s = load_s(value.trial)
                self._planned_s -= warmup_s + measured_s
                self._move({WARMUP: warmup_s, MEASURING: measured_s})
            case progress.TrialEnded():
                planned_s = sum(load_s(value.trial))
                self._planned_s -= planned_s
                self._move({FAILED: min(planned_s, time.monotonic() - self._trial_began)})

    def seconds(self) -> dict[str, float]:
        """Step -> its seconds until now."""
        self._add()
        return {name: round(seconds, 3) for name, seconds in self._seconds.items() if seconds > 0.0}

    def _end_trials(self, name: str) -> None:
        """The load of the trials that run, if any do, is the time of the step `name`."""
        if self._planned_s > 0.0:
            self._move({name: min(self._planned_s, time.monotonic() - self._trial_began)})
            self._planned_s = 0.0

    def _move(self, parts: Mapping[str, float]) -> None:
        self._add()
        for name, seconds in parts.items():
            self._seconds[self._running[-1]] -= seconds
            self._seconds[name] += seconds

    def _add(self) -> None:
        now = time.monotonic()
        self._seconds[self._running[-1]] += now - self._since
        self._since = now


class Estimate:
    """Estimates the remaining time: planned time of the trials, plus measured overhead of the groups."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        # Trials that have not run, in order.
        self._todo: list[Trial] = []
        self._plan: progress.Began | None = None
        self._rows = self._test_starts = self._warmup_trials = self._pilots = 0
        self._warmup_s: float | None = None
        self._group_durations_s: list[float] = []
        self._test_start_durations_s: list[float] = []
        # With `design.stop`: the number of blocks that the judge expects, and the end of the time.
        self._expected: int | None = None
        self._deadline: float | None = None

    def listen(self, value: progress.Progress) -> None:
        """Take the next progress value into account."""
        match value:
            case progress.Began():
                self._plan, self._todo = value, list(value.todo)
                self._rows, self._test_starts = value.rows, value.test_starts
                self._warmup_trials, self._warmup_s = value.warmup_trials, value.warmup_s
                self._pilots = value.pilots
                if value.max_time_s is not None:
                    self._deadline = time.monotonic() + value.max_time_s
            case progress.Loaded():
                self._rows = 0
            case progress.TestStartEnded():
                self._test_starts -= 1
                self._test_start_durations_s.append(value.seconds)
            case progress.PilotEnded():
                self._pilots -= 1
            case progress.WarmupTrialEnded():
                self._warmup_trials -= 1
            case progress.WarmupChosen():
                self._warmup_s = value.warmup_s
            case progress.TrialEnded():
                self._todo = [trial for trial in self._todo if trial.index != value.trial.index]
            case progress.GroupEnded():
                self._group_durations_s.append(max(0.0, value.seconds - self.trials_s(value.trials)))
            case progress.Extended():
                self._todo += value.trials
            case progress.BlockEnded():
                self._expected = value.blocks_expected
                if value.why is not None:
                    self._todo = []

    def trials_s(self, trials: Sequence[Trial]) -> float:
        """Planned seconds of trials: warm-up, measurement, and the time between trials."""
        alike = Counter((trial.workload, trial.point.connections) for trial in trials)
        return sum(
            count * (sum(load_s(self._experiment, *entry, self.warmup_s)) + TRIAL_OVERHEAD_S)
            for entry, count in alike.items()
        )

    def load_s(self, trial: Trial) -> tuple[float, float]:
        """Planned seconds of the warm-up and the measurement of a trial."""
        return load_s(self._experiment, trial.workload, trial.point.connections, self.warmup_s)

    @property
    def warmup_s(self) -> float:
        """Planned seconds of the warm-up of one trial."""
        return self._experiment.load.warmup_allowance_s() if self._warmup_s is None else self._warmup_s

    @property
    def _test_start_s(self) -> float:
        return _mean(self._test_start_durations_s, GROUP_S)

    @property
    def group_s(self) -> float:
        """Seconds of one group without its trials: data restored, server started and stopped."""
        rows = self._plan.group_rows if self._plan else 0
        return _mean(self._group_durations_s, self._test_start_s + rows * ROW_BYTES / COPY_BYTES_PER_S)

    @property
    def block_s(self) -> float:
        """Seconds of the next block."""
        return self._groups_s([trial for trial in self._todo if trial.block == self._todo[0].block])

    def _groups_s(self, trials: Sequence[Trial]) -> float:
        return len({trial.group for trial in trials}) * self.group_s + self.trials_s(trials)

    def left_s(self) -> float:
        """Seconds until the end, from the beginning of the next step."""
        if self._plan is None:
            return 0.0
        todo = self._todo
        if self._expected is not None:
            # The rest of the running block, and as many blocks as the judge expects.
            blocks = list(dict.fromkeys(trial.block for trial in todo))[: max(1, self._expected)]
            todo = [trial for trial in todo if trial.block in blocks]
        left_s = (
            (LOADING_S + self._rows / ROWS_PER_S if self._rows else 0.0)
            + self._test_starts * self._test_start_s
            + self._pilots * (PILOT_S + self.group_s)
            + self._warmup_trials * (self._plan.warmup_trial_s + self.group_s)
            + self._groups_s(todo)
        )
        return left_s if self._deadline is None else max(0.0, min(left_s, self._deadline - time.monotonic()))


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
