"""`max_rate` and `abort_if`: options, rules, and the engine's plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.simulated_trials import measured

from dbdyno.commands.option_document import sweep_experiment
from dbdyno.design.planning import choose_pairing
from dbdyno.experiment.errors import InvalidExperiment
from dbdyno.experiment.model import Experiment
from dbdyno.experiment.reading import read
from dbdyno.experiment.schedule import schedule
from dbdyno.rules.design import reached_limit
from dbdyno.run import warmup
from dbdyno.run.plan import trial_plan
from dbdyno.servers.url import Target
from dbdyno.stats.steady import settle

TWO_VARIANTS = """
[experiment]
name = "limited"
[[workload]]
name = "oltp_point_select"
[load]
connections = [4]
duration = "10s"
LOAD
[design]
DESIGN
[[variant]]
name = "a"
[[variant]]
name = "b"
server.variables = { innodb_flush_log_at_trx_commit = 2 }
"""


def experiment(folder: Path, load: str, design: str = "blocks = 6") -> Experiment:
    file = folder / "limited.toml"
    file.write_text(TWO_VARIANTS.replace("LOAD", load).replace("DESIGN", design))
    return read(file, None)


def swept(**changes: object) -> tuple[Experiment, Target, str]:
    target = "mysql://a@127.0.0.1:1/d"
    options = {"target": target, "connections": "2", "time": "1s", "warmup": "0s", "workers": "1", **changes}
    return sweep_experiment("oltp_point_select", options, [])


def test_limits_are_in_the_plan(tmp_path: Path) -> None:
    limits = 'max_rate = 250\nabort_if = { p50 = "20ms", p999 = "1.5s", errors_per_1000 = 2.5 }'
    limited = experiment(tmp_path, limits)
    (first, *_) = trials = schedule(limited)
    load = trial_plan(limited, first, {"protocol": "mysql"}, trials)["load"]
    assert load["max_rate_per_s"] == 250.0
    latency = [{"percentile": 50.0, "most_us": 20_000}, {"percentile": 99.9, "most_us": 1_500_000}]
    assert load["abort_if"] == {"latency": latency, "errors_per_1000": 2.5}


@pytest.mark.parametrize(
    ("load", "problem"),
    [
        ("rate = [50, 100]\nmax_rate = 100", "max_rate is for closed loops"),
        ('latency_objective = { p99 = "5ms" }\nmax_rate = 100', "max_rate is for closed loops"),
        ("max_rate = 0.001", "load.max_rate = 0.001"),
        ('abort_if = { p99 = "2h" }', "load.abort_if.p99 = 7200.0: must be at most"),
        ("abort_if = {}", "abort_if is at least one limit"),
        ('abort_if = { p98 = "5ms" }', "load.abort_if.p98"),
    ],
)
def test_limits_that_cannot_be_are_refused(tmp_path: Path, load: str, problem: str) -> None:
    with pytest.raises(InvalidExperiment, match=problem):
        experiment(tmp_path, load)


@pytest.mark.parametrize("limit", ["max_rate = 100", 'abort_if = { p99 = "1s" }'])
def test_a_load_with_limits_runs_in_trials(tmp_path: Path, limit: str) -> None:
    assert choose_pairing(experiment(tmp_path, limit)).design.pairing == "trials"
    with pytest.raises(InvalidExperiment, match="a load in slices has no limits"):
        experiment(tmp_path, limit, 'blocks = 6\npairing = "slices"')


def test_a_limited_throughput_does_not_determine_the_latency(tmp_path: Path) -> None:
    assert experiment(tmp_path, "").ties_latency
    assert not experiment(tmp_path, "max_rate = 100").ties_latency


@pytest.mark.parametrize(
    ("abort_if", "problem"),
    [
        ("p99", "--abort-if = \"p99\": 'p99' is not a limit"),
        ("p99=5ms,p99=6ms", "p99 is there twice"),
        ("errors_per_1000=few", "errors_per_1000=few: this is not a number"),
        ("p98=5ms", '--abort-if p98 = "5ms": there is no such key. Did you mean p99?'),
        ("errors_per_1000=-1", "--abort-if errors_per_1000 = -1.0"),
    ],
)
def test_a_wrong_option_is_named(abort_if: str, problem: str) -> None:
    with pytest.raises(InvalidExperiment) as raised:
        swept(abort_if=abort_if)
    assert problem in str(raised.value)


def test_options_are_keys_of_the_load() -> None:
    limited, _, source = swept(abort_if="p99=500ms, errors_per_1000=10", max_rate=200.0)
    assert limited.load.max_rate == 200.0
    assert limited.load.abort_if is not None
    assert limited.load.abort_if.latency_limits() == [(99.0, 0.5)]
    assert limited.load.abort_if.errors_per_1000 == 10.0
    assert "max_rate = 200.0" in source


@pytest.mark.parametrize(
    ("design", "wait", "expected"),
    [
        ("blocks = 6", 0.02, [("b", "stop")]),
        ('blocks = 6\nmetrics = ["p99", "throughput"]', 0.02, [("b", "warn")]),
        ('blocks = 6\nmetrics = ["p99"]', 0.02, []),
        ("blocks = 6", 0.005, []),
    ],
)
def test_a_delayed_throughput_is_not_that_of_the_variant(
    tmp_path: Path, design: str, wait: float, expected: list[tuple[str, str]]
) -> None:
    limited = experiment(tmp_path, "max_rate = 100", design)
    # Far below the limit: a connection with varying times is delayed now and then.
    trials = [
        replace(one, figures=replace(one.figures, rate_limit_wait=wait))
        if one.variant == "b" and one.figures
        else one
        for one in measured(limited, lambda trial: 80.0 if trial.variant == "b" else 90.0)
    ]
    findings = list(reached_limit(trials, limited))
    assert [(one.subject, one.level) for one in findings] == expected
    assert all("the connections of b waited 2% of the time at 4 connections" in one.text for one in findings)


@pytest.mark.parametrize(("load", "settled"), [("max_rate = 200", None), ("", 0.0)])
def test_at_a_limited_rate_latency_shows_whether_the_server_is_warm(
    tmp_path: Path, load: str, settled: float | None
) -> None:
    limited = experiment(tmp_path, f'{load}\nwarmup = "auto"')
    # Throughput is at the limit from the first second on, while the latency falls for 40 s.
    intervals = [
        {"events": 200, "start_us": 1e6 * at, "end_us": 1e6 * (at + 1), "latency_sum_us": 200 * mean_us}
        for at in range(60)
        for mean_us in [max(2_000, 15_000 - 325 * at)]
    ]
    seconds = warmup._seconds(intervals, by_latency=limited.load.has_set_rate)
    assert settle(seconds) == settled
