"""design.metrics: which metric carries the verdict, and the second family of the others."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.truth.metrics import METRICS, with_figures, with_metrics
from benchmarks.truth.simulation import World, experiment, simulate
from tests.unit.sentences import check_sentences
from tests.unit.test_judge_golden import recorded

from dbdyno.checks.design import support_of_verdict
from dbdyno.decide.comparison import Comparison
from dbdyno.decide.decision import compare_all, compare_further
from dbdyno.decide.secondary_metrics import secondary_metrics
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.metrics import metric_key, metric_name, metric_text, percentile_of
from dbdyno.experiment.model import Experiment, ServerSpec
from dbdyno.experiment.reading import read_bytes
from dbdyno.measure.figures import figures, windows
from dbdyno.rules.design import percentiles_of_few
from dbdyno.say.sentence import metric_sentence, sentence
from dbdyno.stats.histogram import merge
from dbdyno.stats.verdict_rule import Verdict
from dbdyno.store.measured import MeasuredTrial

FILE = """
[experiment]
name = "metrics"
[[workload]]
name = "oltp_read_only"
[load]
{load}
duration = "2s"
[design]
metrics = {metrics}
[[variant]]
name = "a"
[[variant]]
name = "b"
server = {{ variables = {{ max_connections = 99 }} }}
"""


def read(metrics: str, load: str = "connections = [4]") -> Experiment:
    return read_bytes(FILE.format(metrics=metrics, load=load).encode(), Path("metrics.toml"))


def trials_of(of: Experiment, *, p99_of_b: float = 1.0, sd: float = 0.02) -> list[MeasuredTrial]:
    random = np.random.default_rng(5)
    return with_figures(simulate(of, World(sd=sd), random), random, p99_of_b)


def further(of: Experiment, trials: list[MeasuredTrial]) -> dict[str, Comparison]:
    """The comparisons of b by the further metrics."""
    return {one.scale.metric: one for one in compare_further(trials, of, [])[-1]}


def test_names_have_keys_and_texts() -> None:
    keys = {name: metric_key(metric_name(name)) for name in ("mean", "p50", "p99.9", "p97.5", "p99.99")}
    assert keys == {
        "mean": "latency_mean_us",
        "p50": "latency_p50_us",
        "p99.9": "latency_p999_us",
        "p97.5": "latency_p975_us",
        "p99.99": "latency_p9999_us",
    }
    assert [percentile_of(keys[name]) for name in ("p50", "p99.9", "p97.5")] == [50.0, 99.9, 97.5]
    assert metric_text("latency_p999_us") == "p99.9 latency"


@pytest.mark.parametrize(
    ("metrics", "load", "message"),
    [
        ('["p99", "latency"]', "connections = [4]", "there is no metric 'latency': write throughput, mean, "),
        ('["p99.0"]', "connections = [4]", "there is no metric 'p99.0'"),
        ('["p100"]', "connections = [4]", "there is no metric 'p100'"),
        ('["p05"]', "connections = [4]", "there is no metric 'p05'"),
        ('["p99", "mean", "p99"]', "connections = [4]", "p99: duplicate"),
        ('["p99", "throughput"]', "connections = [4]\nrate = [100]", "the rate fixes the throughput"),
    ],
)
def test_a_metric_that_cannot_be_compared_is_an_error(metrics: str, load: str, message: str) -> None:
    with pytest.raises(InvalidExperiment, match=r"design\.metrics") as raised:
        read(metrics, load)
    assert message in str(raised.value)


def test_the_first_metric_carries_the_verdict() -> None:
    assert read("[]").metrics == ("throughput",)
    assert read("[]", "connections = [4]\nrate = [100]").metrics == ("latency_p95_us",)
    of = with_metrics(experiment())
    of = of.model_copy(update={"design": of.design.model_copy(update={"metrics": ("p99", "throughput")})})
    (one,) = compare_all(trials_of(of, p99_of_b=3.0), of, [])
    assert one.verdict is Verdict.SLOWER
    assert sentence(one, []).startswith("b has a higher p99 latency than a: 3.0 times")


def test_further_metrics_are_a_family_of_their_own() -> None:
    of = with_metrics(experiment(blocks=10))
    trials = trials_of(of, p99_of_b=2.0)
    (primary,) = compare_all(trials, of, [])
    assert (primary.scale.metric, primary.scale.alpha) == ("throughput", 0.05)
    found = further(of, trials)
    assert list(found) == ["latency_p99_us", "latency_mean_us", "cpu_us_per_transaction"]
    assert {one.scale.alpha for one in found.values()} == {0.05 / 3}
    words = {name: one.verdict for name, one in found.items()}
    assert words.pop("latency_p99_us") is Verdict.SLOWER
    assert set(words.values()) == {Verdict.UNDECIDED}
    check_sentences("further metrics", *map(metric_sentence, found.values()))
    # The mean latency of a closed loop is the number of connections divided by the throughput.
    mean, rate = (one.judged.overall for one in (found["latency_mean_us"], primary))
    assert mean is not None
    assert rate is not None
    assert mean.effect_percent == pytest.approx(100.0 / (1.0 + rate.effect_percent / 100.0) - 100.0)
    (lines,) = secondary_metrics([primary], of)
    assert {line.metric for line in lines} & {"latency_p99_us", "latency_p95_us"} == {"latency_p95_us"}


def test_less_cpu_time_is_better_and_says_so() -> None:
    of = with_metrics(experiment(blocks=10))
    trials = [
        replace(one, figures=replace(one.figures, cpu_us_per_transaction=cpu_us * share))
        for one in trials_of(of)
        if one.figures is not None and (cpu_us := one.figures.cpu_us_per_transaction)
        for share in (0.8 if one.variant == "b" else 1.0,)
    ]
    one = further(of, trials)["cpu_us_per_transaction"]
    assert one.verdict is Verdict.FASTER
    check_sentences("less CPU time", metric_sentence(one))


def test_a_server_without_visible_processes_has_no_cpu_time() -> None:
    of = with_metrics(experiment())
    trials = [
        replace(one, figures=replace(one.figures, cpu_us_per_transaction=None))
        if one.figures and one.variant == "b"
        else one
        for one in trials_of(of)
    ]
    one = further(of, trials)["cpu_us_per_transaction"]
    assert one.verdict is Verdict.NOT_COMPARABLE
    check_sentences("no CPU time", metric_sentence(one))
    # The same if it is missing at one of two loads only.
    of = with_metrics(experiment(loads=2))
    trials = [
        replace(one, figures=replace(one.figures, cpu_us_per_transaction=None))
        if one.figures and one.variant == "b" and one.at == of.load.points()[0].as_dict()
        else one
        for one in trials_of(of)
    ]
    check_sentences("no CPU time at a load", metric_sentence(further(of, trials)["cpu_us_per_transaction"]))
    remote = ServerSpec(kind="remote", url="mysql://u@db/test")
    variants = (of.variants[0], of.variants[1].model_copy(update={"server": remote}))
    for metrics, level in ((METRICS, "warn"), (("cpu_per_transaction",), "stop")):
        design = of.design.model_copy(update={"metrics": metrics})
        given = of.model_copy(update={"variants": variants, "design": design})
        (finding,) = [one for one in support_of_verdict(given) if "cpu_per" in one.text]
        assert (finding.level, finding.subject) == (level, "b")


@pytest.mark.parametrize(
    ("load", "of_variant", "is_tied"),
    [
        ("connections = [4]", "", True),
        ("connections = [4]\nrate = [100]", "", False),
        ('connections = [4]\nthink_time = "10ms"', "", False),
        ("connections = [4]", '[variant.load]\nthink_time = "10ms"', False),
        ('connections = [4]\nramp = { duration = "1s" }', "", False),
    ],
)
def test_throughput_determines_latency_in_a_closed_loop_without_pauses(
    load: str, of_variant: str, is_tied: bool
) -> None:
    text = FILE.format(metrics='["p99"]', load=load) + of_variant
    assert read_bytes(text.encode(), Path("metrics.toml")).ties_latency == is_tied


def test_a_percentile_of_few_transactions_is_a_note_that_says_what_would_suffice() -> None:
    of = experiment()
    design = of.design.model_copy(update={"metrics": ("throughput", "p99.9", "p99", "mean")})
    of = of.model_copy(update={"design": design})
    trials = [
        replace(one, figures=replace(one.figures, events=10_000)) for one in trials_of(of) if one.figures
    ]
    (note,) = percentiles_of_few(trials, of)
    assert (note.code, note.level) == ("R13", "note")
    check_sentences("few transactions beyond a percentile", note.text)
    assert note.fix.startswith(f'Set duration = "{3 * of.load.duration_s:g}s" in [load]')
    assert list(percentiles_of_few(trials_of(experiment()), experiment())) == []


def test_blocks_that_are_too_few_for_the_further_metrics_are_a_note() -> None:
    of = with_metrics(experiment(blocks=6))
    (finding,) = [one for one in support_of_verdict(of) if "further" in one.text]
    assert finding.evidence["blocks_needed"] == 7
    assert further(of, trials_of(of))["latency_p99_us"].verdict is Verdict.TOO_FEW_BLOCKS
    assert not [one for one in support_of_verdict(with_metrics(experiment())) if "further" in one.text]


def test_identical_variants_are_the_noise_floor_of_every_metric() -> None:
    of = with_metrics(experiment(variants=3, identical_copy=True, blocks=10))
    trials = trials_of(of, p99_of_b=1.5)
    assert further(of, trials)["latency_p99_us"].verdict is Verdict.SLOWER
    trials = [
        replace(one, figures=replace(one.figures, latency_p99_us=one.figures.latency_p99_us * 4.0))
        if one.figures and one.variant == "a-again"
        else one
        for one in trials
    ]
    found = further(of, trials)
    assert found["latency_p99_us"].verdict is Verdict.UNDECIDED
    floors = [one.floor_percent for one in found.values()]
    assert floors[0] is not None
    assert floors[0] > 200.0 > max(floor for floor in floors[1:] if floor is not None)


def test_other_percentiles_are_those_of_the_histogram() -> None:
    recording = recorded("closed-loop")
    (window,) = windows([recording], automatic=False)
    found = figures(recording, window, {"latency_p975_us": 97.5})
    assert figures(recording, window).percentiles == {}
    values = [us for us, count in merge([recording.measure["latency_us"]]).items() for _ in range(count)]
    expected = sorted(values)[math.ceil(0.975 * len(values)) - 1]
    assert found.metric("latency_p975_us") == pytest.approx(expected, rel=0.001, abs=1.0)
    assert math.isnan(found.metric("cpu_us_per_transaction"))


@pytest.mark.parametrize(
    ("unknown", "is_bound"),
    [
        ([], False),
        ([[1_000, 1]], False),
        # More than 1 % of the transactions.
        ([[1_000, 40]], True),
        # One that hangs.
        ([[30_000_000, 1]], True),
    ],
)
def test_a_mean_is_a_lower_bound_if_many_transactions_or_much_time_is_missing(
    unknown: list[list[int]], is_bound: bool
) -> None:
    recording = recorded("closed-loop")
    (window,) = windows([recording], automatic=False)
    totals = recording.measure
    totals["censored_us"] = unknown
    # 3,200 transactions.
    totals["events"] *= 100
    totals["latency_sum_us"] *= 100
    totals["latency_us"] = [[lower, count * 100] for lower, count in totals["latency_us"]]
    assert ("latency_mean_us" in figures(recording, window).censored) == is_bound
