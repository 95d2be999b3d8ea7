"""Simulates whole reports of equal variants, and counts those that say something false besides the verdicts.

A trial has throughput, the ticks of its warm-up and measurement, latencies and errors, and counters of its
server. The real judge computes what the report says of them: changed costs (*why*), R01, R10 and R12. The
secondary metrics belong to the verdicts, whose error rate they share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dbdyno.decide.cost_changes import explain
from dbdyno.decide.decision import compare_all
from dbdyno.experiment.model import Experiment
from dbdyno.explain import RESOURCES, Cost, Measure
from dbdyno.finding import Finding
from dbdyno.rules import design
from dbdyno.rules.warmth import warm_state
from dbdyno.stats.family import ADVISORY_ALPHA, COSTS_ALPHA
from dbdyno.store.measured import MeasuredTrial

from . import warmup
from .row import Guarantee, Row, Sample
from .simulation import Random, World, experiment, simulate
from .slices import with_slices

# Each counter has noise of its own, and some that all counters of a trial share, in log units: its standard
# deviation is between these.
COUNTERS, NOISE_MIN, NOISE_MAX = 60, 0.002, 0.1
SHARED = 0.6
MEASURES: Sequence[Measure] = (
    *RESOURCES,
    *(Measure(f"Counter_{number}", f"Counter_{number}", "counter") for number in range(COUNTERS)),
)
# Growth of a counter per transaction.
PER_TRANSACTION = 1000.0
ALL = "heavy+drifting+stalls+bimodal+growing"
SKEWED = "skewed+stalls"
WHY = "why"
# What may be false -> its limit.
LIMITS: Mapping[str, float] = {
    WHY: COSTS_ALPHA,
    **dict.fromkeys(("R01", "R10", "R12"), ADVISORY_ALPHA),
}


@dataclass(frozen=True)
class Case:
    """A kind of report."""

    text: str
    of: Experiment
    world: World
    in_slices: bool = False
    cost: int = 4


def guarantees() -> list[Guarantee]:
    """The guarantees about reports of equal variants, and about what their statements find."""
    two, four = experiment(), experiment(variants=4, loads=3)
    cases = [
        Case("2 equal variants, noise of every kind", two, World(noise=ALL)),
        Case("2 equal variants in slices", two, World(sd=0.02), in_slices=True, cost=6),
        Case("4 equal variants, 3 loads, noise of every kind", four, World(noise=ALL), cost=30),
        Case("4 equal variants, 3 loads, skewed noise and stalls", four, World(noise=SKEWED), cost=30),
    ]
    return [
        *(_false_statements(case) for case in cases),
        Guarantee(_cost_found, cost=4),
        Guarantee(_order_found),
    ]


def _false_statements(case: Case) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        reports = [_statements(case, random) for random in _randoms(sample, 61)]
        kinds = [kind for kind in LIMITS if case.in_slices or kind != "R12"]
        text = f"report of {case.text}: any false statement besides the verdicts"
        rows = [Row(text, sample.count, sum(map(bool, reports)) / sample.count, 0.05)]
        for kind in kinds:
            share = sum(kind in report for report in reports) / sample.count
            rows.append(Row(f"report of {case.text}: {kind} is false", sample.count, share, LIMITS[kind]))
        return rows

    return Guarantee(measure, case.cost)


def _cost_found(sample: Sample) -> list[Row]:
    """Whether *why* names a cost that is 10 % higher, among all others."""
    found = 0
    for random in _randoms(sample, 62):
        of, key = experiment(), MEASURES[0].key
        trials = simulate(of, World(), random)
        costs = with_costs(trials, random)
        for trial in trials:
            cost = costs[trial.index][key]
            noise = float(random.normal(0.0, 0.02)) + (math.log(1.1) if trial.variant == "b" else 0.0)
            amount = cost.transactions * PER_TRANSACTION * math.exp(noise)
            costs[trial.index][key] = replace(cost, counted=amount)
        (changes,) = explain(trials, costs, of).comparisons
        found += any(one.key == key and one.significant for one in changes.measures)
    text = "10 % more CPU time per transaction, 2 % noise, 8 blocks, 60 other counters: why names it"
    return [Row(text, sample.count, found / sample.count, 0.90, at_most=False)]


def _order_found(sample: Sample) -> list[Row]:
    found = 0
    for random in _randoms(sample, 63):
        of = experiment()
        trials = simulate(of, World(sd=0.015, position=math.log(0.95)), random)
        found += any(one.code == "R10" for one in _comparison_findings(trials, of))
    text = "order effect of 5 %, 1.5 % noise, 8 blocks: R10 warns"
    return [Row(text, sample.count, found / sample.count, 0.80, at_most=False)]


def _randoms(sample: Sample, seed: int) -> Sequence[Random]:
    return np.random.default_rng(sample.seed(seed)).spawn(sample.count)


def _comparison_findings(trials: Sequence[MeasuredTrial], of: Experiment) -> list[Finding]:
    comparisons = compare_all(trials, of, [])
    return [
        *design.order_effects(comparisons, trials, of),
        *design.totals(comparisons),
        *design.below_resolution(comparisons),
        *design.unequal_load(comparisons),
        *design.identical_variants(comparisons),
    ]


def _statements(case: Case, random: Random) -> set[str]:
    """The kinds of statements with a direction that a report makes besides its verdicts."""
    trials = with_drift(case.of, simulate(case.of, case.world, random), random)
    if case.in_slices:
        trials = with_slices(trials, random)
    explanation = explain(trials, with_costs(trials, random), case.of)
    found = [*warm_state(trials, case.of, has_warmup_trials=True), *_comparison_findings(trials, case.of)]
    kinds = {one.code for one in found if one.level == "warn"}
    if any(
        change.significant
        for one in explanation.comparisons
        for change in (*one.measures, *(change for point in one.points for change in point.measures))
    ):
        kinds.add(WHY)
    return kinds


def with_drift(of: Experiment, trials: Sequence[MeasuredTrial], random: Random) -> list[MeasuredTrial]:
    """The trials with the windows and the drift of simulated ticks of warm servers."""
    loads = [value for point in of.load.points() for value in point.as_dict().values()]
    plan = warmup.Plan(2, 5, levels=len(loads), blocks=of.design.blocks, variants=len(of.variants))
    recorded = {(one.block, one.point.value, one.variant): one for one, _ in warmup.trials(plan, random, 0.0)}
    levels = {load: 10.0 * (level + 1) for level, load in enumerate(loads)}
    made = []
    for trial in trials:
        one = recorded[trial.block, levels[trial.point.value], trial.variant]
        made.append(replace(trial, window=one.window, warmup_end_us=one.warmup_end_us, drift=one.drift))
    return made


def with_costs(trials: Sequence[MeasuredTrial], random: Random) -> dict[int, dict[str, Cost]]:
    """Trial -> its counters, which have the same cost per transaction in every trial, apart from noise."""
    deviations = np.geomspace(NOISE_MIN, NOISE_MAX, len(MEASURES))
    costs: dict[int, dict[str, Cost]] = {}
    for trial in trials:
        assert trial.figures is not None, "the servers do not fail"
        events = float(trial.figures.events)
        own = random.standard_t(4, len(MEASURES)) / math.sqrt(2.0)
        mixed = math.sqrt(1.0 - SHARED**2) * own + SHARED * float(random.normal())
        amounts = events * PER_TRANSACTION * np.exp(deviations * mixed)
        costs[trial.index] = {
            measure.key: Cost(measure, float(amount), events)
            for measure, amount in zip(MEASURES, amounts, strict=True)
        }
    return costs
