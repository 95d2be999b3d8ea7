"""Simulated trials of servers that warm up, tick by tick, and the real test for drift (R01) on them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from statistics import fmean
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from dbdyno.experiment.model import Design, Experiment, Load, OltpWorkload, Variant
from dbdyno.measure.figures import drift, windows
from dbdyno.measure.recording import Recording
from dbdyno.rules.warmth import warm_state
from dbdyno.store.measured import MeasuredTrial, ScheduleEntry

TICK_US, TICKS_PER_S = 100_000, 10
TITLE: Final = "oltp_read_write"
NAMES = "abcdefgh"
# Of the simulated noise: ticks are an AR(1) series, and trials differ.
TICK_SD, TICK_CORRELATION, TRIAL_SD = 0.08, 0.5, 0.03
# By which share b is slower at its beginning.
DEPTH = 0.3
SETTLING = 50


@dataclass(frozen=True)
class Plan:
    """How long the trials of a simulated experiment are."""

    warmup_s: float
    duration_s: float
    automatic: bool = False
    levels: int = 1
    blocks: int = 8
    variants: int = 2

    @property
    def recorded_s(self) -> float:
        """Warm-up and measurement."""
        return self.warmup_s + self.duration_s


AUTO_3, AUTO_5 = Plan(5, 3, automatic=True), Plan(5, 5, automatic=True)
AUTO_10, AUTO_30 = Plan(10, 10, automatic=True), Plan(30, 30, automatic=True)
DECLARED_3, DECLARED_5 = Plan(1, 3), Plan(2, 5)


def experiment(plan: Plan, **load: Any) -> Experiment:
    """The experiment of a plan."""
    warmup_s = None if plan.automatic else plan.warmup_s
    connections = tuple(10 * level for level in range(1, plan.levels + 1))
    return Experiment(
        name="simulated",
        workloads=(OltpWorkload(name=TITLE),),
        load=Load(
            **{"connections": connections, "duration_s": plan.duration_s, "warmup_s": warmup_s, **load}
        ),
        design=Design(blocks=plan.blocks),
        variants=tuple(Variant(name=name) for name in NAMES[: plan.variants]),
    )


def ticks(plan: Plan, generator: np.random.Generator, tau_s: float, shocks: str) -> NDArray[np.float64]:
    """Transactions of each tick of one trial; `tau_s` 0: warm from the first one on."""
    count = round(plan.recorded_s * TICKS_PER_S)
    shocked = generator.standard_normal(count + SETTLING)
    if shocks == "heavy":
        shocked = generator.standard_t(3, count + SETTLING) / math.sqrt(3.0)
    scale = TICK_SD * math.sqrt(1.0 - TICK_CORRELATION**2)
    speed = 1.0 + scale * lfilter([1.0], [1.0, -TICK_CORRELATION], shocked)[SETTLING:]
    if shocks == "stalls":
        begin = int(generator.integers(0, count))
        speed[begin : begin + 10] *= 0.2 if generator.random() < 0.3 else 1.0
    if shocks == "walk":
        speed *= np.exp(np.cumsum(generator.normal(0.0, 0.005, count)))
    at_s = (np.arange(count) + 0.5) / TICKS_PER_S
    cold = 1.0 - DEPTH * np.exp(-at_s / tau_s) if tau_s else 1.0
    level = 1e4 * math.exp(generator.normal(0.0, TRIAL_SD))
    return np.asarray(np.round(np.maximum(speed, 0.01) * cold * level))


def recording(plan: Plan, events: NDArray[np.float64]) -> Recording:
    """The records of a trial, as far as window and drift read them."""
    measure_us, end_us = round(plan.warmup_s * 1e6), round(plan.recorded_s * 1e6)
    phases: Any = {"measure": {"start_us": measure_us, "end_us": end_us}}
    intervals: Any = [
        {"phase": "measure", "start_us": at_us} for at_us in range(measure_us, end_us, 10 * TICK_US)
    ]
    return Recording(
        ticks=[(TICK_US * (index + 1), int(count)) for index, count in enumerate(events)],
        intervals=intervals,
        end={"reason": "time-limit", "phases": phases},
    )


def trials(
    plan: Plan, generator: np.random.Generator, tau_s: float, shocks: str = "normal"
) -> Iterator[tuple[MeasuredTrial, float]]:
    """The trials of one experiment, each with the mean of its window; b alone warms up."""
    points = product(range(plan.blocks), range(1, plan.levels + 1))
    names = NAMES[: plan.variants]
    for number, (block, level) in enumerate(points):
        series = [ticks(plan, generator, tau_s if name == "b" else 0.0, shocks) for name in names]
        recordings = [recording(plan, one) for one in series]
        spans = windows(recordings, automatic=plan.automatic)
        for position, name in enumerate(names):
            span = spans[position]
            measured = MeasuredTrial(
                ScheduleEntry(
                    len(names) * number + position, block, name, TITLE, {"connections": 10 * level}
                ),
                failure=None,
                window=span,
                warmup_end_us=round(plan.warmup_s * 1e6),
                drift=drift(recordings[position], span),
            )
            yield measured, float(series[position][span.start_us // TICK_US :].mean())


def simulate(
    plan: Plan, tau_s: float, experiments: int, shocks: str = "normal", seed: int = 1
) -> tuple[float, float]:
    """The share of experiments in which R01 warns, and the mean bias of b's throughput."""
    generator = np.random.default_rng([seed, round(10 * tau_s), plan.levels, plan.blocks])
    of = experiment(plan)
    warned, biases = 0, []
    for _ in range(experiments):
        measured, levels = zip(*trials(plan, generator, tau_s, shocks), strict=True)
        found = warm_state(measured, of, has_warmup_trials=True)
        warned += any(one.level == "warn" for one in found)
        of_b = [x for trial, x in zip(measured, levels, strict=True) if trial.variant == "b"]
        biases.append(fmean(of_b) / 1e4 - 1.0)
    return warned / experiments, fmean(biases)
