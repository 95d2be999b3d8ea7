"""Latency, errors and stability as secondary metrics: which are compared, and which the sentence names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.truth.secondary_metrics import with_secondary_metrics
from benchmarks.truth.simulation import World, experiment, simulate
from tests.unit.sentences import check_sentences

from dbdyno.decide.decision import compare_all
from dbdyno.decide.secondary_metrics import Line, secondary_metrics
from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.say.sentence import sentence
from dbdyno.store.measured import MeasuredTrial


def trials_of(of: Experiment, world: World, *, p99_of_b: float = 1.0) -> list[MeasuredTrial]:
    random = np.random.default_rng(4)
    return with_secondary_metrics(simulate(of, world, random), random, p99_of_b)


def judged(of: Experiment, trials: Sequence[MeasuredTrial], *findings: Finding) -> tuple[str, list[Line]]:
    """Sentence and secondary metrics of the last comparison."""
    comparisons = compare_all(trials, of, findings)
    lines = secondary_metrics(comparisons, of)
    return sentence(comparisons[-1], [], None, lines[-1]), lines[-1]


def of_metric(lines: Sequence[Line], metric: str) -> Line:
    (line,) = (one for one in lines if one.metric == metric)
    return line


@pytest.mark.parametrize(
    ("effect", "name"),
    [(0.0, "undecided, high p99"), (0.3, "faster, high p99"), (-0.3, "slower, high p99")],
)
def test_the_sentence_names_what_contradicts_the_verdict(effect: float, name: str) -> None:
    world = World(sd=0.02, effects={"b": [effect]})
    of = experiment()
    text, lines = judged(of, trials_of(of, world, p99_of_b=3.0))
    assert of_metric(lines, "latency_p99_us").direction == "worse"
    check_sentences(name, text)


@pytest.mark.parametrize(("effect", "direction"), [(0.0, None), (0.3, "worse")])
def test_secondary_metrics_have_a_fifth_of_the_error_rate_until_the_verdict_is_certain(
    effect: float, direction: str | None
) -> None:
    """With 7 blocks the smallest p-value is 1/64, which is within 5 % but not within 1 %."""
    of = experiment(blocks=7)
    world = World(sd=0.02, effects={"b": [effect]})
    line = of_metric(judged(of, trials_of(of, world, p99_of_b=3.0))[1], "latency_p99_us")
    assert line.direction == direction
    ends = line.effect.interval_percent
    assert ends is not None
    assert (ends[0] <= 0.0) == (direction is None)


def test_an_equivalent_variant_has_its_latency_named_unless_it_is_within_the_zone() -> None:
    of = experiment(delta_percent=10.0)
    quiet = World(sd=0.001, effects={"b": [math.log(1.02)]})
    high, equal = (judged(of, trials_of(of, quiet, p99_of_b=times))[0] for times in (3.0, 1.0))
    check_sentences("faster within the zone, with and without a high p99", high, equal)


def test_a_percentile_needs_thirty_transactions_beyond_it() -> None:
    of = experiment()
    trials = trials_of(of, World())
    _, lines = judged(of, trials)
    assert {line.metric for line in lines} == {
        *("latency_p50_us", "latency_p95_us", "latency_p99_us"),
        *("errors_per_1000", "variation_percent"),
    }, "10,000 transactions have 10 beyond p99.9"
    assert trials[0].figures is not None
    trials[0] = replace(trials[0], figures=replace(trials[0].figures, events=2_999))
    assert "latency_p99_us" not in {line.metric for line in judged(of, trials)[1]}


def test_few_errors_and_short_trials_are_not_compared() -> None:
    of = experiment()
    trials = trials_of(of, World())
    one = trials[0]
    assert one.figures is not None
    pair = [trial.index for trial in trials if trial.block == one.block]
    for index in pair:
        figures = trials[index].figures
        assert figures is not None
        trials[index] = replace(trials[index], figures=replace(figures, errors={"1213": 4}))
    trials[0] = replace(trials[0], seconds=trials[0].seconds[:4])
    metrics = {line.metric for line in judged(of, trials)[1]}
    assert metrics == {"latency_p50_us", "latency_p95_us", "latency_p99_us"}


def test_a_load_at_which_a_server_failed_has_none() -> None:
    of = experiment(loads=2)
    trials = trials_of(of, World())
    failed = next(trial for trial in trials if trial.at == {"connections": 10})
    trials[failed.index] = MeasuredTrial(failed.planned, "server went away", "server")
    assert {line.load for line in judged(of, trials)[1]} == {1}


@pytest.mark.parametrize(("backlog", "loads"), [(1, {0, 1}), (100, {0, 1}), (101, {1})])
def test_a_load_at_which_a_server_did_not_keep_up_has_none(backlog: int, loads: set[int]) -> None:
    of = experiment(loads=2)
    trials = trials_of(of, World())
    one = next(trial for trial in trials if trial.at == {"connections": 10} and trial.figures)
    assert one.figures is not None
    bounds = ("latency_p999_us", "latency_max_us")
    waiting = replace(one.figures, events=10_000, backlog=backlog, censored=bounds)
    trials[one.index] = replace(one, figures=waiting)
    assert {line.load for line in judged(of, trials)[1]} == loads


def test_more_errors_are_worse() -> None:
    of = experiment()
    trials = trials_of(of, World())
    for trial in [one for one in trials if one.variant == "b"]:
        assert trial.figures is not None
        more = {"1213": trial.figures.errors["1213"] * 3}
        trials[trial.index] = replace(trial, figures=replace(trial.figures, errors=more))
    more_errors, lines = judged(of, trials)
    line = of_metric(lines, "errors_per_1000")
    assert line.direction == "worse"
    assert line.baseline == pytest.approx(4.0, rel=0.2), "some 40 errors of 10,000 transactions"
    for trial in [one for one in trials if one.variant == "a"]:
        assert trial.figures is not None
        trials[trial.index] = replace(trial, figures=replace(trial.figures, errors={}))
    only_b, lines = judged(of, trials)
    assert of_metric(lines, "errors_per_1000").baseline == 0.0
    check_sentences("more errors, and errors of b only", more_errors, only_b)


def test_unequal_load_and_identical_variants_have_no_direction() -> None:
    of = experiment()
    trials = trials_of(of, World(), p99_of_b=3.0)
    shares = {"a": 0.03, "b": 0.09}
    unequal = [replace(trial, foreign=shares[trial.variant]) for trial in trials]
    text, lines = judged(of, unequal)
    assert "but" not in text
    assert {line.direction for line in lines} == {None}
    same = of.variants[0].model_copy(update={"name": "b"})
    copy = of.model_copy(update={"variants": (of.variants[0], same)})
    text, lines = judged(copy, trials)
    assert "identical" in text
    assert {line.direction for line in lines} == {None}


def test_identical_variants_are_a_noise_floor() -> None:
    of = experiment(variants=3, identical_copy=True)
    trials = trials_of(of, World(), p99_of_b=3.0)
    assert of_metric(judged(of, trials)[1], "latency_p99_us").direction == "worse"
    for trial in [one for one in trials if one.variant == "a-again"]:
        assert trial.figures is not None
        slow = replace(trial.figures, latency_p99_us=trial.figures.latency_p99_us * 4.0)
        trials[trial.index] = replace(trial, figures=slow)
    assert of_metric(judged(of, trials)[1], "latency_p99_us").direction is None
    # Without secondary metrics of the copy the noise is unknown.
    copy = next(one for one in trials if one.variant == "a-again")
    trials[copy.index] = MeasuredTrial(copy.planned, "server went away", "server")
    assert of_metric(judged(of, trials)[1], "latency_p99_us").direction is None


def test_an_unfinished_run_has_no_secondary_metrics() -> None:
    of = experiment()
    trials = trials_of(of, World(), p99_of_b=3.0)
    last = trials[-1]
    trials[-1] = MeasuredTrial(last.planned, "not run", "not-run")
    assert judged(of, trials)[1] == []
