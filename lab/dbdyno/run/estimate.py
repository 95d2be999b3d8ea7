"""How long a run takes: said before it starts, made better by what has passed. Pure; time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbdyno.experiment.model import Experiment
from dbdyno.experiment.schedule import Trial

# First guesses until a run has taught better ones: MariaDB 10.11 and 200,000 rows on two cores.
GROUP_S = 2.0
TRIAL_S = 0.4
LOADING_S = 8.0
ROWS_PER_S = 60_000.0
# A group copies its data first.
ROW_BYTES = 230.0
COPY_BYTES_PER_S = 300e6


@dataclass
class Estimate:
    """The time left of a run: planned trial time, and what groups cost on top (restore, start, check)."""

    experiment: Experiment
    # Trials still to run, in order.
    todo: list[Trial]
    # Rows still to load before the first trial.
    rows: int = 0
    # Rows that a group restores.
    group_rows: int = 0
    # Starts of a server that belong to no group.
    rehearsals: int = 0
    # Trials that find the warm-up, each a group of its own, and the length of one.
    long_trials: int = 0
    long_trial_s: float = 0.0
    # The warm-up that they chose; None: that of the experiment.
    warmup_s: float | None = None
    _group_costs_s: list[float] = field(default_factory=list)
    _rehearsal_costs_s: list[float] = field(default_factory=list)

    @property
    def trial_s(self) -> float:
        """What one trial is planned to take: warm-up, measurement, and the time between trials."""
        load = self.experiment.load
        warmup_s = load.warmup_allowance_s() if self.warmup_s is None else self.warmup_s
        return warmup_s + load.duration_s + TRIAL_S

    def left_s(self) -> float:
        """Seconds until the end, from the beginning of the next step."""
        groups = len({trial.group for trial in self.todo})
        loading_s = LOADING_S + self.rows / ROWS_PER_S if self.rows else 0.0
        rehearsals_s = self.rehearsals * _mean(self._rehearsal_costs_s, GROUP_S)
        long_s = self.long_trials * (self.long_trial_s + self._group_s())
        return loading_s + rehearsals_s + long_s + groups * self._group_s() + len(self.todo) * self.trial_s

    def loaded(self) -> None:
        """All data are there."""
        self.rows = 0

    def rehearsed(self, seconds: float) -> None:
        """A server was started once and checked: as a group without its trials."""
        self.rehearsals -= 1
        self._rehearsal_costs_s.append(seconds)

    def long_trial_ended(self) -> None:
        """A long trial is over."""
        self.long_trials -= 1

    def extend(self, trials: list[Trial]) -> None:
        """More trials are to run, after all others."""
        self.todo = [*self.todo, *trials]

    def trial_ended(self, trial: Trial) -> None:
        """A trial is over, well or not."""
        self.todo = [planned for planned in self.todo if planned.index != trial.index]

    def group_ended(self, seconds: float, trials: int) -> None:
        """A group is over: what it took beyond its trials' planned time is what the next will take."""
        self._group_costs_s.append(max(0.0, seconds - trials * self.trial_s))

    def _group_s(self) -> float:
        copying_s = self.group_rows * ROW_BYTES / COPY_BYTES_PER_S
        return _mean(self._group_costs_s, _mean(self._rehearsal_costs_s, GROUP_S) + copying_s)


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
