"""`dbdyno history`: change points, confirmations, what is not comparable, and what it prints."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.unit.stored_run import Arms, Making, experiment, make, store

from dbdyno.cli.history import history
from dbdyno.commands.choices import TextFormat
from dbdyno.commands.history import spark_line
from dbdyno.experiment.model import Experiment, ServerSpec
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.judge.history import Answer, Change, confirming_blocks, find_changes, variant_name
from dbdyno.problem import Problem
from dbdyno.run.confirming import confirming_experiment
from dbdyno.stats.change_points import find_change_points
from dbdyno.store import Run
from dbdyno.store.history import HistoryChange, HistoryPoint, HistorySeries

NIGHT = Making(blocks=1, connections=(10,), names=("reference", "nightly"), duration_s=1.0, warmup_s=0.0)
STEP = [0.0] * 12 + [-0.1] * 4


def noise(count: int, seed: int = 1) -> list[float]:
    """Values with a standard deviation of 1 %."""
    gauss = random.Random(seed)
    return [gauss.gauss(0.0, 0.01) for _ in range(count)]


def values(levels: Sequence[float]) -> list[float]:
    return [level + error for level, error in zip(levels, noise(len(levels)), strict=True)]


def step(series: Sequence[float], *answers: Answer) -> Change:
    """The change before the value 12; noise has some more."""
    return next(one for one in find_changes(series, answers) if one.point.index == 12)


def test_a_step_is_a_change_point_where_it_is() -> None:
    point = max(find_change_points(values(STEP)), key=lambda one: abs(one.step))
    assert point.index == 12
    assert point.first <= 12 <= point.last
    assert point.step == pytest.approx(-0.1, abs=0.02)
    assert point.interval[0] < -0.1 < point.interval[1] < 0.0


def test_few_or_equal_values_have_no_change_points() -> None:
    assert find_change_points([0.0, 1.0] * 3) == []
    assert find_change_points([0.25] * 30) == []


def test_a_step_without_noise_is_found() -> None:
    (point,) = find_change_points([0.0] * 10 + [1.0] * 10)
    assert (point.index, point.step, point.interval) == (10, 1.0, (1.0, 1.0))


def test_a_candidate_is_confirmed_by_the_same_direction_only() -> None:
    series = values(STEP)
    open_ = step(series)
    assert (open_.state, open_.answer) == ("candidate", None)
    assert open_.before < 12 <= open_.after
    answers = [Answer(open_.before, open_.after, 15, way) for way in (-1, 0, 1)]
    states = [step(series, answer).state for answer in answers]
    assert states == ["confirmed", "not-confirmed", "not-confirmed"]


def test_twice_the_runs_after_a_change_make_it_a_candidate_again() -> None:
    series = values([0.0] * 12 + [-0.1] * 8)
    change = step(series)
    tested = Answer(change.before, change.after, 15, 0)
    states = [step(series[:count], tested).state for count in (16, 19, 20)]
    assert states == ["not-confirmed", "not-confirmed", "candidate"]


def test_a_smaller_or_noisier_change_needs_more_blocks() -> None:
    quiet, noisy = ([noise(8, seed)] for seed in (1, 2))
    noisy = [[10.0 * one for one in noisy[0]]]
    assert confirming_blocks(0.1, 0.08, quiet) < confirming_blocks(0.01, 0.001, quiet)
    assert confirming_blocks(0.03, 0.01, quiet) < confirming_blocks(0.03, 0.01, noisy) <= 100
    assert confirming_blocks(0.03, 0.01, []) == confirming_blocks(-0.03, -0.01, [])


def test_a_spark_line_has_the_smallest_and_the_largest_block() -> None:
    assert spark_line([1.0, 2.0, 3.0]) == "▁▅█"
    assert spark_line([2.0, 2.0]) == "▁▁"
    assert spark_line([]) == ""


def build(of: Experiment, folder: str, name: str = "nightly") -> Experiment:
    """The experiment with the server of a variant in a folder."""
    changed = [
        one.model_copy(update={"server": ServerSpec(product="mariadb", basedir=Path(folder), cpus="0")})
        if one.name == name
        else one
        for one in of.variants
    ]
    return of.model_copy(update={"variants": tuple(changed)})


def night(folder: Path, rate: int, seed: int, making: Making = NIGHT, server: str = "/old") -> Run:
    """A stored run whose variant has so many transactions per tick against 1,000 of the reference."""

    def speed(trial: Trial, _tick: int) -> int:
        error = random.Random(100 * seed + trial.index).gauss(0.0, 4.0)
        return round((1000 if trial.variant == "reference" else rate) + error)

    making = replace(making, speed=speed)
    of = build(experiment(making), server)
    run = Run.create(folder, of, b"", environment={"host": {"name": "laboratory"}})
    for trial in schedule(of):
        store(run, trial, of, making)
    run.release()
    return run


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs 1 to 10 as fast as the reference, and 11 to 14 with a loss of 5 %; run 3 has another load."""
    folder = tmp_path_factory.mktemp("results")
    for number in range(1, 15):
        making = replace(NIGHT, connections=(20,)) if number == 3 else NIGHT
        night(folder, 1000 if number < 11 else 950, number, making, "/old" if number < 11 else "/new")
    return folder


def answer(folder: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[int, dict[str, Any]]:
    with pytest.raises(typer.Exit) as ended:
        history("made", results=folder, format=TextFormat.JSON, **options)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return ended.value.exit_code, found


def test_the_history_finds_the_step_and_excludes_another_load(
    nights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, found = answer(nights, capsys)
    assert code == 0
    assert [one["run"] for one in found["excluded"]] == [3]
    assert "connections" in found["excluded"][0]["reason"]
    (series,) = found["series"]
    assert (series["variant"], series["metric"]) == ("nightly", "throughput")
    assert [point["run"] for point in series["points"]] == [1, 2, *range(4, 15)]
    # The noise may have further candidates.
    change = next(one for one in series["changes"] if one["after"] == 11)
    assert (change["before"], change["state"]) == (10, "candidate")
    assert change["change_percent"] == pytest.approx(-5.0, abs=2.0)
    assert not change["is_alert"]
    start = "throughput of nightly against reference on oltp_read_write fell by "
    assert change["sentence"].startswith(start)
    assert change["sentence"].endswith("CANDIDATE, not confirmed")


def changed(found: dict[str, Any]) -> dict[str, Any]:
    """The change before run 10; the noise may have further candidates."""
    change: dict[str, Any] = next(one for one in found["series"][0]["changes"] if one["after"] == 10)
    return change


def confirmation(folder: Path, rate: int, runs: tuple[int, int], blocks: int = 10) -> Run:
    """A stored comparison of the servers of two runs."""
    names = tuple(variant_name("nightly", number) for number in runs)
    making = replace(NIGHT, names=names, blocks=blocks)

    def speed(trial: Trial, _tick: int) -> int:
        return (1000 if trial.variant == names[0] else rate) + trial.index % 3

    making = replace(making, speed=speed)
    of = experiment(making).model_copy(update={"name": "made-confirm"})
    run = Run.create(folder, of, b"", environment={"host": {"name": "laboratory"}})
    for trial in schedule(of):
        store(run, trial, of, making)
    run.release()
    return run


@pytest.mark.parametrize(("rate", "state", "code"), [(950, "confirmed", 1), (1000, "not-confirmed", 0)])
def test_a_comparison_of_both_servers_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: int, state: str, code: int
) -> None:
    for number in range(1, 13):
        night(tmp_path, 1000 if number < 10 else 950, number)
    _, found = answer(tmp_path, capsys)
    change = changed(found)
    pair = change["surely_before"], change["surely_after"]
    run = confirmation(tmp_path, rate, pair)
    exit_code, found = answer(tmp_path, capsys)
    change = changed(found)
    assert (change["state"], exit_code) == (state, code)
    assert change["confirmation"]["path"] == str(run.path)
    assert (change["confirmation"]["before"], change["confirmation"]["after"]) == pair
    # With the next run it is history.
    night(tmp_path, 950, 13)
    exit_code, found = answer(tmp_path, capsys)
    assert exit_code == 0
    assert changed(found)["state"] == state


def test_the_text_has_a_line_for_each_run_and_is_translated(
    nights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        history("made", results=nights)
    out, err = capsys.readouterr()
    assert err.startswith("not used: run 3: ")
    lines = out.splitlines()
    assert lines[0].startswith(
        "nightly against reference (mariadb 11.4.2-MariaDB), oltp_read_write, throughput"
    )
    assert len(lines[1].strip()) == 13
    assert any(line.split()[0] == "*11" for line in lines if line.strip())
    assert all(len(line) <= 80 for line in lines[1:16])
    with pytest.raises(typer.Exit):
        history("made", results=nights, language="ko")
    assert "후보, 확인되지 않음" in capsys.readouterr().out


def series_of(runs: Sequence[Run]) -> tuple[HistorySeries, HistoryChange]:
    points = [
        HistoryPoint(
            run=n, path=str(run.path), began="", server="", effect_percent=0.0, interval_percent=None
        )
        for n, run in enumerate(runs, 1)
    ]
    change = HistoryChange(
        before=1, after=2, surely_before=1, surely_after=2, change_percent=-5.0,
        interval_percent=(-6.0, -4.0), state="candidate", is_alert=False, confirmation=None, also=[],
        sentence="",
    )  # fmt: skip
    series = HistorySeries(
        variant="nightly", workload="oltp_read_write", metric="throughput", points=points, changes=[change]
    )
    return series, change


def test_one_server_in_both_runs_cannot_be_confirmed(tmp_path: Path) -> None:
    runs = [night(tmp_path, 1000, 1), night(tmp_path, 950, 2)]
    with pytest.raises(Problem, match="name the same server for nightly") as found:
        confirming_experiment(*series_of(runs), runs[0], runs[1], [])
    assert "a folder of its own" in found.value.fix


def test_a_server_that_is_gone_is_named(tmp_path: Path) -> None:
    runs = [night(tmp_path, 1000, 1, server="/gone"), night(tmp_path, 950, 2, server="/new")]
    with pytest.raises(Problem, match="the server of run 1 is not available any more"):
        confirming_experiment(*series_of(runs), runs[0], runs[1], [])


def test_the_confirmation_compares_both_servers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whether the folders have servers is not the subject.
    monkeypatch.setattr("dbdyno.run.confirming.describe_server", lambda variant: variant.name)
    runs = [night(tmp_path, 1000, 1), night(tmp_path, 950, 2, server="/new")]
    made = confirming_experiment(*series_of(runs), runs[0], runs[1], runs)
    assert made.name == "made-confirm"
    assert [one.name for one in made.variants] == ["nightly run 1", "nightly run 2"]
    assert [str(one.server.basedir) for one in made.variants] == ["/old", "/new"]
    assert made.design.stop is None
    assert 8 <= made.design.blocks <= 100


def test_an_experiment_without_runs_or_variants_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="there is no finished run of made"):
        history("made", results=tmp_path)
    run = make(tmp_path, replace(NIGHT, names=("a",), speed=Arms()))
    run.release()
    with pytest.raises(Problem, match="does not compare variants"):
        history("made", results=tmp_path)


def test_resume_needs_confirm(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="--resume has no effect"):
        history("made", results=tmp_path, resume=True)
