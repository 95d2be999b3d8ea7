"""`dbdyno history`: change points, confirmations, what is not comparable, and what it prints."""

from __future__ import annotations

import io
import json
import math
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import typer
from scipy import stats
from tests.unit.stored_run import Arms, Making, experiment, make, store

from dbdyno.commands.history import history, spark_line
from dbdyno.commands.option_document import as_toml
from dbdyno.commands.replicate import replicate
from dbdyno.design.confirming import confirming_document, confirming_experiment
from dbdyno.experiment.model import Experiment, ServerSpec
from dbdyno.experiment.reading import read, read_bytes
from dbdyno.experiment.schedule import Trial, schedule
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.report.replication import BEGIN, END, embedded
from dbdyno.runs.history import (
    CONFIRMING_RUNS,
    LEVEL,
    Answer,
    Change,
    confirmed_runs,
    confirming_blocks,
    effect_of_runs,
    find_changes,
    variant_name,
)
from dbdyno.stats.change_points import ChangePoint, find_change_points
from dbdyno.stats.difference import mean_of_runs
from dbdyno.stats.signed_rank import percent
from dbdyno.store import Run
from dbdyno.store.run import run_order
from dbdyno.store.several_runs import HistoryChange, HistoryPoint, HistorySeries
from dbdyno.verdict import judge

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


def test_an_answer_over_a_wide_range_confirms_the_change_that_is_closest_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def states(answer: Answer, *steps: float) -> list[str]:
        wide, narrow, larger = (
            ChangePoint(index, first, last, step, (step, step))
            for (index, first, last), step in zip(
                [(10, 6, 14), (20, 20, 20), (22, 22, 22)], steps, strict=True
            )
        )
        points = [wide, narrow, larger]
        monkeypatch.setattr("dbdyno.runs.history.find_change_points", lambda *_: points)
        return [one.state for one in find_changes([0.0] * 30, [answer])]

    # The servers of these two values differ by all three changes.
    every = Answer(5, 25, 29, -1)
    assert states(every, -0.1, -0.1, -0.2) == ["confirmed", "candidate", "candidate"]
    # Of equally close ones it is the largest.
    assert states(every, 0.1, -0.1, -0.2) == ["not-confirmed", "candidate", "confirmed"]
    assert states(replace(every, direction=0), -0.1, -0.1, -0.2) == ["not-confirmed"] * 3


def test_a_smaller_or_noisier_change_needs_more_blocks() -> None:
    quiet, noisy = ([noise(8, seed)] for seed in (1, 2))
    noisy = [[10.0 * one for one in noisy[0]]]
    assert confirming_blocks(0.1, 0.08, quiet) < confirming_blocks(0.01, 0.001, quiet)
    assert confirming_blocks(0.03, 0.01, quiet) < confirming_blocks(0.03, 0.01, noisy) <= 13
    assert confirming_blocks(0.03, 0.01, []) == confirming_blocks(-0.03, -0.01, [])


def test_a_spark_line_has_the_smallest_and_the_largest_block() -> None:
    assert spark_line([1.0, 2.0, 3.0]) == "▁▅█"
    assert spark_line([2.0, 2.0]) == "▁▁"
    assert spark_line([]) == ""


def build(of: Experiment, folder: str) -> Experiment:
    """The experiment with the servers of all variants but the reference in a folder."""
    changed = [
        one.model_copy(update={"server": ServerSpec(product="mariadb", basedir=Path(folder), cpus="0")})
        if one.name != "reference"
        else one
        for one in of.variants
    ]
    return of.model_copy(update={"variants": tuple(changed)})


def night(
    folder: Path, rate: int, seed: int, making: Making = NIGHT, server: str = "/old", *, is_run: bool = True
) -> Run:
    """A stored run whose variant has so many transactions per tick against 1,000 of the reference. One that
    is not run was stopped by a check.
    """

    def speed(trial: Trial, _tick: int) -> int:
        error = random.Random(100 * seed + trial.index).gauss(0.0, 4.0)
        return round((1000 if trial.variant == "reference" else rate) + error)

    making = replace(making, speed=speed)
    of = build(experiment(making), server)
    run = Run.create(folder, of, b"", environment={"host": {"name": "laboratory"}})
    for trial in schedule(of) if is_run else ():
        store(run, trial, of, making)
    if not is_run:
        run.add_findings([Finding("P03", "stop", "the server does not start", {}, "nightly")])
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
        history("made", results=folder, output_format="json", **options)
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


def changed(found: dict[str, Any], series: int = 0) -> dict[str, Any]:
    """The change before run 10; the noise may have further candidates."""
    change: dict[str, Any] = next(one for one in found["series"][series]["changes"] if one["after"] == 10)
    return change


def confirmation(
    folder: Path, rate: int, runs: tuple[int, int], name: str = "nightly", blocks_run: int = 10
) -> Run:
    """A stored comparison of the servers of two runs; it has 10 blocks, of which so many are finished."""
    of_before = sum(1 for _ in folder.glob("made-confirm/*"))
    names = tuple(variant_name(name, number) for number in runs)
    making = replace(NIGHT, names=names, blocks=10)

    def speed(trial: Trial, _tick: int) -> int:
        error = random.Random(1000 * of_before + trial.index).gauss(0.0, 4.0)
        return round((1000 if trial.variant == names[0] else rate) + error)

    making = replace(making, speed=speed)
    of = experiment(making).model_copy(update={"name": "made-confirm"})
    run = Run.create(folder, of, b"", environment={"host": {"name": "laboratory"}})
    for trial in schedule(of):
        if trial.block < blocks_run:
            store(run, trial, of, making)
    run.release()
    return run


def confirmations(folder: Path, rate: int, runs: tuple[int, int], name: str = "nightly") -> list[Run]:
    """All runs of a confirmation."""
    return [confirmation(folder, rate, runs, name) for _ in range(CONFIRMING_RUNS)]


@pytest.mark.parametrize(("rate", "state", "code"), [(950, "confirmed", 1), (1000, "not-confirmed", 0)])
def test_a_comparison_of_both_servers_decides(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: int, state: str, code: int
) -> None:
    for number in range(1, 13):
        night(tmp_path, 1000 if number < 10 else 950, number)
    _, found = answer(tmp_path, capsys)
    change = changed(found)
    pair = change["last_before"], change["first_after"]
    runs = confirmations(tmp_path, rate, pair)
    exit_code, found = answer(tmp_path, capsys)
    change = changed(found)
    assert (change["state"], exit_code) == (state, code)
    assert change["confirmation"]["path"] == str(runs[-1].path)
    assert change["confirmation"]["runs"] == [run_order(run.path)[0] for run in runs]
    assert change["confirming_runs"] == []
    assert (change["confirmation"]["before"], change["confirmation"]["after"]) == pair
    # With the next run it is history.
    night(tmp_path, 950, 13)
    exit_code, found = answer(tmp_path, capsys)
    assert exit_code == 0
    assert changed(found)["state"] == state


def confirmed_nights(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, int]:
    """Stores runs 1 to 12, of which 10 and later lose 5 %; returns the two runs to compare."""
    for number in range(1, 13):
        night(folder, 1000 if number < 10 else 950, number)
    change = changed(answer(folder, capsys)[1])
    return change["last_before"], change["first_after"]


@pytest.mark.parametrize(
    "finding",
    [
        Finding("P04", "stop", "a setting is not effective", {}),
        Finding("R03", "stop", "the numbers contradict each other", {}),
    ],
)
def test_a_comparison_without_an_answer_leaves_a_candidate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finding: Finding
) -> None:
    runs = confirmations(tmp_path, 950, confirmed_nights(tmp_path, capsys))
    runs[3].add_findings([finding])
    _, found = answer(tmp_path, capsys)
    change = changed(found)
    assert (change["state"], change["confirmation"]) == ("candidate", None)
    assert change["confirming_runs"] == [run_order(run.path)[0] for run in runs if run is not runs[3]]
    assert change["sentence"].endswith("(7 of 8 runs of its confirmation have a result)")


def test_what_separate_runs_differ_by_is_no_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each run alone has a significant loss, with little noise of its blocks; the runs differ by more than
    it.
    """
    pair = confirmed_nights(tmp_path, capsys)
    for rate in (900, *[985] * (CONFIRMING_RUNS - 1)):
        confirmation(tmp_path, rate, pair)
    code, found = answer(tmp_path, capsys)
    assert (changed(found)["state"], code) == ("not-confirmed", 0)
    low, high = changed(found)["confirmation"]["interval_percent"]
    assert low < 0.0 < high


def test_a_confirmation_needs_all_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pair = confirmed_nights(tmp_path, capsys)
    for _ in range(CONFIRMING_RUNS - 1):
        confirmation(tmp_path, 950, pair)
    code, found = answer(tmp_path, capsys)
    assert (changed(found)["state"], code) == ("candidate", 0)
    confirmation(tmp_path, 950, pair)
    code, found = answer(tmp_path, capsys)
    assert (changed(found)["state"], code) == ("confirmed", 1)


def test_the_effect_of_runs_is_that_of_the_t_test() -> None:
    logs = noise(CONFIRMING_RUNS)
    effect = effect_of_runs(logs)
    expected = stats.ttest_1samp(logs, 0.0).confidence_interval(1.0 - LEVEL)
    assert effect.interval_percent == pytest.approx((percent(expected.low), percent(expected.high)))
    assert effect.effect_percent == pytest.approx(percent(fmean(logs)))
    assert mean_of_runs([0.1], 0.05).interval_percent == (-100.0, math.inf)
    with pytest.raises(ValueError, match="finite"):
        mean_of_runs([0.1, math.inf], 0.05)


def test_the_answer_of_a_run_with_a_smaller_number_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, run in enumerate(confirmations(tmp_path, 950, confirmed_nights(tmp_path, capsys))):
        run.path.rename(run.path.with_name(f"20200101T00000{number}.000Z-r000{number}"))
    code, found = answer(tmp_path, capsys)
    assert (changed(found)["state"], code) == ("confirmed", 0)


def test_the_newest_run_without_a_result_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(1, 13):
        night(tmp_path, 1000 if number < 10 else 950, number)
    night(tmp_path, 1000, 13, is_run=False)
    failing = replace(NIGHT, failed=lambda trial: "crashed" if trial.variant == "nightly" else None)
    night(tmp_path, 1000, 14, failing)
    _, found = answer(tmp_path, capsys)
    assert changed(found)["state"] == "candidate"
    assert found["reference"] == "mariadb 11.4.2-MariaDB"
    assert [(one["run"], one["reason"]) for one in found["excluded"]] == [
        (13, "nightly on oltp_read_write is not comparable"),
        (14, "nightly on oltp_read_write has no known effect"),
    ]


def test_runs_without_any_result_are_an_error(tmp_path: Path) -> None:
    night(tmp_path, 1000, 1, is_run=False)
    with pytest.raises(Problem, match="no run of made has a result"):
        history("made", results=tmp_path)


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
        before=1, after=2, last_before=1, first_after=2, change_percent=-5.0,
        interval_percent=(-6.0, -4.0), state="candidate", is_alert=False, confirmation=None,
        confirming_runs=[], also=[], sentence="",
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
    monkeypatch.setattr("dbdyno.design.confirming.describe_server", lambda variant: variant.name)
    runs = [night(tmp_path, 1000, 1), night(tmp_path, 950, 2, server="/new")]
    made = confirming_experiment(*series_of(runs), runs[0], runs[1], runs)
    assert made.name == "made-confirm"
    assert [one.name for one in made.variants] == ["nightly run 1", "nightly run 2"]
    assert [str(one.server.basedir) for one in made.variants] == ["/old", "/new"]
    assert made.design.stop is None
    assert 6 <= made.design.blocks <= 13


FILE = """
[experiment]
name = "made"
[[workload]]
name = "oltp_read_write"
[[workload]]
name = "oltp_read_only"
[load]
connections = [10]
duration = "1s"
warmup = "0s"
[design]
blocks = 1
error_rate = "false-discovery"
identical_copy = true
[client]
cpus = "0"
[[variant]]
name = "reference"
server.variables = { sort_buffer_size = "4M" }
[[variant]]
name = "nightly"
server = { basedir = "old" }
workload = { oltp_read_write = { tables = 2 }, oltp_read_only = { tables = 3 } }
"""


def nightly(folder: Path, server: str) -> Run:
    """A run of the file with the nightly server in a folder, as `compare` stores it."""
    file, assignment = folder / "made.toml", f"variant[nightly].server.basedir={server}"
    (folder / server).mkdir(exist_ok=True)
    file.write_text(FILE)
    run = Run.create(
        folder, read(file, None, [assignment]), FILE.encode(), None, {}, assignments=[assignment]
    )
    run.release()
    return run


def test_the_file_of_a_confirmation_is_its_experiment_wherever_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbdyno.design.confirming.describe_server", lambda variant: variant.name)
    runs = [nightly(tmp_path, "old"), nightly(tmp_path, "new")]
    made = confirming_experiment(*series_of(runs), runs[0], runs[1], [])
    assert made.design.error_rate == "family-wise"
    content = as_toml(confirming_document(made, runs[0], runs[1])).encode()
    there = read_bytes(content, tmp_path / "elsewhere" / "x.toml")
    assert [str(one.server.basedir) for one in there.variants] == [
        str(tmp_path / "old"),
        str(tmp_path / "new"),
    ]
    assert there == made.model_copy(update={"design": there.design, "client": there.client})
    assert (there.design.blocks, there.design.identical_copy) == (made.design.blocks, False)
    # Another computer repeats it from its report.
    run = Run.create(tmp_path, made, content, None, {})
    run.release()
    judge(run)
    verdict = run.verdict()
    assert verdict is not None
    page = tmp_path / "report.html"
    page.write_text(f"{BEGIN}{embedded(run, verdict, {})}{END}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(Problem, match="runs only if you agree"):
        replicate(page)
    assert (tmp_path / "made-confirm.toml").read_bytes() == content


class Measurements:
    """What `history --confirm` measures: the pairs of runs that it compares, and which of them it resumes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, results: Path) -> None:
        self.results = results
        self.begun: list[tuple[tuple[str, int, int], bool]] = []
        # How each ends: an exception, or the exit code of `compare`.
        self.ends: list[Exception | int] = []
        monkeypatch.setattr("dbdyno.design.confirming.describe_server", lambda variant: variant.name)
        monkeypatch.setattr("dbdyno.design.confirming.confirming_document", lambda *_: {})
        monkeypatch.setattr("dbdyno.commands.comparison.measure", self.measure)

    def measure(self, *arguments: Any, resume: bool, **_options: Any) -> tuple[None, int]:
        pair = confirmed_runs(arguments[1])
        assert pair is not None
        self.begun.append((pair, resume))
        end = self.ends.pop(0) if self.ends else 0
        if isinstance(end, Exception):
            raise end
        if end == 0:
            confirmation(self.results, 950, pair[1:], name=pair[0])
        return None, end


@pytest.fixture
def two_candidates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measurements:
    """Runs 1 to 12 with two variants, which both have a loss of 5 % since run 10 and new servers."""
    making = replace(NIGHT, names=("reference", "nightly", "weekly"))
    for number in range(1, 13):
        night(tmp_path, 1000 if number < 10 else 950, number, making, "/old" if number < 10 else "/new")
    return Measurements(monkeypatch, tmp_path)


@pytest.mark.parametrize(
    ("end", "alone"), [(typer.Exit(4), 4), (Problem("the disk is full", "Free some", 3), 3), (4, 4)]
)
def test_a_comparison_that_fails_does_not_end_the_others(
    two_candidates: Measurements, capsys: pytest.CaptureFixture[str], end: Exception | int, alone: int
) -> None:
    two_candidates.ends = [0, end]
    code, found = answer(two_candidates.results, capsys, confirm=True, yes=True)
    # A run that fails ends its confirmation.
    assert [pair[0] for pair, _ in two_candidates.begun] == ["nightly"] * 2 + ["weekly"] * CONFIRMING_RUNS
    assert [changed(found, index)["state"] for index in (0, 1)] == ["candidate", "confirmed"]
    # The alert decides.
    assert code == 1
    two_candidates.ends = [end]
    night(two_candidates.results, 950, 13, replace(NIGHT, names=("reference", "nightly", "weekly")), "/new")
    code, _ = answer(two_candidates.results, capsys, confirm=True, yes=True)
    assert code == alone


def test_a_stored_experiment_runs_only_after_a_yes(
    two_candidates: Measurements, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(typer.Exit) as ended:
        history("made", results=two_candidates.results, confirm=True)
    assert (ended.value.exit_code, two_candidates.begun) == (2, [])
    printed = capsys.readouterr().err
    assert "server.basedir = " in printed
    assert "runs only if you agree" in printed


def test_an_interruption_ends_all_comparisons(two_candidates: Measurements) -> None:
    two_candidates.ends = [typer.Exit(130)]
    with pytest.raises(typer.Exit) as ended:
        history("made", results=two_candidates.results, confirm=True, yes=True)
    assert (ended.value.exit_code, len(two_candidates.begun)) == (130, 1)


def test_only_the_interrupted_comparison_is_resumed(
    two_candidates: Measurements, capsys: pytest.CaptureFixture[str]
) -> None:
    two_candidates.ends = [typer.Exit(130)]
    with pytest.raises(typer.Exit):
        history("made", results=two_candidates.results, confirm=True, yes=True)
    ((pair, _),) = two_candidates.begun
    confirmation(two_candidates.results, 950, pair[1:], name=pair[0], blocks_run=4)
    two_candidates.begun.clear()
    code, _ = answer(two_candidates.results, capsys, confirm=True, yes=True, resume=True)
    assert [(one[0], resume) for one, resume in two_candidates.begun] == [
        ("nightly", True),
        *[("nightly", False)] * (CONFIRMING_RUNS - 1),
        *[("weekly", False)] * CONFIRMING_RUNS,
    ]
    assert code == 1


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
