"""Simulates experiments that run every night, with the real judge, Otava and confirmations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean, stdev

import numpy as np

from dbdyno.decide.comparison import comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import Experiment
from dbdyno.runs.history import (
    CONFIRMING_RUNS,
    Answer,
    Change,
    confirming_blocks,
    effect_of_runs,
    find_changes,
)
from dbdyno.stats.bisection import direction

from .row import Guarantee, Row, Sample
from .simulation import Random, World, experiment, simulate

# Noise of a night: the log ratio of a run of 8 blocks whose trials have 4 % noise each has 2 %.
TRIAL_SD = 0.04
# Nights without change, those before and after a step, and its size.
QUIET, BEFORE, AFTER, STEP = 200, 40, 6, math.log(0.96)
# Standard deviations of what is fixed for a run, in log units; nights without change, a loss after `BEFORE`
# nights, and in how many it is found.
BETWEEN = (0.0, 0.005, 0.01, 0.02)
NIGHTS, LOSS, WITHIN = 60, math.log(0.95), 10
# Nights that dbdyno history uses, and earlier ones whose blocks say how much blocks vary.
LIMIT, RECENT = 50, 10
ALERTS_MAX = 2
# Experiments for which there is one series of nights, which takes seconds.
OF_QUIET, OF_STEP = 20, 3


@dataclass
class Nights:
    """A series of nights with `dbdyno history --confirm` after each; the step is before night `step_at`."""

    random: Random
    step: float = 0.0
    step_at: int = 0
    # Standard deviation of what is fixed for a run, in log units.
    between: float = 0.0
    of: Experiment = field(default_factory=experiment)
    values: list[float] = field(default_factory=list)
    # Log ratios of the blocks of each night.
    blocks: list[list[float]] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    alerts: int = 0

    def add(self) -> None:
        """Run a night, then compare the servers around each candidate."""
        level = self.step if len(self.values) >= self.step_at else 0.0
        value, blocks = self._run(self.of, level)
        self.values.append(value)
        self.blocks.append(blocks)
        begin = max(0, len(self.values) - LIMIT)
        answers = [
            Answer(one.before - begin, one.after - begin, one.newest - begin, one.direction)
            for one in self.answers
            if one.before >= begin
        ]
        for change in find_changes(self.values[begin:], answers):
            if change.state == "candidate":
                self._confirm(change, begin)

    def _confirm(self, change: Change, begin: int) -> None:
        """Compare the servers of two nights by the real judge. Of a series with a step, an alert about other
        nights does not count.
        """
        before, after = change.before + begin, change.after + begin
        has_step = before < self.step_at <= after
        least = min(change.point.interval, key=abs)
        blocks = confirming_blocks(change.point.step, least, self.blocks[-RECENT:])
        of = self.of.model_copy(update={"design": self.of.design.model_copy(update={"blocks": blocks})})
        level = self.step if has_step else 0.0
        effect = effect_of_runs([self._run(of, level)[0] for _ in range(CONFIRMING_RUNS)])
        answer = direction(effect)
        self.answers.append(Answer(before, after, len(self.values) - 1, answer))
        self.alerts += answer * change.point.step > 0.0 and (has_step or not self.step)

    def _run(self, of: Experiment, level: float) -> tuple[float, list[float]]:
        """The effect of one run by the real judge, and those of its blocks, as log ratios."""
        fixed = float(self.random.normal(0.0, self.between)) if self.between else 0.0
        trials = simulate(of, World(sd=TRIAL_SD, effects={"b": [level + fixed]}), self.random)
        (one,) = compare_all(trials, of, [])
        effect = comparison_entry(one, "").curve.effect_percent
        assert effect is not None, "the servers do not fail"
        return math.log1p(effect / 100.0), list(one.judged.assessment.overall_ratios.lows.values())


def guarantees() -> list[Guarantee]:
    """The guarantees about the history of an experiment."""
    return [
        Guarantee(_quiet, cost=60),
        Guarantee(_step, cost=10),
        *(Guarantee(partial(_unchanged, between), cost=30) for between in BETWEEN),
        *(Guarantee(partial(_lost, between), cost=10) for between in BETWEEN),
    ]


def _quiet(sample: Sample) -> list[Row]:
    shares = []
    for random in _randoms(sample, OF_QUIET, 71):
        nights = Nights(random)
        for _ in range(QUIET):
            nights.add()
        shares.append(nights.alerts / QUIET)
    text = f"history, {QUIET} nights without change, 2 % noise a night: alerts a night"
    return [Row(text, len(shares), fmean(shares), ALERTS_MAX / QUIET, deviation=stdev(shares))]


def _step(sample: Sample) -> list[Row]:
    found = []
    for random in _randoms(sample, OF_STEP, 72):
        nights = Nights(random, STEP, BEFORE)
        while len(nights.values) < BEFORE + AFTER and not nights.alerts:
            nights.add()
        found.append(nights.alerts > 0)
    text = f"history, a loss of 4 % after {BEFORE} nights, 2 % noise a night: an alert within {AFTER} nights"
    return [Row(text, len(found), fmean(found), 0.90, at_most=False)]


def _unchanged(between: float, sample: Sample) -> list[Row]:
    alerts = []
    for random in _randoms(sample, OF_STEP, 73):
        nights = Nights(random, between=between)
        for _ in range(NIGHTS):
            nights.add()
        alerts.append(nights.alerts > 0)
    text = f"history, {NIGHTS} nights without change, runs that differ by {100 * between:g} %: any alert"
    return [Row(text, len(alerts), fmean(alerts), 0.05)]


def _lost(between: float, sample: Sample) -> list[Row]:
    found = []
    for random in _randoms(sample, OF_STEP, 74):
        nights = Nights(random, LOSS, BEFORE, between)
        while len(nights.values) < BEFORE + WITHIN and not nights.alerts:
            nights.add()
        found.append(nights.alerts > 0)
    text = (
        f"history, a loss of 5 % after {BEFORE} nights, runs that differ by {100 * between:g} %: an alert "
        f"within {WITHIN} nights"
    )
    return [Row(text, len(found), fmean(found), 0.80, at_most=False)]


def _randoms(sample: Sample, experiments: int, seed: int) -> Sequence[Random]:
    return np.random.default_rng(sample.seed(seed)).spawn(max(2, sample.count // experiments))
