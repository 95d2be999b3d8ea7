"""The guaranteed error rates of dbdyno's verdicts, each with the simulation that measures it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from scipy import stats

from dbdyno.experiment.model import Experiment
from dbdyno.stats.family import ADVISORY_ALPHA

from . import (
    bisection,
    capacity,
    everything,
    factors,
    foreign_load,
    highest,
    history,
    metrics,
    order,
    replication,
    reports,
    secondary_metrics,
    slices,
    stopping,
    suites,
    warmup,
)
from .row import Guarantee, Row, Sample
from .simulation import Result, World, experiment, repeat, simulate
from .warmup import AUTO_3, AUTO_5, AUTO_30, DECLARED_3, DECLARED_5

NOISES = ("normal", "heavy", "drifting", "autocorrelated", "stalls", "bimodal", "growing")
ALL = "heavy+drifting+stalls+bimodal+growing"

# Wrong answers of a gate whose variant loses exactly what is allowed.
GATE_RESULTS = ("not-inferior", "worse")


def guarantees() -> list[Guarantee]:
    """Every simulated guarantee, in the order of the table."""
    return [
        *(_equal_variants(2, noise) for noise in (*NOISES, ALL)),
        *(_equal_variants(4, noise) for noise in (*NOISES, ALL)),
        _false_words("4 equal variants, 10 loads", World(), loads=10, variants=4, cost=8),
        _false_words("2 equal variants, 2 workloads, 3 loads", World(), workloads=2, cost=2),
        _false_words(
            "a, a-again (identical) and b, all equal, 3 loads", World(), variants=3, identical_copy=True
        ),
        _false_words(
            "a, its identical copy and b, all equal, on places that differ by 1 % (standard deviation), "
            "2 % noise",
            World(sd=0.02, place_sd=0.01),
            loads=1,
            variants=3,
            identical_copy=True,
        ),
        *factors.guarantees(),
        _false_words("2 equal variants, position effect of 5 %", World(position=math.log(1.05))),
        *map(_periodic, order.WORST),
        Guarantee(_crossover),
        _false_words(
            "2 equal variants, slots that differ by 2 % (standard deviation)", World(sd=0.02, slot_sd=0.02)
        ),
        _false_words(
            "2 equal variants, other processes disturb 15 % of the blocks, which are repeated",
            World(disturbed=0.15),
        ),
        *foreign_load.guarantees(),
        *(Guarantee(one) for one in (_failing, _crossing, _crossing_found, _edge)),
        Guarantee(partial(_levels_cover, 3)),
        Guarantee(partial(_levels_cover, 10), cost=3),
        *(Guarantee(partial(_covers, noise)) for noise in ("normal", "heavy", ALL)),
        Guarantee(_crowded_words, cost=4),
        Guarantee(_power),
        *(Guarantee(partial(_warm, plan)) for plan in (AUTO_3, replace(AUTO_5, variants=4), DECLARED_5)),
        # From a time constant with a bias of 2 % to as long as what is recorded.
        *(Guarantee(partial(_cold, AUTO_3, tau_s)) for tau_s in (2.5, 8.0)),
        *(Guarantee(partial(_cold, DECLARED_3, tau_s)) for tau_s in (0.8, 4.0)),
        *(Guarantee(partial(_cold, AUTO_30, tau_s), cost=4) for tau_s in (17.0, 60.0)),
        *_stopped(),
        Guarantee(_gate),
        _gate_at_any_look("2 variants", (8, 11, 14, 17, 20), variants=2, cost=4),
        _gate_at_any_look("4 variants, 3 loads", (10, 14), variants=4, loads=3, cost=10),
        *_secondary_metrics(),
        *metrics.guarantees(World(noise=ALL)),
        *everything.guarantees(),
        *(Guarantee(partial(_in_slices, effect), cost=2) for effect in (0.0, math.log(0.9))),
        *capacity.guarantees(),
        *highest.guarantees(),
        *suites.guarantees(),
        *reports.guarantees(),
        *replication.guarantees(),
        *bisection.guarantees(),
        *history.guarantees(),
    ]


def _in_slices(effect: float, sample: Sample) -> list[Row]:
    """Both limits at once: a wrong verdict on equal variants, an interval on different ones."""
    results = slices.repeat(experiment(), effect, sample.count, seed=sample.seed(18))
    guarantee = "in slices, with drift, heavy tails and stalls"
    if effect == 0.0:
        return _share(f"2 equal variants {guarantee}: any wrong verdict", results, Result.is_false, 0.05)
    guarantee = f"10 % slower {guarantee}: the interval contains the true value"
    return _share(guarantee, results, lambda result: result.covers, 0.95, at_most=False)


def _stopped() -> list[Guarantee]:
    """The guarantees about runs that may stop after any block."""
    # A verdict includes all looks before it, so that a few of the looks find what all would.
    every, some = range(8, 25), (8, 12, 16, 20, 24)
    return [
        _wrong_at_any_look("2 equal variants, normal noise", World(), every, cost=4),
        *(
            _wrong_at_any_look(f"2 equal variants, {_noise_text(kind)}", World(noise=kind), some, cost=4)
            for kind in ("heavy", "stalls", "growing", ALL)
        ),
        _wrong_at_any_look(
            "4 equal variants, 3 loads, noise of every kind",
            World(noise=ALL),
            (10, 14),
            variants=4,
            loads=3,
            cost=20,
        ),
        *(Guarantee(partial(_mix, top_up=top_up)) for top_up in (True, False)),
    ]


def _gate_at_the_edge(*, variants: int = 2, loads: int = 1) -> tuple[Experiment, World]:
    """An experiment with a gate of 3 %, whose variants all lose exactly 3 %."""
    of = experiment(variants=variants, loads=loads)
    design = of.design.model_copy(update={"max_loss_percent": 3.0})
    effects = {one.name: [math.log(0.97)] * loads for one in of.variants[1:]}
    return of.model_copy(update={"design": design}), World(noise=ALL, effects=effects)


def _gate(sample: Sample) -> list[Row]:
    of, world = _gate_at_the_edge()
    shares = stopping.gated(of, world, sample.count, (of.design.blocks,), seed=sample.seed(16))
    return [
        Row(f"true loss at the edge of --max-loss 3%: gate {result}", sample.count, share, 0.025)
        for result, share in zip(GATE_RESULTS, shares, strict=True)
    ]


def _gate_at_any_look(
    guarantee: str, looks: Sequence[int], *, variants: int, loads: int = 1, cost: int
) -> Guarantee:
    of, world = _gate_at_the_edge(variants=variants, loads=loads)
    of = stopping.stopping(of, max_blocks=looks[-1])

    def measure(sample: Sample) -> list[Row]:
        shares = stopping.gated(of, world, sample.count, looks, seed=sample.seed(17))
        text = (
            f"{guarantee}, true losses at the edge of --max-loss 3%, judged up to {looks[-1]} blocks "
            "whatever "
            "ends the run: any gate passes or fails"
        )
        return [Row(text, sample.count, sum(shares), 0.05)]

    return Guarantee(measure, cost)


def _secondary_metrics() -> list[Guarantee]:
    """The guarantees about latency, errors and stability as secondary metrics."""
    one, three = experiment(), experiment(loads=3)
    four = experiment(variants=4, loads=3)
    stopped = stopping.stopping(experiment(), max_blocks=14)
    noise = World(noise=ALL)
    return [
        _false_lines("2 equal variants, normal noise", one, World(), (8,)),
        _false_lines("2 equal variants, 3 loads, noise of every kind", three, noise, (8,), cost=2),
        _false_lines("4 equal variants, 3 loads, normal noise", four, World(), (8,), cost=8),
        _false_lines(
            "2 equal variants, judged up to 14 blocks whatever ends the run",
            stopped,
            World(),
            (8, 11, 14),
            cost=8,
        ),
        *(Guarantee(partial(_line_found, loads), cost=2) for loads in (1, 3)),
    ]


def _false_lines(
    guarantee: str, of: Experiment, world: World, looks: Sequence[int], *, cost: int = 1
) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        wrong = secondary_metrics.false_share(of, world, sample.count, looks, seed=sample.seed(16))
        return [Row(f"{guarantee}: any wrong secondary metric", sample.count, wrong, 0.05)]

    return Guarantee(measure, cost)


def _line_found(loads: int, sample: Sample) -> list[Row]:
    found = secondary_metrics.found_share(
        experiment(loads=loads), World(), sample.count, seed=sample.seed(17)
    )
    text = (
        f"equal throughput but twice the p99 latency, {loads} load{'s' if loads > 1 else ''}, 5 % noise of "
        "throughput, 15 % of p99: named in the sentence"
    )
    return [Row(text, sample.count, found, 0.90, at_most=False)]


def limits(count: int) -> list[Row]:
    """Error rates beyond the guarantee."""
    guarantee = "2 equal variants, 3 loads, every trial correlated 0.7 with the one before"
    return [
        *_false_words(guarantee, World(noise="persistent")).measure(Sample(count)),
        *replication.limits(count // 4),
        *bisection.limits(count // 20),
    ]


def measure(index: int, sample: Sample) -> list[Row]:
    """Measure one guarantee, given by its index, because processes cannot exchange functions."""
    return guarantees()[index].measure(sample)


def _noise_text(noise: str) -> str:
    return {ALL: "noise of every kind", "stalls": "noise with stalls"}.get(noise, f"{noise} noise")


def _equal_variants(variants: int, noise: str) -> Guarantee:
    guarantee = f"{variants} equal variants, 3 loads, {_noise_text(noise)}"
    return _false_words(guarantee, World(noise=noise), variants=variants, cost=variants // 2)


def _share(
    guarantee: str,
    results: Sequence[Result],
    holds: Callable[[Result], bool],
    limit: float,
    *,
    at_most: bool = True,
) -> list[Row]:
    """One row: the share of the results for which `holds` is true."""
    return [Row(guarantee, len(results), sum(map(holds, results)) / len(results), limit, at_most=at_most)]


def _false_words(
    guarantee: str,
    world: World,
    *,
    loads: int = 3,
    variants: int = 2,
    workloads: int = 1,
    identical_copy: bool = False,
    blocks: int = 8,
    cost: int = 1,
) -> Guarantee:
    """The share of experiments with any wrong verdict."""
    of = experiment(
        variants=variants, loads=loads, workloads=workloads, blocks=blocks, identical_copy=identical_copy
    )

    def measure(sample: Sample) -> list[Row]:
        results = repeat(of, world, sample.count, sample.seed(1))
        return _share(f"{guarantee}: any wrong verdict", results, Result.is_false, 0.05)

    return Guarantee(measure, cost)


def _periodic(cell: order.Cell) -> Guarantee:
    """A disturbance that repeats, as cron jobs and checkpoints do."""
    world = World(sd=order.NOISE, period=(cell.period, cell.depth), jitter=cell.jitter)
    return _false_words(
        f"periodic disturbance, {cell}",
        world,
        loads=cell.loads,
        variants=cell.variants,
        workloads=cell.workloads,
        blocks=cell.blocks,
        cost=4 * cell.workloads * cell.loads,
    )


def _crossover(sample: Sample) -> list[Row]:
    world = World(position=math.log(1.05), effects={"b": [math.log(0.95)]})
    results = repeat(experiment(), world, sample.count, sample.seed(3))
    known = [result.crossover_covers for result in results if result.crossover_covers is not None]
    return [
        Row(
            "position effect of 5 %: cross-over interval contains the true value",
            len(known),
            sum(known) / len(known),
            0.95,
            at_most=False,
        )
    ]


def _failing(sample: Sample) -> list[Row]:
    world = World(sd=0.02, effects={"b": [math.log(1.1)] * 3}, failures={"b": 2})
    results = repeat(experiment(loads=3), world, sample.count, sample.seed(4))
    return _share(
        "10 % faster, but the server fails in 2 of 8 blocks: verdict faster or equivalent",
        results,
        lambda result: result.claims[0].word in {"faster", "equivalent"},
        0.05,
    )


CROSSING = {"b": [math.log(1.25), 0.0, math.log(0.8)]}


def _crossing(sample: Sample) -> list[Row]:
    results = repeat(
        experiment(loads=3, delta_percent=2.0), World(sd=0.03, effects=CROSSING), sample.count, sample.seed(5)
    )
    return _share(
        "+25 % at one load, -20 % at another: any wrong verdict",
        results,
        lambda result: result.is_false(2.0),
        0.05,
    )


def _crossing_found(sample: Sample) -> list[Row]:
    results = repeat(experiment(loads=3), World(sd=0.03, effects=CROSSING), sample.count, sample.seed(6))
    return _share(
        "+25 % at one load, -20 % at another, 3 % noise: verdict mixed",
        results,
        lambda result: result.word == "mixed",
        0.90,
        at_most=False,
    )


def _edge(sample: Sample) -> list[Row]:
    world = World(sd=0.01, effects={"b": [math.log(1.02)]})
    results = repeat(experiment(delta_percent=2.0), world, sample.count, sample.seed(7))
    return _share(
        "true difference at the edge of the declared ±2 %: verdict equivalent",
        results,
        lambda result: result.word == "equivalent",
        0.025,
    )


def _levels_cover(loads: int, sample: Sample) -> list[Row]:
    effects = {"b": [math.log(0.92) if load % 2 else 0.0 for load in range(loads)]}
    results = repeat(experiment(loads=loads), World(sd=0.03, effects=effects), sample.count, sample.seed(8))
    return _share(
        f"{loads} loads, every second one 8 % slower: the intervals of all loads "
        "contain their true values together",
        results,
        lambda result: result.levels_cover,
        0.95,
        at_most=False,
    )


def _covers(noise: str, sample: Sample) -> list[Row]:
    world = World(noise=noise, effects={"b": [math.log(0.9)] * 3})
    results = repeat(experiment(loads=3), world, sample.count, sample.seed(9))
    return _share(
        f"10 % slower, {_noise_text(noise)}: the interval over all loads contains the true value",
        results,
        lambda result: result.covers,
        0.95,
        at_most=False,
    )


def _crowded() -> World:
    """A world with all effects and disturbances at once."""
    return World(
        noise=ALL,
        sd=0.04,
        position=0.03,
        slot_sd=0.015,
        disturbed=0.1,
        failures={"d": 1},
        effects={"b": [0.0, 0.0, 0.0], "c": [math.log(1.2), 0.0, math.log(0.85)], "d": [0.02, 0.02, 0.02]},
    )


def _crowded_words(sample: Sample) -> list[Row]:
    of = experiment(variants=4, loads=3, workloads=2, delta_percent=5.0, blocks=10)
    results = repeat(of, _crowded(), sample.count, sample.seed(10))
    return _share(
        "4 variants, 2 workloads, 3 loads (crossing curves, failures, order, slots, "
        "repeats): any wrong verdict",
        results,
        lambda result: result.is_false(5.0),
        0.05,
    )


def _wrong_at_any_look(
    guarantee: str, world: World, looks: Sequence[int], *, variants: int = 2, loads: int = 1, cost: int
) -> Guarantee:
    of = stopping.stopping(experiment(variants=variants, loads=loads), max_blocks=looks[-1])

    def measure(sample: Sample) -> list[Row]:
        wrong = stopping.wrong_at_any_look(of, world, sample.count, looks, seed=sample.seed(14))
        text = f"{guarantee}, judged up to {looks[-1]} blocks whatever ends the run: any wrong verdict"
        return [Row(text, sample.count, wrong, 0.05)]

    return Guarantee(measure, cost)


def _mix(sample: Sample, *, top_up: bool) -> list[Row]:
    """Stop when decided, against 20 blocks. Only whole rounds of the questions are asked."""
    cycles = max(2, sample.count // stopping.CYCLE)
    found = stopping.mix(cycles, top_up=top_up, seed=sample.seed(21))
    plan = f"stop when decided, at most 20 blocks{'' if top_up else ', top_up = false'}"
    text, count = f"{plan}, against 20 blocks", cycles * stopping.CYCLE
    saved, lost = (stopping.mean_and_deviation(values) for values in (found.saved, found.lost))
    covers = math.fsum(found.covers) / cycles
    return [
        Row(f"{text}: blocks saved", count, saved[0], 0.30, at_most=False, deviation=saved[1]),
        Row(f"{text}: right verdicts lost", count, lost[0], 0.05 if top_up else 0.02, deviation=lost[1]),
        Row(f"{plan}: the interval at the end contains the true value", count, covers, 0.95, at_most=False),
    ]


def _power(sample: Sample) -> list[Row]:
    world = World(noise=ALL, sd=0.05, effects={"b": [math.log(0.8)]})
    results = repeat(experiment(), world, sample.count, sample.seed(11))
    return _share(
        "20 % slower, 5 % noise of every kind, 8 blocks: verdict slower",
        results,
        lambda result: result.word == "slower",
        0.80,
        at_most=False,
    )


def _described(plan: warmup.Plan) -> str:
    origin = "determined by dbdyno" if plan.automatic else "declared"
    return f"warm-up of {plan.warmup_s:g} s ({origin}), measurement of {plan.duration_s:g} s"


def _warm(plan: warmup.Plan, sample: Sample) -> list[Row]:
    warned, _ = warmup.simulate(plan, 0.0, sample.count, seed=sample.seed(12))
    text = f"{plan.variants} warm variants, {_described(plan)}: R01 warns"
    return [Row(text, sample.count, warned, ADVISORY_ALPHA)]


def _cold(plan: warmup.Plan, tau_s: float, sample: Sample) -> list[Row]:
    warned, bias = warmup.simulate(plan, tau_s, sample.count, seed=sample.seed(13))
    text = (
        f"one variant begins 30 % slow with a time constant of {tau_s:g} s (bias {bias * 100.0:.0f} %), "
        f"{_described(plan)}: R01 warns"
    )
    return [Row(text, sample.count, warned, 0.80, at_most=False)]


def common_practice(count: int) -> list[Row]:
    """Common practice on equal servers: the share of experiments with a wrong verdict, per method."""
    return [
        _custom("one run each, the larger number wins", count, lambda one, other, _: one != other),
        _custom(
            "one run each, a difference above 2.5 % counts",
            count,
            lambda one, other, _: abs(math.log(other / one)) > math.log(1.025),
        ),
        _custom("one run each, t-test over its 30 seconds", count, _t_test),
        _custom_blocks("8 runs each, one variant after the other, t-test over the runs", count),
    ]


def _custom(name: str, count: int, word: Callable[[float, float, np.random.Generator], bool]) -> Row:
    random = np.random.default_rng(12)
    world = World(noise="drifting+bimodal")
    of = experiment(blocks=1)
    false = 0
    for _ in range(count):
        first, second = (trial.value("throughput") for trial in simulate(of, world, random))
        false += word(first, second, random)
    return Row(name, count, false / count, 0.05)


def _t_test(first: float, second: float, random: np.random.Generator) -> bool:
    """Seconds with 9 % noise around each run's own level, as measured on a server."""
    series = [level * np.exp(random.normal(0.0, 0.09, 30)) for level in (first, second)]
    return bool(stats.ttest_ind(*series).pvalue < 0.05)


def _custom_blocks(name: str, count: int) -> Row:
    random = np.random.default_rng(13)
    false = 0
    for _ in range(count):
        # The machine drifts by 20 % over the 16 runs.
        levels = np.linspace(0.0, -0.2, 16) + random.normal(0.0, 0.05, 16)
        false += stats.ttest_ind(levels[:8], levels[8:]).pvalue < 0.05
    return Row(name, count, false / count, 0.05)
