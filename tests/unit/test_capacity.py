"""The capacity under a latency objective: from the file to the sentence."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.truth import capacity as simulated
from rich.console import Console
from scipy.stats import wilcoxon
from tests.unit.judged_run import Judged
from tests.unit.pages import table_rows
from tests.unit.sentences import check_sentences
from tests.unit.stored_run import Making

from dbdyno.checks.design import support_of_verdict
from dbdyno.decide.capacity import Capacities, MeasuredCapacity, Use, _of, capacity_of_only_variant
from dbdyno.decide.comparison import Comparison, comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.decide.gate import result
from dbdyno.decide.secondary_metrics import secondary_metrics
from dbdyno.decide.stopping import progress
from dbdyno.design.planning import choose_pairing
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.load import SHARES, found_rates
from dbdyno.experiment.model import Experiment, Point, Stop
from dbdyno.experiment.reading import read_bytes
from dbdyno.problem import Problem
from dbdyno.run import plan as run_plan
from dbdyno.run import warmup as run_warmup
from dbdyno.run.progress import BlockEnded
from dbdyno.run.warmup import warmup_trials
from dbdyno.say.capacity import capacity_sentence
from dbdyno.say.sentence import sentence
from dbdyno.stats.capacity import BEYOND_MAX, log_capacity
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.preparation import WarmupTrial
from dbdyno.terminal.progress import block_text
from dbdyno.terminal.result import describe, show

TARGET = {"protocol": "mysql", "endpoints": [{"unix": {"path": "/x"}}], "user": "u", "database": "d"}
FILE = """
[experiment]
name = "x"
[[workload]]
name = "oltp_read_only"
[load]
connections = [64]
latency_objective = { p99 = "20ms" }
duration = "5s"
[[variant]]
name = "a"
[[variant]]
name = "b"
[variant.server.variables]
max_error_count = 65
"""


def read(text: str = FILE) -> Experiment:
    return read_bytes(text.encode(), Path("x.toml"))


def judged(
    effect: float, trials: list[MeasuredTrial] | None = None, seed: int = 5
) -> tuple[Comparison, Experiment]:
    of = simulated.of_blocks(8, effect)
    trials = trials or simulated.simulate(of, effect, np.random.default_rng(seed))
    (comparison,) = compare_all(trials, of, [])
    return comparison, of


@pytest.mark.parametrize(
    ("latencies", "capacity"),
    [
        # The limit is the geometric mean of 5 and 20, so the crossing is that of 200 and 400.
        ([5.0, 5.0, 20.0, 40.0], (math.sqrt(200.0 * 400.0),) * 2),
        ([20.0, 30.0, 40.0, 50.0], (0.0, 100.0)),
        ([1.0, 2.0, 3.0, 4.0], (800.0, math.inf)),
        # Pooled: 10 and 2.5 have the geometric mean 5.
        ([2.5, 10.0, 2.5, 20.0], (math.sqrt(400.0 * 800.0),) * 2),
        # Nothing is higher than ten times the limit.
        ([5.0, 5.0, 5.0, math.inf], (400.0 * 2 ** (math.log(2.0) / math.log(2.0 * BEYOND_MAX)),) * 2),
    ],
)
def test_the_crossing_is_interpolated(latencies: list[float], capacity: tuple[float, float]) -> None:
    low, high = log_capacity([100.0, 200.0, 400.0, 800.0], latencies, 10.0)
    assert (math.exp(low), math.exp(high)) == pytest.approx(capacity)


def only_variant(name: str, seed: int = 5, blocks: int = 8) -> MeasuredCapacity:
    """The capacity of one of the simulated variants, as if it were alone."""
    of = simulated.of_blocks(blocks, simulated.PLANTED)
    trials = simulated.simulate(of, simulated.PLANTED, np.random.default_rng(seed))
    alone = [trial for trial in trials if trial.variant == name]
    capacity = capacity_of_only_variant(alone, {}, of.load, None)
    assert capacity is not None
    return capacity


def test_the_only_variant_has_an_estimate_and_an_interval() -> None:
    """The interval is the one of scipy's signed-rank test: its ends are where the p-value crosses 5 %."""
    of = simulated.of_blocks(8, 0.0)
    trials = [t for t in simulated.simulate(of, 0.0, np.random.default_rng(5)) if t.variant == "a"]
    capacity = capacity_of_only_variant(trials, {}, of.load, None)
    assert capacity is not None
    assert capacity.interval is not None
    logs = [low for low, high in _of(trials, capacity.rates, capacity.objective, "a").values()]
    estimate, (low, high) = capacity.estimate[0], capacity.interval
    assert estimate is not None
    assert low is not None
    assert high is not None
    assert low < estimate < high
    for end in (low, high):
        outside, inside = (
            wilcoxon([value - math.log(end * factor) for value in logs], method="exact").pvalue
            for factor in ((0.999, 1.001) if end == low else (1.001, 0.999))
        )
        assert outside < 0.05 <= inside
    text = capacity_sentence(capacity, "a", 64, [])
    assert re.match(
        r"a serves [\d,]+ transactions/s while p99 latency stays below 26 ms \(95 % interval ", text
    )
    assert "at most 64 connections; 8 blocks; " in text


def test_the_interval_of_the_only_variant_holds_the_true_capacity() -> None:
    """In at least 95 % of the runs, less four standard errors."""
    true = simulated.PEAK * (1.0 - simulated.IDLE_US / simulated.OBJECTIVE.limit_us)
    inside = 0
    for seed in range(200):
        capacity = only_variant("a", seed)
        assert capacity.interval is not None
        low, high = capacity.interval
        inside += (low or 0.0) <= true <= (high or math.inf)
    assert inside >= 200 * (0.95 - 4 * math.sqrt(0.95 * 0.05 / 200))


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (Use(800.0, 0.93, 0.4, 0.9, 0.0, 0.0), "its CPUs are the limit, 93 % busy at 800/s"),
        (Use(800.0, 0.3, 0.4, 0.9, 0.0, 0.0), "row locks are the limit, 40 % of the mean latency"),
        (Use(800.0, 0.3, 0.1, 0.9, 0.0, 0.0), "the load generator is the limit, 90 % busy"),
        (Use(800.0, 0.3, 0.1, 0.2, 5.0, 1200.0), "its disk (5 reads and 1,200 writes per second)"),
        (Use(800.0, None, None, 0.2, None, None), "dbdyno does not see the CPUs and disks"),
    ],
)
def test_what_limits_the_capacity_is_said(use: Use, words: str) -> None:
    assert words in capacity_sentence(replace(only_variant("a"), use=use), "a", 64, [])


def test_rates_that_do_not_contain_the_capacity_and_few_blocks_are_said() -> None:
    known = only_variant("a", blocks=3)
    assert known.interval is None
    assert "too few blocks for an interval: 6 are needed" in capacity_sentence(known, "a", 1, [])
    below, above = (replace(known, estimate=ends, use=None) for ends in ((None, 500.0), (900.0, None)))
    assert "give lower rates" in capacity_sentence(below, "a", 1, [])
    assert "more than 900 transactions/s" in capacity_sentence(above, "a", 1, [])


def test_the_sentence_says_how_many_transactions_a_variant_serves() -> None:
    comparison, _ = judged(simulated.PLANTED)
    text = sentence(comparison, [])
    check_sentences("fewer transactions", text)
    entry = comparison_entry(comparison, text)
    assert (entry.curve.metric, entry.curve.verdict) == ("capacity", "slower")
    assert {(one.metric, one.verdict, one.interval_percent) for one in entry.points} == {
        ("latency_p99_us", None, None)
    }
    assert entry.capacity is not None
    assert entry.capacity.baseline[0] == pytest.approx(807.7, rel=0.02)
    assert entry.capacity.variant[0] == pytest.approx(767.3, rel=0.02)
    assert (result(entry, 0.1), result(entry, 20.0)) == ("worse", "not-inferior")


def test_a_server_that_fails_at_a_rate_meets_no_objective_beyond_it() -> None:
    of = simulated.of_blocks(8, 0.0)
    trials = [
        replace(trial, failure="gone", failed_by="server", figures=None)
        if trial.variant == "b" and trial.point.value == of.load.points()[2].rate
        else trial
        for trial in simulated.simulate(of, 0.0, np.random.default_rng(6))
    ]
    comparison, _ = judged(0.0, trials)
    assert comparison.judged.verdict.value == "slower"
    entry = comparison_entry(comparison, "")
    assert entry.capacity is not None
    high = entry.capacity.variant[1]
    assert high is not None
    assert high <= (of.load.points()[2].rate or 0.0)


def test_where_no_rate_misses_the_objective_only_a_bound_is_known() -> None:
    of = simulated.of_blocks(8, 0.0)
    trials = [
        replace(trial, figures=replace(trial.figures, latency_p99_us=1_000.0, censored=()))
        if trial.variant == "b" and trial.figures
        else trial
        for trial in simulated.simulate(of, 0.0, np.random.default_rng(7))
    ]
    comparison, _ = judged(0.0, trials)
    check_sentences("no rate misses the latency objective", sentence(comparison, []))


@pytest.mark.parametrize(("at_most", "is_kept"), [({}, False), ({"latency_p99_us": 30_000.0}, True)])
def test_a_trial_misses_the_objective_if_more_transactions_are_unknown_than_may_be_late(
    at_most: dict[str, float], is_kept: bool
) -> None:
    of = simulated.of_blocks(8, 0.0)
    late: dict[str, Any] = {
        "latency_p99_us": 1_000.0,
        "censored": ("latency_p99_us",),
        "at_most": at_most,
    }
    trials = [
        replace(trial, figures=replace(trial.figures, **late))
        for trial in simulated.simulate(of, 0.0, np.random.default_rng(8))
        if trial.figures
    ]
    capacities = judged(0.0, trials)[0].capacities
    assert capacities is not None
    low, high = capacities.entry().baseline
    assert (low is not None, high is not None) == (is_kept, not is_kept)


def test_rates_that_are_all_too_high_are_named() -> None:
    of = simulated.of_blocks(8, 0.0)
    trials = [
        replace(trial, figures=replace(trial.figures, latency_p99_us=90_000.0)) if trial.figures else trial
        for trial in simulated.simulate(of, 0.0, np.random.default_rng(7))
    ]
    comparison, of = judged(0.0, trials)
    few = [trial for trial in trials if trial.block < 3]
    check_sentences("all rates are too high", sentence(comparison, []), sentence(judged(0.0, few)[0], []))
    stop = of.design.model_copy(update={"stop": Stop(max_blocks=20)})
    for blocks in (1, 8):
        first = [trial for trial in trials if trial.block < blocks]
        line = block_text(
            BlockEnded(blocks, 20, progress(first, of.model_copy(update={"design": stop})), 60.0, None)
        )
        check_sentences(f"all rates are too high, block {blocks}", line)


def test_capacities_are_those_of_the_same_blocks() -> None:
    of = simulated.of_blocks(8, 0.0)
    trials = [
        replace(trial, failure="gone", failed_by="harness", figures=None)
        if trial.variant == "b" and trial.block in (2, 5)
        else trial
        for trial in simulated.simulate(of, 0.0, np.random.default_rng(6))
    ]
    capacities = judged(0.0, trials)[0].capacities
    assert capacities is not None
    assert list(capacities.baseline) == list(capacities.variant) == [0, 1, 3, 4, 6, 7]
    not_run = [replace(trial, failure="gone", failed_by="not-run", figures=None) for trial in trials]
    assert sentence(judged(0.0, not_run)[0], []) == (
        "Not finished (0 of 8 blocks): b against a, oltp_read_write while p99 latency stays below 26 ms."
    )


def test_an_interval_with_an_unknown_end_has_one_end() -> None:
    of = simulated.of_blocks(8, 2 * simulated.PLANTED)
    trials = [
        replace(trial, figures=replace(trial.figures, latency_p99_us=90_000.0))
        if trial.figures and trial.variant == "b" and not trial.block
        else trial
        for trial in simulated.simulate(of, 2 * simulated.PLANTED, np.random.default_rng(7))
    ]
    text = sentence(judged(2 * simulated.PLANTED, trials)[0], [])
    assert re.match(
        r"b serves \d+\.\d % \(95 % interval \d+\.\d or more\) fewer transactions per second", text
    )


def test_a_low_capacity_has_digits() -> None:
    blocks = {0: (math.log(2.344),) * 2}, {0: (math.log(12.0), math.log(1234.4))}
    text = Capacities(simulated.OBJECTIVE, [1.0, 2.0], *blocks).text()
    assert text == "12 to 1,234 against 2.34 transactions/s"


def test_secondary_metrics_compare_the_rates() -> None:
    comparison, of = judged(simulated.PLANTED)
    (lines,) = secondary_metrics([comparison], of)
    assert {line.load for line in lines} >= {0, 1, 2}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (('{ p99 = "20ms" }', "{}"), "a latency objective is one percentile and its limit"),
        (
            ('{ p99 = "20ms" }', '{ p95 = "1ms", p99 = "2ms" }'),
            "a latency objective is one percentile and its limit",
        ),
        (('{ p99 = "20ms" }', '{ p98 = "20ms" }'), "load.latency_objective.p98"),
        (('{ p99 = "20ms" }', "{ p99 = 20 }"), "load.latency_objective.p99"),
        (
            ("[64]", "[32, 64]"),
            "with a latency objective, connections is the maximum number of busy connections",
        ),
        (('"5s"', '"5s"\nthink_time = "1s"'), "think_time is for closed loops: with a latency objective"),
        (
            ('"5s"', '"5s"\nramp = { from_percent = 10, duration = "2s" }'),
            "a latency objective needs a constant load",
        ),
        (('"5s"', '"5s"\nrate = [100]'), "lies between rates"),
        (("[[variant]]", '[[workload]]\nname = "oltp_read_write"\n[[variant]]'), "rates of one workload"),
        (("[[variant]]", '[design]\nstate = "preserve"\n[[variant]]'), "nothing renews them"),
        (("[[variant]]", '[design]\npairing = "slices"\n[[variant]]'), "slices are for closed loops"),
    ],
)
def test_an_objective_that_cannot_be_judged_is_an_error(change: tuple[str, str], problem: str) -> None:
    with pytest.raises(InvalidExperiment) as invalid:
        read(FILE.replace(*change, 1))
    assert problem in str(invalid.value)


@pytest.mark.parametrize(("warmup", "length_s"), [("auto", 60.0), ("2s", 7.0)])
def test_the_probe_is_a_closed_loop_of_each_variant(warmup: str, length_s: float) -> None:
    experiment = read(FILE.replace('"5s"', f'"5s"\nwarmup = "{warmup}"'))
    trials = warmup_trials(experiment, ["oltp_read_only"])
    assert [(trial.variant, trial.point) for trial in trials] == [
        ("a", Point(connections=64)),
        ("b", Point(connections=64)),
    ]
    assert run_warmup.length_s(experiment) == length_s
    assert run_plan.trial_plan(experiment, trials[0], TARGET)["load"]["shape"] == "closed"


def test_a_percentile_of_few_transactions_is_a_warning() -> None:
    experiment = read()

    def warnings() -> list[str]:
        found = support_of_verdict(experiment)
        return [one.text + str(one.fix) for one in found if "p99" in one.text]

    assert warnings() == []
    experiment.load.set_found_rates((100.0, 200.0))
    (text,) = warnings()
    assert text.startswith("p99 of a trial at 100 transactions/s depends on 5.0 transactions")
    assert 'duration = "30s"' in text
    experiment.load.set_found_rates((1_000.0, 2_000.0))
    assert warnings() == []


def test_found_rates_are_part_of_the_run(tmp_path: Path) -> None:
    experiment = choose_pairing(read().with_order_seed(1))
    assert [point.rate for point in experiment.load.points()] == list(SHARES)
    run = Run.create(tmp_path, experiment, FILE.encode())
    rates = found_rates(1_000.0)
    assert (rates[0], rates[-1]) == (500.0, 1050.0)
    run.release()
    # A crash between the two files that `set_rates` writes.
    planned = (run.path / "schedule.json").read_text()
    run.set_rates(rates, {"a": 1_000.0, "b": 1_100.0})
    for text in ((run.path / "schedule.json").read_text(), planned):
        (run.path / "schedule.json").write_text(text)
        resumed = Run.resume(tmp_path, experiment)
        assert resumed.experiment().load.has_rates
        assert {trial.point.rate for trial in resumed.schedule()} == set(rates)
        resumed.release()
    assert json.loads((run.path / "rates.json").read_text())["peaks"] == {"a": 1_000.0, "b": 1_100.0}


def test_a_variant_without_results_at_a_rate_is_not_blamed_for_its_cpu_time() -> None:
    lowest = simulated.of_blocks(8, 0.0).load.points()[0].as_dict()
    trials = [
        MeasuredTrial(trial.planned, "the engine ended", "harness")
        if trial.variant == "b" and trial.at == lowest
        else trial
        for trial in simulated.simulate(simulated.of_blocks(8, 0.0), 0.0, np.random.default_rng(9))
    ]
    text = sentence(judged(0.0, trials)[0], [])
    assert text.startswith("b has no result at "), text


def test_rates_that_look_like_shares_are_rates(tmp_path: Path) -> None:
    run = Run.create(tmp_path, read().with_order_seed(1), FILE.encode())
    shares = [trial.point.rate for trial in run.schedule()]
    # At 2.1 transactions/s the lowest rate is 1.05, which is also the highest share. There is a second probe
    # if a call ended between rates.json and warmup_trials.json.
    for peak in (2.1, 500.0):
        run.set_rates(found_rates(peak), {"a": peak, "b": peak})
        by_share = dict(zip(SHARES, found_rates(peak), strict=True))
        assert [trial.point.rate for trial in run.schedule()] == [by_share[share or 0.0] for share in shares]
    run.release()


def test_a_probe_without_transactions_finds_no_rates() -> None:
    entry: WarmupTrial = {
        "variant": "a",
        "workload": "w",
        "at": {"connections": 64},
        "length_s": 60.0,
        "settle_s": None,
        "series": [],
        "failure": None,
        "peak": 0.0,
        "records": "",
        "hooks": {},
    }
    with pytest.raises(Problem) as none:
        run_warmup.peaks([entry])
    assert "the trial of a that finds them failed (no transaction ended in its last part)" in str(
        none.value.text
    )


def test_the_plan_says_what_the_probe_is() -> None:
    console = Console(record=True, width=200)
    describe(console, read(), None)
    lines = console.export_text().splitlines()
    assert any(
        line.startswith(
            "  load      rates of a probe over TCP, to find the capacity while p99 latency stays below"
        )
        for line in lines
    )
    assert any(line.startswith("  rates     8 rates from 50 to 105 % of the throughput of") for line in lines)


def test_the_table_has_the_capacity_of_both_variants(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capacity = {
        "metric": "latency_p95_us",
        "limit_us": 20_000.0,
        "baseline": [801, 801],
        "variant": [None, 700],
    }
    making = Making(connections=(64,), rates=(700.0, 900.0))
    run = Judged(making=making, more={"capacity": capacity}).write(tmp_path)
    show(run, run.experiment())
    rows = table_rows(capsys.readouterr().out.splitlines())
    assert rows["a", "capacity"] == ["801.0"]
    assert rows["b", "capacity"][:2] == ["<", "700.0"]


@pytest.mark.parametrize(
    ("baseline", "variant", "rates"),
    [
        ((-math.inf, 1.0), (1.5, 1.5), "lower rates"),
        ((2.0, math.inf), (1.5, 1.5), "higher rates"),
        ((2.0, math.inf), (-math.inf, 1.0), "lower and higher rates"),
    ],
)
def test_the_rates_to_give_are_those_that_are_missing(
    baseline: tuple[float, float], variant: tuple[float, float], rates: str
) -> None:
    assert Capacities(simulated.OBJECTIVE, [3.0, 7.0], {0: baseline}, {0: variant}).rates_to_give() == rates
    assert Capacities(simulated.OBJECTIVE, [3.0, 7.0], {0: variant}, {0: baseline}).rates_to_give() == rates
