"""Simulates suites: many tests (workloads), judged as one family per variant; by the real judge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dbdyno.decide.comparison import Comparison, comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.decide.gate import decided_limits, gate
from dbdyno.experiment.model import Experiment, OltpWorkload
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Family, GateResult, VerdictFile

from . import stopping
from .row import Guarantee, Row, Sample
from .simulation import Random, World, experiment, simulate, with_values

TESTS = 30
# Of so many tests the variant b has this effect, in percent.
PLANTED, EFFECT_PERCENT = 5, 10.0
MAX_LOSS_PERCENT = 3.0
_DIRECTIONS = (Verdict.FASTER, Verdict.SLOWER, Verdict.MIXED)


def suite(*, variants: int = 2, blocks: int, loads: int = 1, tests: int = TESTS) -> Experiment:
    """An experiment with that many tests."""
    workloads = tuple(OltpWorkload(name="oltp_point_select", label=f"test-{n:02}") for n in range(tests))
    return experiment(variants=variants, blocks=blocks, loads=loads).model_copy(
        update={"workloads": workloads}
    )


def _planted(trials: Sequence[MeasuredTrial], affected: Sequence[str]) -> list[MeasuredTrial]:
    """The trials, in which the variant b is faster in some tests."""
    return _changed(trials, affected, 1.0 + EFFECT_PERCENT / 100.0)


def _changed(
    trials: Sequence[MeasuredTrial], affected: Sequence[str], factor: float, at: float | None = None
) -> list[MeasuredTrial]:
    """The trials, in which the throughput of the variant b is another one in some tests, at one load or at
    all.
    """
    return [
        replace(
            trial,
            figures=with_values(trial.figures, throughput=trial.figures.throughput * factor),
        )
        if trial.figures
        and trial.variant == "b"
        and trial.workload in affected
        and at in (None, trial.point.value)
        else trial
        for trial in trials
    ]


def false_share(of: Experiment, world: World, count: int, seed: int) -> float:
    """The share of suites of equal tests in which any test has a word for a difference."""
    random = np.random.default_rng(seed)
    return sum(_has_word(simulate(of, world, random), of) for _ in range(count)) / count


def _has_word(trials: Sequence[MeasuredTrial], of: Experiment) -> bool:
    return any(
        word in _DIRECTIONS
        for one in compare_all(trials, of, [])
        for word in (one.judged.verdict, *one.judged.load_verdicts)
    )


def planted(of: Experiment, world: World, random: Random) -> tuple[float, bool]:
    """The share of the planted effects that one suite finds, and whether any other test has a word, or a
    planted effect the wrong one.
    """
    names = [workload.title for workload in of.workloads]
    affected = [str(name) for name in random.choice(names, PLANTED, replace=False)]
    comparisons = compare_all(_planted(simulate(of, world, random), affected), of, [])
    words = {one.workload: one.judged.verdict for one in comparisons}
    found = sum(words[name] is Verdict.FASTER for name in affected)
    wrong = any(
        word in _DIRECTIONS and (name not in affected or word is not Verdict.FASTER)
        for name, word in words.items()
    )
    return found / PLANTED, wrong


def guarantees() -> list[Guarantee]:
    """The guarantees about suites."""
    made = []
    for noise in (0.03, 0.05):
        for blocks in (8, 12):
            of, world = suite(blocks=blocks), World(sd=noise)
            made.append(
                _false_words(f"30 equal tests, noise of {noise:.0%} a trial, {blocks} blocks", of, world)
            )
    skewed = World(noise="skewed", sd=0.05)
    made.append(_false_words("30 equal tests, skewed noise, 6 blocks", suite(blocks=6), skewed))
    three = suite(variants=3, blocks=8)
    made.append(_false_words("3 equal variants, 30 tests, 8 blocks", three, World(sd=0.03)))
    two_loads = suite(blocks=8, loads=2, tests=10)
    made.append(_false_words("10 equal tests at 2 loads, 8 blocks", two_loads, World(sd=0.03)))
    for tests, failed in ((30, 8), (3, 6)):
        of = suite(blocks=8, loads=1 if tests == TESTS else 2, tests=tests)
        text = f"{tests} equal tests, both servers fail in a trial of {failed} of 8 blocks"
        made.append(_false_words(text, of, World(sd=0.03, failures={"a": failed, "b": failed})))
    powers = (_power(noise, blocks) for noise in (0.03, 0.05) for blocks in (8, 12))
    single = (Guarantee(one, cost=8) for one in (_single_loads, _crossing, _failing, _false_discoveries))
    return [*made, *powers, *single, *_gates(), Guarantee(_at_any_look, cost=20)]


def _wrong(comparison: Comparison, verdict: Verdict, loads: Sequence[Verdict]) -> bool:
    """Whether the comparison has a word for a difference that is not the true one."""
    judged = comparison.judged
    words = zip((judged.verdict, *judged.load_verdicts), (verdict, *loads), strict=True)
    return any(word in _DIRECTIONS and word is not truth for word, truth in words)


def _single_loads(sample: Sample) -> list[Row]:
    """Half of the tests differ at one of two loads, so that rows with and without an effect are tested
    together.
    """
    of, random = suite(blocks=8, loads=2, tests=10), np.random.default_rng(sample.seed(28))
    names = [workload.title for workload in of.workloads][:5]
    none, faster = Verdict.UNDECIDED, Verdict.FASTER
    wrong = 0
    for _ in range(sample.count):
        trials = _changed(simulate(of, World(sd=0.03), random), names, 1.25, at=10.0)
        wrong += any(
            _wrong(one, faster, (faster, none)) if one.workload in names else _wrong(one, none, (none, none))
            for one in compare_all(trials, of, [])
        )
    text = "5 of 10 tests 25 % faster at one of 2 loads, noise of 3 % a trial, 8 blocks"
    return [Row(f"{text}: any wrong verdict", sample.count, wrong / sample.count, 0.05)]


def _crossing(sample: Sample) -> list[Row]:
    """A test whose effect depends on the load, which the mean over the loads hides."""
    of = _with_gate(suite(blocks=8, loads=2, tests=10))
    random, mixed, passed = np.random.default_rng(sample.seed(29)), 0, 0
    name = of.workloads[0].title
    for _ in range(sample.count):
        trials = _changed(simulate(of, World(sd=0.01), random), [name], 1.28, at=10.0)
        comparisons = compare_all(_changed(trials, [name], 0.82, at=20.0), of, [])
        mixed += comparisons[0].judged.verdict is Verdict.MIXED
        passed += (
            gate(verdict_file(of, comparisons), MAX_LOSS_PERCENT, decided_limits(comparisons)).result
            == "not-inferior"
        )
    text = "1 of 10 tests +28 % at one load, -18 % at another, noise of 1 % a trial, 8 blocks"
    return [
        Row(f"{text}: verdict mixed", sample.count, mixed / sample.count, 0.90, at_most=False),
        Row(f"{text}: the suite's gate of 3 % passes", sample.count, passed / sample.count, 0.025),
    ]


def _failing(sample: Sample) -> list[Row]:
    """A failed trial does not take its test out of the joint test."""
    of, random, found = suite(blocks=8), np.random.default_rng(sample.seed(30)), 0
    name = of.workloads[0].title
    for _ in range(sample.count):
        trials = _changed(simulate(of, World(sd=0.01), random), [name], 0.74)
        own = [n for n, trial in enumerate(trials) if (trial.workload, trial.variant) == (name, "b")]
        failed = int(random.choice(own))
        trials[failed] = MeasuredTrial(trials[failed].planned, "the server went away", "server")
        found += compare_all(trials, of, [])[0].judged.verdict is Verdict.SLOWER
    text = "1 of 30 tests 26 % slower, of which the server fails in 1 of 8 blocks, noise of 1 % a trial"
    return [Row(f"{text}: verdict slower", sample.count, found / sample.count, 0.90, at_most=False)]


def _at_any_look(sample: Sample) -> list[Row]:
    of = stopping.stopping(suite(blocks=8, loads=2, tests=10), max_blocks=14)
    random, wrong, looks = np.random.default_rng(sample.seed(31)), 0, (8, 11, 14)
    for _ in range(sample.count):
        trials = simulate(of, World(sd=0.03), random)
        wrong += any(_has_word([one for one in trials if one.block < blocks], of) for blocks in looks)
    text = "10 equal tests at 2 loads, judged up to 14 blocks whatever ends the run"
    return [Row(f"{text}: any wrong verdict", sample.count, wrong / sample.count, 0.05)]


def _gates() -> list[Guarantee]:
    """The guarantees about the gate of a suite."""
    return [
        Guarantee(partial(_gate_at_the_edge, 1), cost=8),
        Guarantee(partial(_gate_at_the_edge, TESTS), cost=8),
        Guarantee(_gate_passes, cost=8),
    ]


def _gated(of: Experiment, world: World, losing: int, random: Random) -> tuple[GateResult, bool]:
    """The result of a suite of which the first tests lose exactly the allowed 3 %, and whether any word of
    its verdicts and gates is wrong.
    """
    names = [workload.title for workload in of.workloads]
    trials = _changed(simulate(of, world, random), names[:losing], 1.0 - MAX_LOSS_PERCENT / 100.0)
    comparisons = compare_all(trials, of, [])
    found = gate(verdict_file(of, comparisons), MAX_LOSS_PERCENT, decided_limits(comparisons))
    wrong = found.result == "not-inferior" and losing > 0
    for one, entry in zip(comparisons, found.comparisons, strict=True):
        loses = one.workload in names[:losing]
        wrong |= entry.result == "worse" or (loses and entry.result == "not-inferior")
        wrong |= one.judged.verdict in _DIRECTIONS and not (loses and one.judged.verdict is Verdict.SLOWER)
    return found.result, wrong


def verdict_file(of: Experiment, comparisons: Sequence[Comparison]) -> VerdictFile:
    return VerdictFile(
        experiment=of.name,
        baseline="a",
        order_seed=None,
        family=Family(sentences=1, alpha=0.05, text=""),
        comparisons=[comparison_entry(one, "") for one in comparisons],
        checks=[],
    )


def _with_gate(of: Experiment) -> Experiment:
    design = of.design.model_copy(update={"max_loss_percent": MAX_LOSS_PERCENT})
    return of.model_copy(update={"design": design})


def _gate_at_the_edge(losing: int, sample: Sample) -> list[Row]:
    of, random = _with_gate(suite(blocks=8)), np.random.default_rng(sample.seed(26))
    # With this noise the other tests pass in all experiments.
    results = [_gated(of, World(sd=0.01), losing, random) for _ in range(sample.count)]
    text = f"{losing} of 30 tests lose exactly the 3 % of --max-loss, noise of 1 % a trial, 8 blocks"
    passed = sum(word == "not-inferior" for word, _ in results) / sample.count
    wrong = sum(is_wrong for _, is_wrong in results) / sample.count
    return [
        Row(f"{text}: the suite's gate passes", sample.count, passed, 0.025),
        Row(f"{text}: any wrong verdict or gate", sample.count, wrong, 0.05),
    ]


def _gate_passes(sample: Sample) -> list[Row]:
    of, random = _with_gate(suite(blocks=12)), np.random.default_rng(sample.seed(27))
    results = [_gated(of, World(sd=0.015), 0, random)[0] for _ in range(sample.count)]
    passed = sum(word == "not-inferior" for word in results) / sample.count
    text = "30 equal tests, noise of 1.5 % a trial, 12 blocks, --max-loss 3%: the suite's gate passes"
    return [Row(text, sample.count, passed, 0.60, at_most=False)]


def _false_discoveries(sample: Sample) -> list[Row]:
    """The expected share of wrong verdicts among those with a direction."""
    of = suite(blocks=16)
    of = of.model_copy(update={"design": of.design.model_copy(update={"error_rate": "false-discovery"})})
    rows = []
    for effects in (0, 15):
        random = np.random.default_rng(sample.seed(25))
        shares = [_share_of_wrong(of, World(sd=0.03), random, effects) for _ in range(sample.count)]
        text = f"false discovery rate, {effects} effects of 10 % among 30 tests, 16 blocks: wrong verdicts"
        rows.append(Row(text, sample.count, math.fsum(shares) / sample.count, 0.05))
    return rows


def _share_of_wrong(of: Experiment, world: World, random: Random, effects: int) -> float:
    names = [workload.title for workload in of.workloads][:effects]
    comparisons = compare_all(_planted(simulate(of, world, random), names), of, [])
    words = {one.workload: one.judged.verdict for one in comparisons if one.judged.verdict in _DIRECTIONS}
    wrong = sum(name not in names or word is not Verdict.FASTER for name, word in words.items())
    return wrong / max(1, len(words))


def _false_words(text: str, of: Experiment, world: World) -> Guarantee:
    def measure(sample: Sample) -> list[Row]:
        share = false_share(of, world, sample.count, sample.seed(23))
        return [Row(f"{text}: any wrong verdict", sample.count, share, 0.05)]

    return Guarantee(measure, cost=8)


def _power(noise: float, blocks: int) -> Guarantee:
    of, world = suite(blocks=blocks), World(sd=noise)
    text = f"5 effects of 10 % among 30 tests, noise of {noise:.0%} a trial, {blocks} blocks"
    # Only this one is guaranteed; the others say what to expect.
    limit = 0.9 if (noise, blocks) == (0.03, 12) else 0.0

    def measure(sample: Sample) -> list[Row]:
        random = np.random.default_rng(sample.seed(24))
        results = [planted(of, world, random) for _ in range(sample.count)]
        found = math.fsum(share for share, _ in results) / sample.count
        wrong = sum(is_wrong for _, is_wrong in results) / sample.count
        return [
            Row(f"{text}: share of the effects found", sample.count, found, limit, at_most=False),
            Row(f"{text}: any wrong verdict", sample.count, wrong, 0.05),
        ]

    return Guarantee(measure, cost=8)
