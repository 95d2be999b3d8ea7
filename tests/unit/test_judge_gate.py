"""The gate: what `--max-loss` says of a run, and the exit codes of `compare` and `report`."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from benchmarks.truth.simulation import experiment as simulated_experiment
from tests.unit.sentences import check_sentences
from tests.unit.simulated_trials import experiment, measured
from tests.unit.stored_run import Arms, Making, make

from dbdyno.commands.options import Undecided
from dbdyno.commands.report import report
from dbdyno.decide.comparison import comparison_entry
from dbdyno.decide.decision import compare_all
from dbdyno.decide.gate import DecidedLimits, decided_limits, gate, result, suite_result
from dbdyno.decide.stopping import progress
from dbdyno.experiment.model import Experiment, Load, OltpWorkload, Stop
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import Problem
from dbdyno.store import Run
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Comparison, Family, Gate, GateResult, VerdictFile
from dbdyno.verdict import judge

# Percent by which the blocks scatter around the effect, so that the interval is ±0.4 %.
SCATTER = (-0.4, 0.3, -0.2, 0.4, -0.3, 0.2, 0.1, -0.1)


def with_gate(of: Experiment, max_loss_percent: float, **design: object) -> Experiment:
    """The experiment with a gate."""
    design |= {"max_loss_percent": max_loss_percent}
    return of.model_copy(update={"design": type(of.design)(**of.design.model_dump() | design)})


def losing(of: Experiment, *percent: float) -> list[MeasuredTrial]:
    """Trials in which every variant but a loses so much at each load."""

    def throughput(trial: Trial) -> float:
        if trial.variant == "a":
            return 1000.0
        loss = percent[of.load.points().index(trial.point)]
        return 1000.0 - 10.0 * (loss + SCATTER[trial.block % len(SCATTER)])

    return measured(of, throughput)


def entry(of: Experiment, *percent: float) -> Comparison:
    """The first comparison of such a run."""
    return comparison_entry(compare_all(losing(of, *percent), of, [])[0], "")


def test_a_comparison_is_worse_within_or_undecided_by_its_interval() -> None:
    of = experiment()
    assert result(entry(of, 2.0), 3.0) == "not-inferior"
    assert result(entry(of, -9.0), 3.0) == "not-inferior"
    assert result(entry(of, 4.0), 3.0) == "worse"
    assert result(entry(of, 3.0), 3.0) == "undecided"
    assert result(entry(experiment(blocks=5), 2.0), 3.0) == "undecided"


def test_a_sure_loss_at_one_load_does_not_pass() -> None:
    of = experiment(loads=2)
    assert result(entry(of, 6.0, -6.0), 3.0) == "undecided"
    assert result(entry(of, 2.0, -6.0), 3.0) == "not-inferior"
    assert result(entry(of, 9.0, 1.0), 3.0) == "worse"


def test_noise_at_a_load_is_no_loss_and_unknown_noise_is_no_worse() -> None:
    of = experiment(loads=2)
    one = entry(of, 6.0, -6.0)
    points = [one.points[0].model_copy(update={"noise_floor_percent": 7.0}), one.points[1]]
    assert result(one.model_copy(update={"points": points}), 3.0) == "not-inferior"
    # An infinite floor is null: the copy's server failed.
    worse = entry(of, 4.0, 4.0)
    copy = worse.model_copy(update={"identical": True})
    assert result(worse, 3.0, copy) == "undecided"
    copy = copy.model_copy(update={"curve": copy.curve.model_copy(update={"interval_percent": None})})
    assert result(worse, 3.0, copy) == "worse"


def test_a_rise_of_latency_is_a_loss() -> None:
    one = entry(experiment(), 4.0)
    curve = one.curve.model_copy(update={"metric": "latency_p95_us"})
    assert result(one.model_copy(update={"curve": curve}), 3.0) == "not-inferior"
    curve = curve.model_copy(update={"interval_percent": (3.1, None)})
    assert result(one.model_copy(update={"curve": curve}), 3.0) == "worse"


def test_a_loss_within_the_noise_floor_decides_nothing(stored: Run) -> None:
    one = entry(experiment(), 4.0)
    curve = one.curve.model_copy(update={"noise_floor_percent": 5.0})
    noisy = one.model_copy(update={"curve": curve, "points": [one.points[0].model_copy()]})
    assert result(noisy, 3.0) == "undecided"
    found = gate(judge(stored).model_copy(update={"comparisons": [noisy], "checks": []}), 3.0)
    check_sentences("a loss within the noise floor", found.comparisons[0].sentence)


def test_a_run_goes_on_until_the_gate_is_decided() -> None:
    of = with_gate(experiment(), 3.0, stop=Stop())
    # b is slower beyond chance, which is not the question.
    assert not progress([t for t in losing(of, 3.0) if t.block < 10], of).is_decided
    expected = progress([t for t in losing(of, 3.2) if t.block < 8], of).comparisons[0].blocks_still_expected
    assert expected
    assert progress([t for t in losing(of, 2.0) if t.block < 10], of).is_decided
    assert progress([t for t in losing(of, 5.0) if t.block < 10], of).is_decided


def test_the_gates_of_a_run_are_tested_by_holm() -> None:
    """What c loses is decided only if b has passed its share of the 5 % on."""
    losses = (2.74, 2.99, 3.29, 3.54, 3.64, 3.74, 3.84, 3.94)

    def results(of: Experiment, loss_of_b: float) -> list[str]:
        def throughput(trial: Trial) -> float:
            loss = {"a": 0.0, "b": loss_of_b + SCATTER[trial.block], "c": losses[trial.block]}
            return 1000.0 - 10.0 * loss[trial.variant]

        comparisons = compare_all(measured(of, throughput), of, [])
        return [
            result(
                comparison_entry(one, ""),
                3.0,
                is_decided=None if of.design.max_loss_percent is None else one.judged.is_gate_decided,
            )
            for one in comparisons
        ]

    of = with_gate(experiment(variants="abc"), 3.0)
    assert results(of, 9.0) == ["worse", "worse"]
    assert results(of, 3.0) == ["undecided", "undecided"]
    # A limit that was not declared before the run is compared with the intervals.
    assert results(experiment(variants="abc"), 9.0) == ["worse", "undecided"]


def test_a_sentence_says_that_a_gate_is_sure_only_by_holm(stored: Run) -> None:
    verdict = judge(stored)
    (found,) = gate(verdict, 3.6, DecidedLimits([("b", "oltp_read_write")], ())).comparisons
    assert (found.result, gate(verdict, 3.6).result) == ("worse", "undecided")
    check_sentences("significant only by Holm's test", found.sentence)


def test_the_procedure_alone_decides_a_declared_limit(stored: Run) -> None:
    """The interval is beyond the limit at 5 %, and the test, at 4 %, is not."""
    verdict = judge(stored)
    assert gate(verdict, 3.0).result == "worse"
    (found,) = gate(verdict, 3.0, DecidedLimits((), ())).comparisons
    assert found.result == "undecided"
    check_sentences("beyond the limit only by the interval", found.sentence)


def test_no_block_is_expected_to_decide_a_gate_that_a_load_or_noise_keeps_undecided() -> None:
    of = with_gate(experiment(loads=2), 3.0, stop=Stop())
    # The mean gains 2 %, but one load significantly loses 6 %.
    one = progress([t for t in losing(of, 6.0, -10.0) if t.block < 12], of)
    assert (one.is_decided, one.comparisons[0].blocks_still_expected) == (False, None)


def test_the_run_loop_knows_that_a_copy_whose_server_failed_has_an_unknown_floor() -> None:
    """The p95 latency of b is 9 % higher, that of a failed server infinite."""
    load = Load(connections=(10,), rate=(100.0,), duration_s=10.0)
    of = with_gate(
        simulated_experiment(variants=3, identical_copy=True).model_copy(update={"load": load}),
        3.0,
        stop=Stop(),
    )

    def trials(*, copy_fails: bool) -> list[MeasuredTrial]:
        found = measured(of, lambda trial: 0.0 if copy_fails and trial.variant == "a-again" else 100.0)
        return [slower(one) for one in found if one.block < 12]

    def slower(one: MeasuredTrial) -> MeasuredTrial:
        latency = (1090.0 if one.variant == "b" else 1000.0) + SCATTER[one.block % len(SCATTER)]
        if one.figures is None:
            return one
        return replace(one, figures=replace(one.figures, latency_p95_us=latency))

    assert progress(trials(copy_fails=False), of).is_decided
    failing = trials(copy_fails=True)
    assert [one.floor_percent for one in compare_all(failing, of, [])][1:] == [math.inf]
    one = progress(failing, of)
    assert (one.is_decided, one.comparisons[0].blocks_still_expected) == (False, None)


def gated(run: Run, max_loss_percent: float) -> Gate:
    """The gate of a stored run."""
    verdict = run.verdict()
    assert verdict is not None
    return gate(verdict, max_loss_percent)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run in which b loses between 3 and 5 % at one load."""
    arms = Arms(a=lambda _trial: 100, b=lambda trial: 95 + trial.block % 3)
    run = make(tmp_path_factory.mktemp("gate"), Making(connections=(10,), speed=arms))
    judge(run)
    return run


def test_sentences_say_what_is_lost_and_what_is_allowed(stored: Run) -> None:
    sentences = (gated(stored, limit).comparisons[0].sentence for limit in (2.0, 6.0, 4.0))
    check_sentences("limits of 2, 6 and 4 %", *sentences)


@pytest.mark.parametrize(
    ("max_loss", "undecided", "code"),
    [
        ("6%", None, 0),
        ("2%", None, 1),
        ("4%", None, 5),
        ("4%", "pass", 0),
        ("4%", "fail", 1),
        ("2%", "pass", 1),
    ],
)
def test_report_exits_by_the_gate(
    stored: Run, max_loss: str, undecided: Undecided | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        report(stored.path, "json", max_loss, undecided)
    assert ended.value.exit_code == code
    printed = capsys.readouterr()
    assert printed.err.startswith("gate: b against a on oltp_read_write: loses")
    assert json.loads(printed.out)["comparisons"], "standard output is the document alone"


@pytest.mark.parametrize(("limit", "undecided", "code"), [(6.0, None, 0), (2.0, None, 1), (4.0, "fail", 1)])
def test_report_exits_by_the_limit_of_the_run(
    tmp_path: Path, limit: float, undecided: Undecided | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = Arms(a=lambda _trial: 100, b=lambda trial: 95 + trial.block % 3)
    run = make(tmp_path, Making(connections=(10,), speed=arms, max_loss_percent=limit))
    with pytest.raises(typer.Exit) as ended:
        report(run.path, "json", None, undecided)
    assert ended.value.exit_code == code
    assert capsys.readouterr().err.startswith("gate: b against a")


@pytest.mark.parametrize(("max_loss", "code"), [(None, 0), ("50%", 0), ("0.001%", 1)])
def test_a_closed_pipe_has_no_exit_code_of_its_own(stored: Run, max_loss: str | None, code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    options = [] if max_loss is None else ["--max-loss", max_loss]
    command = [sys.executable, "-m", "dbdyno", "report", str(stored.path), "--format", "json", *options]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stderr.count("\n")) == (code, len(options) // 2)


@pytest.mark.parametrize(("max_loss", "undecided"), [("4", None), ("0%", None), (None, "pass")])
def test_wrong_options_are_refused(stored: Run, max_loss: str | None, undecided: Undecided | None) -> None:
    with pytest.raises(Problem, match="--max-loss"):
        report(stored.path, "json", max_loss, undecided)


def test_a_gate_needs_variants_that_differ(tmp_path: Path) -> None:
    run = make(tmp_path, Making(blocks=1, connections=(10,), identical=("b",)))
    with pytest.raises(Problem, match="all variants of the experiment are identical"):
        report(run.path, "json", "3%")


def suite_gate(*percent: float, blocks: int = 8) -> Gate:
    """The gate of 3 % of a suite whose tests lose so much each."""
    of = with_gate(experiment(blocks=blocks), 3.0)
    labels = {f"test-{index}": loss for index, loss in enumerate(percent)}
    of = of.model_copy(
        update={"workloads": tuple(OltpWorkload(name="oltp_read_only", label=label) for label in labels)}
    )
    numbers = {label: index for index, label in enumerate(labels)}

    def throughput(trial: Trial) -> float:
        if trial.variant == "a":
            return 1000.0
        # Each test has another scatter.
        scatter = SCATTER[(trial.block * (2 * numbers[trial.workload] + 1)) % len(SCATTER)]
        return 1000.0 - 10.0 * (labels[trial.workload] + scatter)

    comparisons = compare_all(measured(of, throughput), of, [])
    verdict = VerdictFile(
        experiment=of.name,
        baseline="a",
        order_seed=None,
        family=Family(sentences=len(percent), alpha=0.05, text=""),
        comparisons=[comparison_entry(one, "") for one in comparisons],
        checks=[],
    )
    return gate(verdict, 3.0, decided_limits(comparisons))


def test_the_gate_of_a_suite_has_one_answer_for_a_variant() -> None:
    passed = suite_gate(0.0, 1.0, -2.0)
    assert passed.result == "not-inferior"
    check_sentences("a suite that loses less", *passed.sentences)
    worse = suite_gate(0.0, 6.0, 0.0)
    assert worse.result == "worse"
    check_sentences("a suite that loses more", *worse.sentences)
    undecided = suite_gate(0.0, 3.0, 0.0)
    assert undecided.result == "undecided"
    check_sentences("a suite that is undecided", *undecided.sentences)


def test_one_workload_has_no_entry_for_a_suite() -> None:
    assert suite_gate(0.0).suites is None


def test_the_result_of_a_suite_is_that_of_its_worst_test() -> None:
    both: tuple[GateResult, GateResult] = ("not-inferior", "undecided")
    # A claim about all needs less certainty for each.
    assert suite_result(both, [True, True]) == "not-inferior"
    assert suite_result(both, [True, False]) == "undecided"
    assert suite_result(("worse", "undecided"), [False, False]) == "worse"
    assert suite_result(("worse", "not-comparable"), [False, False]) == "not-comparable"
