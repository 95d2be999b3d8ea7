"""`dbdyno diff RUN RUN` on stored runs: what it refuses, what it notes, and what it says."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Arms, Making, make

from dbdyno.commands.diff import diff
from dbdyno.experiment.model import Experiment, Factor, OltpWorkload
from dbdyno.experiment.reading import read_bytes
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import ExitCode, Problem
from dbdyno.runs.comparable import Differences, Side, differences
from dbdyno.store.verdict import Family, VerdictFile

SMALL = Making(blocks=8, connections=(10, 20), duration_s=1.0, warmup_s=0.0)
FILE = """
[experiment]
name = "made"
[[workload]]
name = "oltp_read_write"
table_size = 1_000
[load]
connections = [10, 20]
duration = "10s"
[design]
blocks = 8
[[variant]]
name = "a"
[[variant]]
name = "b"
server.variables = { thread_pool_size = 4, join_buffer_size = "8M" }
"""


def noisy(rate: int, seed: int) -> Callable[[Trial], int]:
    """Transactions per tick around `rate`, with 1 % noise from trial to trial."""
    noise = random.Random(seed)
    drawn: dict[int, float] = {}
    return lambda trial: round(rate * drawn.setdefault(trial.index, noise.gauss(1.0, 0.01)))


def stored(folder: Path, b: int, seed: int, **changes: Any) -> Path:
    """A run whose variant a has 1,000 transactions per tick; its folder."""
    run = make(folder, replace(SMALL, speed=Arms(a=noisy(1000, seed), b=noisy(b, seed + 100)), **changes))
    run.release()
    return run.path


def answer(capsys: pytest.CaptureFixture[str], first: Path, second: Path) -> dict[str, Any]:
    diff(first, second, output_format="json")
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_an_effect_replicates_at_each_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = stored(tmp_path, 1210, 1), stored(tmp_path, 1200, 2)
    found = answer(capsys, first, second)
    (comparison,) = found["comparisons"]
    assert (found["first"], found["second"], found["notes"]) == (str(first), str(second), [])
    assert comparison["curve"]["word"] == "replicates"
    assert [(point["at"], point["word"]) for point in comparison["points"]] == [
        ({"connections": 10}, "replicates"),
        ({"connections": 20}, "replicates"),
    ]
    verdict = json.loads((first / "verdict.json").read_text())["comparisons"][0]["curve"]
    assert comparison["curve"]["first"]["effect_percent"] == verdict["effect_percent"]
    assert comparison["curve"]["first"]["interval_percent"] == verdict["interval_percent"]


def test_standard_output_ends_with_the_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = stored(tmp_path, 1210, 1), stored(tmp_path, 900, 2)
    diff(Path("1"), Path("2"), results=tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("Does not replicate: b against a, throughput +2")
    assert lines[-1].endswith("oltp_read_write at 10 and 20 connections.")
    assert lines[1].startswith("  10 connections: does not replicate; +2")
    assert all(path.is_dir() for path in runs)


def test_what_is_not_comparable_is_refused_with_all_reasons(tmp_path: Path) -> None:
    other = (OltpWorkload(name="oltp_read_write", table_size=500),)
    runs = (
        stored(tmp_path, 1200, 1),
        stored(tmp_path, 1200, 2, duration_s=2.0, workloads=other, metrics=("p95",)),
    )
    with pytest.raises(Problem) as refused:
        diff(*runs)
    assert refused.value.exit_code == ExitCode.NOT_COMPARABLE
    text = refused.value.text
    assert "the metric is throughput in the first run and p95 latency in the second run" in text
    assert "workload[oltp_read_write].table_size is 10000 in the first run and 500 in the second run" in text
    assert "load.duration is 1 in the first run and 2 in the second run" in text


def test_one_run_is_not_two(tmp_path: Path) -> None:
    run = stored(tmp_path, 1200, 1)
    with pytest.raises(Problem, match="both runs are"):
        diff(run, run)


def test_runs_of_one_variant_are_independent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, after = stored(tmp_path, 0, 1, names=("a",)), stored(tmp_path, 0, 2, names=("a",))
    diff(before, after)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("Undecided: the second run against the first, throughput ")
    assert last.endswith(
        "Independent runs, and therefore weaker: nothing separates the change from the drift between the two "
        "runs."
    )
    faster = make(tmp_path, replace(SMALL, names=("a",), speed=Arms(a=noisy(1100, 3)))).path
    (found,) = answer(capsys, before, faster)["independent"]
    assert found["curve"]["verdict"] == "faster"
    low, high = found["curve"]["interval_percent"]
    assert low < 10.0 < high
    assert found["points"][0]["first"] == pytest.approx(10_000.0, rel=0.02)
    with pytest.raises(Problem, match="one variant, and the second run compares several"):
        diff(before, stored(tmp_path, 1200, 4))


def test_one_trial_per_load_has_no_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`dbdyno run` measures each load once."""
    before, after = (stored(tmp_path, 0, seed, names=("a",), blocks=1) for seed in (1, 2))
    diff(before, after)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(
        "Too few blocks for a verdict (1 block each; 6 are needed): the second run against"
    )


def test_factors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    factors = (Factor(name="x", levels=("s", "t")), Factor(name="y", levels=("u", "v")))

    def speed(trial: Trial, _tick: int) -> int:
        noise = random.Random(f"{trial.index}")
        return round((1200 if trial.variant.startswith("t") else 1000) * noise.gauss(1.0, 0.01))

    first, second = (make(tmp_path, replace(SMALL, factors=factors, speed=speed)).path for _ in range(2))
    found = answer(capsys, first, second)
    words = {tuple(one["factors"]): one["word"] for one in found["factors"]}
    assert words[("x",)] == "replicates"
    assert words[("y",)] == "cannot-tell"


def test_a_damaged_run_is_one_sentence(tmp_path: Path) -> None:
    runs = stored(tmp_path, 1200, 1), stored(tmp_path, 1200, 2)
    (runs[1] / "experiment.json").write_text("{")
    with pytest.raises(Problem):
        diff(*runs)


def side(name: str, changes: Sequence[tuple[str, str]] = (), **more: Any) -> Side:
    text = FILE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    verdict = VerdictFile(
        experiment="made",
        baseline="a",
        order_seed=None,
        family=Family(sentences=1, alpha=0.05, text=""),
        comparisons=[],
        checks=[],
    )
    known: dict[str, Any] = {"environment": {}, "servers": {}, **more}
    experiment: Experiment = read_bytes(text.encode(), Path("made.toml"))
    return Side(name, name, experiment, verdict, **known)


FIRST = side("one")


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (
            "oltp_read_write",
            "oltp_read_only",
            "the workload is oltp_read_write in one and oltp_read_only in ",
        ),
        ('"10s"', '"20s"', "load.duration is 10 in one and 20 in two"),
        ("[10, 20]", "[40]", "the load is 10, 20 connections in one and 40 connections in two"),
        ("[design]", '[design]\nstate = "restart"', "design.state is restore in one and restart in two"),
        ("thread_pool_size = 4", "thread_pool_size = 8", "thread_pool_size is 4 in one and 8 in two"),
        ('"a"', '"base"', "the baseline is a in one and base in two"),
        (
            'name = "b"',
            'name = "b"\nsession.sql = ["SET @x = 1"]',
            "variant[b].session.sql is not set in",
        ),
        ('name = "b"', 'name = "c"', "the variant is b in one and c in two"),
        ('name = "b"', 'name = "b"\nserver.product = "postgresql"', "variant[b].server.product is mariadb"),
    ],
)
def test_a_difference_that_forbids_a_comparison(before: str, after: str, text: str) -> None:
    found = differences(FIRST, side("two", [(before, after)])).refusals
    assert any(text in one for one in found), found


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        ("[10, 20]", "[10, 40]", "the common loads are compared, not the effect over all loads"),
        ("[design]", "[design]\nseed = 2", "design.seed is 1 in one and 2 in two"),
        ("[design]", '[client]\ncpus = "0"\n[design]', "client.cpus is not set in one and 0 in two"),
        (
            'name = "b"',
            'name = "b"\nserver.cpus = "1"',
            "variant[b].server.cpus is not set in one and 1 in ",
        ),
        (
            '[[variant]]\nname = "a"',
            '[[variant]]\nname = "a"\n[[variant]]\nname = "c"',
            "only two has the variant c",
        ),
    ],
)
def test_a_difference_that_weakens_a_comparison(before: str, after: str, text: str) -> None:
    found = differences(FIRST, side("two", [(before, after)]))
    assert found.refusals == ()
    assert any(text in one for one in found.notes), found.notes


def test_differences_without_influence_are_none() -> None:
    same = [("blocks = 8", "blocks = 10"), ('"8M"', "8388608"), ("[load]", '[load]\ngive_up = "10s"')]
    found = differences(FIRST, side("two", same))
    assert (found.refusals, found.notes) == ((), ())


def test_keys_of_the_judge_alone_are_ignored() -> None:
    designs = (
        "blocks = 8",
        'blocks = 20\nerror_rate = "false-discovery"\ndelta_percent = 1.0',
        "stop = { max_blocks = 10 }",
        "stop = { max_blocks = 20 }",
    )
    first, *others = (side("one", [("[10, 20]", "[10]"), ("blocks = 8", keys)]) for keys in designs)
    for one, other in ((first, others[0]), (first, others[1]), (others[1], others[2])):
        assert differences(one, other) == Differences((), ())


def test_machine_and_versions_are_notes() -> None:
    def run(name: str, cpu: str, version: str) -> Side:
        host = {"cpu_model": cpu, "memory_bytes": 8 * 2**30, "cpus": 4}
        versions = {"dbdyno": version, "engine": "1"}
        return side(
            name, environment={"host": host, "versions": versions}, servers={"b": f"mariadb {version}"}
        )

    assert differences(run("one", "x", "11.4"), run("two", "y", "11.8")).notes == (
        "the machine's cpu model is x in one and y in two",
        "the version of dbdyno is 11.4 in one and 11.8 in two",
        "the server of b is mariadb 11.4 in one and mariadb 11.8 in two",
    )


def test_a_server_setting_is_what_independent_runs_compare() -> None:
    alone = (FILE[FILE.index('[[variant]]\nname = "b"') :], "")
    with_setting = ('name = "a"', 'name = "after"\nserver.variables = { join_buffer_size = "1M" }')
    found = differences(side("one", [alone]), side("two", [alone, with_setting]))
    assert found.refusals == ()
    assert found.notes == ("variant[a].server.variables.join_buffer_size is not set in one and 1M in two",)
