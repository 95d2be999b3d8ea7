"""Which steps of a comparison take how much of its time."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from dbdyno.experiment.schedule import Trial
from dbdyno.run import progress
from dbdyno.store.endings import FAILED, MEASURING, OTHER, WARMUP


class StepTimes:
    """Adds up the seconds of each step. A step within a step interrupts it, so the sum is the whole time."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._running = [OTHER]
        self._since = self._trial_began = time.monotonic()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """The time of a context is that of a step."""
        self._add()
        self._running.append(name)
        try:
            yield
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
            case progress.TrialEnded(reason=""):
                warmup_s, measured_s = load_s(value.trial)
                self._move({WARMUP: warmup_s, MEASURING: measured_s})
            case progress.TrialEnded():
                passed_s = time.monotonic() - self._trial_began
                self._move({FAILED: min(sum(load_s(value.trial)), passed_s)})

    def seconds(self) -> dict[str, float]:
        """Step -> its seconds until now."""
        self._add()
        return {name: round(seconds, 3) for name, seconds in self._seconds.items() if seconds > 0.0}

    def _move(self, parts: Mapping[str, float]) -> None:
        self._add()
        for name, seconds in parts.items():
            self._seconds[self._running[-1]] -= seconds
            self._seconds[name] += seconds

    def _add(self) -> None:
        now = time.monotonic()
        self._seconds[self._running[-1]] += now - self._since
        self._since = now
