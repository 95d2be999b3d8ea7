"""Simulates runs with all that dbdyno offers switched on, and counts those that tell anything false.

The other simulations measure one guarantee each. Here every word of a run counts: verdicts over all loads and
at each load, gates, and secondary metrics, as the real judge gives them when the real stopping rule ends the
run. Verdicts on further metrics have an error rate of their own, and are counted in the same runs.

A variant that differs by exactly what is declared as equivalent, or loses exactly what is allowed, makes more
words false than any other: its difference is real beyond doubt, so that all tests pass their budgets on, and
yet *equivalent* and both results of a gate are false. Its latencies and errors are those of the baseline, so
that every secondary metric is false too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import cycle

import numpy as np

from dbdyno.decide import gate
from dbdyno.decide.comparison import Comparison, comparison_entry
from dbdyno.decide.decision import compare_all, compare_further
from dbdyno.decide.secondary_metrics import secondary_metrics
from dbdyno.decide.stopping import progress
from dbdyno.experiment.model import Experiment
from dbdyno.store.measured import MeasuredTrial

from .metrics import with_figures, with_metrics
from .row import Guarantee, Row, Sample
from .secondary_metrics import with_secondary_metrics
from .simulation import Claim, Random, World, experiment, simulate
from .stopping import stopping

# The looks before the last block at which a run may stop; a verdict includes all looks before it.
LOOKS, MAX_BLOCKS = (10,), 12
# The allowed loss, and the zone of equivalence.
LOSS_PERCENT, EDGE_PERCENT = 3.0, 1.0
NOISES = ("normal", "heavy", "stalls", "growing", "heavy+drifting+stalls+bimodal+growing")
WORLDS = tuple(World(noise=noise, position=0.02, slot_sd=0.01, disturbed=0.1) for noise in NOISES)
QUIET_WORLDS = tuple(World(noise=noise, sd=sd) for noise in ("normal", "heavy") for sd in (0.005, 0.01))


@dataclass(frozen=True)
class Case:
    """A kind of run whose words are counted, in several worlds in turn."""

    guarantee: str
    of: Experiment
    worlds: Sequence[World]
    # Variant -> its loss in log units, at every load; the others are equal to the baseline.
    losses: Mapping[str, float] = field(default_factory=dict)
    # Whether latencies and errors do not follow the throughput, so that every secondary metric is false.
    is_untied: bool = False
    cost: int = 1


def guarantees() -> list[Guarantee]:
    """The guarantees about any false word."""
    return [Guarantee(_Measure(case), case.cost) for case in (*_everything(), *_at_the_edge())]


def _everything() -> list[Case]:
    """Variant b is equal to a; c loses what is allowed."""
    losses = {"c": -math.log1p(-LOSS_PERCENT / 100.0)}
    switched_on = "gate, repeats, secondary metrics, design.stop"
    size = "3 variants, 2 workloads, 2 loads"
    large = experiment(variants=3, loads=2, workloads=2, delta_percent=LOSS_PERCENT)
    twin = experiment(variants=4, loads=2, delta_percent=LOSS_PERCENT, identical_copy=True)
    small = with_gate(experiment(), LOSS_PERCENT)
    return [
        Case(
            f"everything at once ({size}, {switched_on})",
            _stopped(large, LOSS_PERCENT),
            WORLDS,
            losses,
            cost=30,
        ),
        Case(
            f"everything at once (3 variants and an identical copy, 2 loads, further metrics, {switched_on})",
            with_metrics(_stopped(twin, LOSS_PERCENT)),
            WORLDS,
            losses,
            cost=30,
        ),
        Case(
            "the smallest run (2 variants, 1 load, 8 blocks, gate, secondary metrics)", small, WORLDS, cost=2
        ),
    ]


def _at_the_edge() -> list[Case]:
    """Variants c, d and so on lose exactly what is declared as equivalent, and what a gate allows."""
    loss = -math.log1p(-EDGE_PERCENT / 100.0)
    edge = f"b loses exactly the declared {EDGE_PERCENT:g} %, noise of 0.5 and 1 %"
    edges = edge.replace("b loses", "all but b lose")
    two = experiment(blocks=10, delta_percent=EDGE_PERCENT)
    three = experiment(variants=3, loads=2, delta_percent=EDGE_PERCENT)
    four = experiment(variants=4, loads=3, blocks=10, delta_percent=EDGE_PERCENT)
    b, c, cd = (dict.fromkeys(names, loss) for names in ("b", "c", "cd"))
    return [
        Case(f"{edge} (2 variants, secondary metrics)", two, QUIET_WORLDS, b, is_untied=True, cost=2),
        Case(
            f"{edge} (2 variants, gate, secondary metrics)",
            with_gate(two, EDGE_PERCENT),
            QUIET_WORLDS,
            b,
            is_untied=True,
            cost=2,
        ),
        Case(
            f"{edges} (4 variants, 3 loads, secondary metrics, further metrics)",
            with_metrics(four),
            QUIET_WORLDS,
            cd,
            is_untied=True,
            cost=10,
        ),
        Case(
            f"{edges} (3 variants, 2 loads, gate, secondary metrics, further metrics, design.stop)",
            with_metrics(_stopped(three, EDGE_PERCENT)),
            QUIET_WORLDS,
            c,
            is_untied=True,
            cost=30,
        ),
    ]


def with_gate(of: Experiment, max_loss_percent: float) -> Experiment:
    """The experiment with a gate."""
    design = of.design.model_copy(update={"max_loss_percent": max_loss_percent})
    return of.model_copy(update={"design": design})


def _stopped(of: Experiment, max_loss_percent: float) -> Experiment:
    return with_gate(stopping(of, max_blocks=MAX_BLOCKS), max_loss_percent)


@dataclass(frozen=True)
class _Measure:
    """Counts the runs of a case that tell anything false."""

    case: Case

    def __call__(self, sample: Sample) -> list[Row]:
        case, random = self.case, np.random.default_rng(sample.seed(22))
        runs = [false_words(case, world, random) for world, _ in zip(cycle(case.worlds), range(sample.count))]
        first, further = (sum(map(any, words)) / sample.count for words in zip(*runs, strict=True))
        what = "any false word in verdicts, gates and secondary metrics"
        rows = [Row(f"{case.guarantee}: {what}", sample.count, first, 0.05)]
        if case.of.metrics[1:]:
            text = f"{case.guarantee}: any wrong verdict on 3 further metrics"
            rows.append(Row(text, sample.count, further, 0.05))
        return rows


def false_words(case: Case, world: World, random: Random) -> tuple[list[bool], list[bool]]:
    """Whether each word of one run is false, and each word on further metrics; its stopping rule ends it."""
    of, loads = case.of, len(case.of.load.points())
    effects = {name: [-loss] * loads for name, loss in case.losses.items()}
    trials = _trials(case, replace(world, effects=effects), random)
    comparisons = compare_all(trials, of, [])
    further = [one for metrics in compare_further(trials, of, []) for one in metrics]
    return (
        list(_first_words(case, comparisons)),
        [_is_further_false(case, one) for one in further],
    )


def _trials(case: Case, world: World, random: Random) -> list[MeasuredTrial]:
    """The trials of a run, up to the block after which it is decided."""
    of, untied = case.of, case.losses if case.is_untied else {}
    plain = simulate(of, world, random)
    trials = (with_figures if of.metrics[1:] else with_secondary_metrics)(plain, random, untied=untied)
    for blocks in LOOKS if of.design.stop else ():
        present = [trial for trial in trials if trial.block < blocks]
        if progress(present, of).is_decided:
            return present
    return trials


def _first_words(case: Case, comparisons: Sequence[Comparison]) -> Iterator[bool]:
    """Whether each word of the first family is false."""
    delta, allowed = case.of.design.delta_percent, case.of.design.max_loss_percent
    for one, lines in zip(comparisons, secondary_metrics(comparisons, case.of), strict=True):
        truth = -case.losses.get(one.variant, 0.0)
        yield from _verdicts_are_false(one, truth, delta)
        if allowed is not None and not one.is_identical:
            yield _gate_is_false(one, comparisons, allowed, truth)
        for line in lines:
            # Lower throughput is a higher latency, and more errors per transaction.
            is_higher = truth < 0.0 and not case.is_untied and line.metric != "variation_percent"
            yield line.direction is not None and (line.direction == "better" or not is_higher)


def _verdicts_are_false(one: Comparison, truth: float, delta_percent: float | None) -> Iterator[bool]:
    """Whether the verdict over all loads, and each at one load, is false.

    `truth` is by how much the variant is better at every load, in log units.
    """
    truths = (truth,) * len(one.pairs)
    for word in (one.verdict, *one.judged.load_verdicts):
        yield Claim(str(word), truth, truths).is_false(delta_percent)


def _is_further_false(case: Case, one: Comparison) -> bool:
    """Whether any verdict on a further metric is false."""
    # Mean latency grows as the throughput falls. If p99 is untied, CPU time grows instead of it.
    is_equal = one.scale.metric == ("latency_p99_us" if case.is_untied else "cpu_us_per_transaction")
    truth = 0.0 if is_equal else -case.losses.get(one.variant, 0.0)
    return any(_verdicts_are_false(one, truth, case.of.design.delta_percent))


def _gate_is_false(
    one: Comparison, comparisons: Sequence[Comparison], max_loss_percent: float, truth: float
) -> bool:
    identical = gate.find_identical(one.workload, [comparison_entry(each, "") for each in comparisons])
    is_decided = one.judged.is_gate_decided
    found = gate.result(comparison_entry(one, ""), max_loss_percent, identical, is_decided=is_decided)
    return found == "worse" or (found == "not-inferior" and truth != 0.0)
