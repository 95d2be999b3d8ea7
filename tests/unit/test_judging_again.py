"""A finished run can be judged again with other choices, and says in every sentence that it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.schemas import require_valid
from tests.unit.stored_run import Arms, Making, make, store, verdict_of

from dbdyno.commands import comparison
from dbdyno.commands.report import Format, report
from dbdyno.commands.show import show
from dbdyno.commands.stored_run import judge_again
from dbdyno.experiment.base import file_keys
from dbdyno.experiment.load import LatencyObjective
from dbdyno.experiment.model import (
    Client,
    Design,
    Experiment,
    Factor,
    Load,
    Loading,
    OltpWorkload,
    ServerSpec,
    Stop,
    Variant,
)
from dbdyno.experiment.rejudging import DESIGN_KEYS, read_changes
from dbdyno.experiment.schedule import Trial
from dbdyno.problem import Problem
from dbdyno.report import writing
from dbdyno.report.model import gather
from dbdyno.report.rendering import RenderedCharts
from dbdyno.report.replication import read_published
from dbdyno.report.site import write_site
from dbdyno.report.summary import summarize
from dbdyno.report.writing import render_page, write
from dbdyno.store import VERDICT, Run, StoreProblem, files
from dbdyno.store.endings import Ending, add_ending
from dbdyno.store.judgement import FOLDER, LaterJudgement, later_judgements
from dbdyno.terminal.messages import Output
from dbdyno.verdict import judge

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = (OltpWorkload(name="oltp_read_write"), OltpWorkload(name="oltp_read_only"))
STOP: dict[str, Any] = {
    "code": "P07",
    "level": "stop",
    "text": "too few connections",
    "evidence": {},
    "subject": "",
    "override": None,
}


@pytest.fixture(autouse=True)
def without_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here is about charts, which take seconds."""
    monkeypatch.setattr(writing, "_render", lambda _report, _language: ([], RenderedCharts()))


def finished(folder: Path, making: Making | None = None) -> Run:
    run = make(folder / "results", making or Making(connections=(10,)))
    judge(run)
    run.release()
    return run


def again(
    run: Run, *assignments: str, leave_out: tuple[str, ...] = (), reason: str | None = None
) -> LaterJudgement:
    reason = reason or ("a backup ran" if leave_out else None)
    return judge_again(run, assignments, leave_out, reason, "en")


def refusal(run: Run, *assignments: str, leave_out: tuple[str, ...] = ()) -> str:
    with pytest.raises(Problem) as caught:
        again(run, *assignments, leave_out=leave_out)
    assert not later_judgements(Run(run.path)), "what was refused has left a judgement"
    return f"{caught.value.text} {caught.value.fix}"


def later_verdict(judgement: LaterJudgement) -> dict[str, Any]:
    verdict: dict[str, Any] = files.read_json(judgement.judged_path / VERDICT)
    require_valid(verdict, "verdict")
    return verdict


def sentences(value: Any, key: str = "") -> list[str]:
    """Every sentence in a verdict."""
    if isinstance(value, dict):
        return [text for name, one in value.items() for text in sentences(one, name)]
    if isinstance(value, list):
        return [text for one in value for text in sentences(one, key)]
    return [value] if key == "sentence" else []


def test_another_delta_is_judged_next_to_the_plan(tmp_path: Path) -> None:
    run = finished(tmp_path)
    planned = {path.name: path.read_bytes() for path in run.path.glob("*.json")}
    judgement = again(run, "design.delta_percent=15")
    assert {path.name: path.read_bytes() for path in run.path.glob("*.json")} == planned
    assert verdict_of(run)["comparisons"][0]["curve"]["verdict"] == "slower"
    assert "chosen_afterwards" not in verdict_of(run)
    verdict = later_verdict(judgement)
    curve = verdict["comparisons"][0]["curve"]
    assert (curve["verdict"], curve["delta_percent"]) == ("equivalent", 15.0)
    (choice,) = verdict["chosen_afterwards"]
    assert choice["changes"] == [{"key": "design.delta_percent", "was": None, "now": 15.0}]
    assert choice["trials"] == len(run.trials())
    assert Run.open(run.path).changed_files() == []


def test_every_sentence_says_that_it_was_chosen_afterwards(tmp_path: Path) -> None:
    making = Making(connections=(10, 20), workloads=WORKLOADS, metrics=("throughput", "p99"), blocks=10)
    run = finished(tmp_path, making)
    judgement = again(run, "design.max_loss_percent=3", 'design.metrics=["p95", "throughput"]')
    verdict = later_verdict(judgement)
    assert len(sentences(verdict)) >= 8
    for sentence in sentences(verdict):
        assert sentence.startswith(
            "Chosen afterwards (design.max_loss_percent 3 instead of none, "
            "design.metrics p95, throughput instead of throughput, p99): "
        )
    assert "Error rates hold only for the judgement that was planned before" in verdict["family"]["text"]
    assert not any("Chosen" in sentence for sentence in sentences(verdict_of(run)))
    # The same without caveats, as pages show it.
    judged = judgement.judge_files()
    assert judged is not None
    assert judged[0].comparisons[0].curve.statement.startswith("Chosen afterwards")


def test_factors_are_judged_again_too(tmp_path: Path) -> None:
    factors = tuple(Factor(name=name, levels=("off", "on")) for name in ("x", "y"))
    run = finished(tmp_path, Making(factors=factors, blocks=12, connections=(10, 20)))
    verdict = later_verdict(again(run, leave_out=("connections=10",)))
    of_factors = sentences(verdict["factors"])
    assert len(of_factors) == 3
    assert all(one.startswith("Chosen afterwards (connections 10 left out): ") for one in of_factors)


@pytest.mark.parametrize(
    "stop", [None, Stop(max_blocks=12)], ids=["a fixed number of blocks", "stopped when decided"]
)
def test_what_is_left_out_does_not_count(tmp_path: Path, stop: Stop | None) -> None:
    """Block 3 and 20 connections are slow in b alone, and so is a workload."""

    def speed(trial: Trial) -> int:
        is_odd = trial.block == 2 or trial.point.connections == 20 or trial.workload == "oltp_read_only"
        return 50 if is_odd else 90

    making = Making(blocks=12, stop=stop, connections=(10, 20, 40), workloads=WORKLOADS, speed=Arms(b=speed))
    run = finished(tmp_path, making)
    omissions = ("block=3", "connections=20", "workload=oltp_read_only")
    (comparison,) = later_verdict(again(run, leave_out=omissions))["comparisons"]
    curve = comparison["curve"]
    assert (comparison["workload"], curve["blocks"]) == ("oltp_read_write", 11)
    assert [point["at"] for point in comparison["points"]] == [{"connections": 10}, {"connections": 40}]
    assert curve["interval_percent"] == pytest.approx([-10.0, -10.0])
    assert "block 3 left out, connections 20 left out, oltp_read_only left out" in curve["sentence"]
    planned = verdict_of(run)["comparisons"][0]["curve"]
    assert planned["effect_percent"] < -20.0


def test_rates_are_loads_too(tmp_path: Path) -> None:
    run = finished(tmp_path, Making(connections=(20,), rates=(500.0, 750.5)))
    (comparison,) = later_verdict(again(run, leave_out=("rate=750.5",)))["comparisons"]
    assert [point["at"] for point in comparison["points"]] == [{"rate": 500.0}]
    assert "rate 750.5 left out" in comparison["curve"]["sentence"]


def test_the_list_of_loads_may_be_shorter(tmp_path: Path) -> None:
    run = finished(tmp_path, Making())
    assert 'Add --reason "why"' in refusal_without_reason(run, "load.connections=[40, 10]")
    judgement = judge_again(run, ["load.connections=[40, 10]"], (), "busy", "en")
    (choice,) = later_verdict(judgement)["chosen_afterwards"]
    assert choice["left_out"]["connections"] == [20]
    assert choice["reason"] == "busy"


def refusal_without_reason(run: Run, *assignments: str) -> str:
    with pytest.raises(Problem) as caught:
        judge_again(run, assignments, (), None, "en")
    return caught.value.fix


def test_a_repeat_is_left_out_with_its_block(tmp_path: Path) -> None:
    run = finished(tmp_path, Making(connections=(10,), repeated=(4,)))
    assert "block 9 repeats block 5. Leave out block 5" in refusal(run, leave_out=("block=9",))
    blocks = {trial.block for trial in again(run, leave_out=("block=5",)).schedule()}
    assert blocks == {0, 1, 2, 3, 5, 6, 7}


def test_the_rates_of_a_probe_can_be_left_out() -> None:
    experiment = with_objective()
    experiment.load.set_found_rates((100.0, 200.0, 300.0))
    changed = read_changes(experiment, (), ("rate=200",), {1: None}).apply(experiment)
    assert [point.rate for point in changed.load.points()] == [100.0, 300.0]
    assert [point.rate for point in experiment.load.points()] == [100.0, 200.0, 300.0]
    with pytest.raises(Problem, match="a latency objective needs 2 loads, and fewer would be left"):
        read_changes(experiment, (), ("rate=200", "rate=100"), {1: None})
    with pytest.raises(Problem, match="with a latency objective the capacity is judged"):
        read_changes(experiment, ('design.metrics=["p99"]',), (), {1: None})


def with_objective() -> Experiment:
    return Experiment(
        name="x",
        workloads=(OltpWorkload(name="oltp_read_write"),),
        load=Load(connections=(8,), latency_objective=LatencyObjective(p99_s=0.01), duration_s=1.0),
        variants=(Variant(name="a"), Variant(name="b", server=ServerSpec(variables={"x": 1}))),
    )


# Every key of these tables, whether it decides what is measured or not.
MEASURING = [
    *(f"design.{key}" for key in file_keys(Design) if key not in DESIGN_KEYS),
    *(f"load.{key}" for key in file_keys(Load) if key not in ("connections", "rate")),
    *(f"client.{key}" for key in file_keys(Client)),
    *(f"loading.{key}" for key in file_keys(Loading)),
    "design.stop.max_blocks",
    "experiment.name",
    "workload.table_size",
    "workload[oltp_read_write].tables",
    "variant.server.variables.sort_buffer_size",
    "variant[b].server.version",
    "fleet.engines",
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A finished run for what is refused."""
    return finished(tmp_path_factory.mktemp("plain"), Making(duration_s=2.0))


@pytest.mark.parametrize("key", MEASURING)
def test_what_would_need_a_measurement_is_refused_by_name(plain: Run, key: str) -> None:
    text = refusal(plain, f"{key}=7")
    assert f"{key} = 7: this cannot be changed after the run" in text
    assert "design.delta_percent, design.max_loss_percent, design.metrics and override.CODE can be" in text


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("design.delta_precent=3", "there is no such key. Did you mean design.delta_percent?"),
        ("design.delta_percent=200", "design.delta_percent = 200: must be below 100"),
        ("design.delta_percent=nan", "design.delta_percent"),
        ("design.delta_percent=1979-05-27", "design.delta_percent"),
        ("design.metrics=p99", 'design.metrics = "p99": this must be a list in [ ]'),
        ('design.metrics=["p101"]', "there is no metric 'p101'"),
        ('design.metrics=["throughput"]', "the run was judged with this value already"),
        ('design.metrics=["cpu_per_transaction"]', "the run has not recorded cpu_per_transaction"),
        ("design.max_loss_percent", "it has no ="),
        ("override.P99=why", "no check has this code"),
        ("override.P07=", "an override needs a reason"),
        ("override.P07=1", "override.P07"),
        (
            "load.connections=[10, 80]",
            "[10, 80]: 80 was not measured. Choose among 10, 20, 40",
        ),
        ("load.connections=80", "80 was not measured"),
        ("load.connections=true", "was not measured"),
        ("load.rate=[10]", "10 was not measured"),
    ],
)
def test_a_wrong_value_is_refused(plain: Run, change: str, expected: str) -> None:
    assert expected in refusal(plain, change)


@pytest.mark.parametrize(
    ("omissions", "expected"),
    [
        (("variant=b",), "only blocks, loads and workloads can be left out"),
        (("a",), "only blocks, loads and workloads can be left out"),
        (("block=0",), "the run has no such block; it has: 1, 2, 3, 4, 5, 6, 7, 8"),
        (("block=9",), "the run has no such block"),
        (("block=-1",), "the run has no such block"),
        (("block=١",), "the run has no such block"),
        (("block=",), "the run has no such block"),
        (("connections=11",), "the run has no such connections; it has: 10, 20, 40"),
        (("rate=10",), "the run has no such rate; it has: none"),
        (("workload=x",), "the run has no such workload; it has: oltp_read_write"),
        (("workload=oltp_read_write",), "no workload would be left"),
        (tuple(f"block={number}" for number in range(1, 9)), "no block would be left"),
        (("connections=10", "connections=20", "connections=40"), "no load would be left"),
    ],
)
def test_what_cannot_be_left_out_is_refused(plain: Run, omissions: tuple[str, ...], expected: str) -> None:
    assert expected in refusal(plain, leave_out=omissions)


def test_all_errors_are_reported_together(plain: Run) -> None:
    text = refusal(plain, "load.duration=3s", "design.delta_percent=-1", leave_out=("block=99",))
    assert "3 errors" in text


def test_an_unfinished_run_is_finished_first(tmp_path: Path) -> None:
    run = finished(tmp_path, Making(connections=(10,), absent=lambda trial: trial.block > 6))
    assert "is not finished" in refusal(run, "design.delta_percent=3")


def test_a_run_of_one_variant_has_no_verdict(tmp_path: Path) -> None:
    run = finished(tmp_path, Making(names=("a",)))
    assert "has one variant" in refusal(run, "design.delta_percent=3")


def test_a_run_that_goes_on_is_not_judged_again(tmp_path: Path) -> None:
    run = finished(tmp_path)
    running = Run(run.path)
    running.lock()
    assert "in use by another dbdyno" in refusal(run, "design.delta_percent=3")
    running.release()
    again(run, "design.delta_percent=3")


def test_an_override_gives_the_verdict_that_a_stop_forbade(tmp_path: Path) -> None:
    run = finished(tmp_path, Making(connections=(10,), findings=[STOP]))
    judgement = again(run, "override.P07=the limit is known")
    assert verdict_of(run)["comparisons"][0]["curve"]["verdict"] == "not-comparable"
    verdict = later_verdict(judgement)
    curve = verdict["comparisons"][0]["curve"]
    assert curve["verdict"] == "slower"
    assert curve["sentence"].startswith("Chosen afterwards (override of P07): b is slower")
    assert "P07 overridden: “the limit is known”" in curve["sentence"]
    assert verdict["chosen_afterwards"][0]["changes"][0]["now"] == "the limit is known"


def test_each_choice_is_stored_once_and_counted(tmp_path: Path) -> None:
    run = finished(tmp_path)
    first = again(run, "design.delta_percent=15")
    assert again(run, "design.delta_percent=15").judged_path == first.judged_path
    second = again(run, "design.delta_percent=16")
    assert [one.judged_path.name for one in later_judgements(run)] == ["01", "02"]
    planned, later = gather(run).judgements, gather(second).judgements
    assert "judged again 2 times, and error rates do not hold for a choice among these" in planned[0]
    for text, number, delta in zip(planned[1:], ("01", "02"), (15, 16), strict=True):
        choice = f"design.delta_percent {delta} instead of none"
        assert text.startswith(f"{FOLDER}/{number}: Chosen afterwards ({choice}): b is slower than a")
    assert later[0].startswith("Chosen afterwards, after 16 trials: design.delta_percent 16")
    assert f"The planned judgement of this run is in {run.path.name}." in later
    assert any("judged again 2 times" in text for text in later)


def test_every_form_of_the_report_says_which_judgement_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(tmp_path)
    assert gather(run).judgements == []
    render(run, "md", assignments=["design.delta_percent=15"], reason="3 % was a slip")
    output = capsys.readouterr()
    statement = (
        "Chosen afterwards (design.delta_percent 15 instead of none): b is slower than a by less than 15 %"
    )
    assert statement in output.err
    assert statement in output.out.replace("\\", "")
    assert "“3 % was a slip”" in output.out
    later = later_judgements(run)[0]
    html = write(later).read_text()
    assert statement in html
    assert (later.judged_path / "report.md").is_file()
    planned = "This is the judgement that was planned"
    for text in (render_page(run)[0], shown(run, capsys), rendered(run, capsys)):
        assert planned in text
        assert statement in text.replace("\\", "")
    write_site(tmp_path / "results", tmp_path / "site", language="en", warn=print)
    assert planned in next((tmp_path / "site/runs").rglob("report.html")).read_text()
    assert "사후에 정함" in render_page(later, "ko")[0]
    assert "계획한 판정" in render_page(run, "ko")[0]


def render(run: Run, output_format: Format, **options: Any) -> None:
    report(run.path, format=output_format, **options)


def shown(run: Run, capsys: pytest.CaptureFixture[str]) -> str:
    show(run.path)
    return capsys.readouterr().out


def rendered(run: Run, capsys: pytest.CaptureFixture[str]) -> str:
    render(run, "md")
    return capsys.readouterr().out


def test_the_page_of_a_site_is_written_again(tmp_path: Path) -> None:
    run = finished(tmp_path)
    write_site(tmp_path / "results", tmp_path / "site", language="en", warn=print)
    again(run, "design.delta_percent=15")
    write_site(tmp_path / "results", tmp_path / "site", language="en", warn=print)
    page = next((tmp_path / "site/runs").rglob("report.html")).read_text()
    assert "Chosen afterwards" in page


def test_the_gate_has_the_exit_code_and_says_it_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(tmp_path)
    with pytest.raises(typer.Exit) as ended:
        render(run, "md", assignments=["design.max_loss_percent=3"])
    assert ended.value.exit_code == 1
    gate = capsys.readouterr().err.splitlines()[-1]
    assert gate.startswith("Chosen afterwards (design.max_loss_percent 3 instead of none): gate: b against a")
    with pytest.raises(typer.Exit):
        render(run, "md", assignments=["design.delta_percent=15"], max_loss="20%")
    gate = capsys.readouterr().err.splitlines()[-1]
    assert gate.startswith("Chosen afterwards (design.delta_percent 15 instead of none): gate: b against a")


def test_a_reason_alone_changes_nothing(tmp_path: Path) -> None:
    run = finished(tmp_path)
    with pytest.raises(Problem, match="--reason has no effect"):
        render(run, "md", reason="why")


def test_a_later_report_cannot_be_replicated(tmp_path: Path) -> None:
    run = finished(tmp_path)
    page = write(again(run, "design.delta_percent=15"))
    with pytest.raises(Problem, match="its judgement was chosen when the data had been seen"):
        read_published(page)
    assert read_published(write(run)).verdict.chosen_afterwards is None


def replace(path: Path, before: str, after: str) -> None:
    path.write_text(path.read_text().replace(before, after))


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: shutil.rmtree(folder),
        lambda folder: (folder / "chosen_afterwards.json").unlink(),
        lambda folder: (folder / VERDICT).write_text(
            (folder / VERDICT).read_text().replace("Chosen", "chosen")
        ),
        lambda folder: (folder / "digests.jsonl").unlink(),
    ],
    ids=["removed", "without its record", "other sentences", "without digests"],
)
def test_a_changed_later_judgement_is_noticed(tmp_path: Path, change: Any) -> None:
    run = finished(tmp_path)
    judgement = again(run, "design.delta_percent=15")
    write(judgement)
    assert Run.open(run.path).changed_files() == []
    change(judgement.judged_path)
    with pytest.raises(StoreProblem, match=f"changed since it was measured: {FOLDER}/01"):
        Run.open(run.path)


def test_a_judgement_that_was_interrupted_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished(tmp_path)

    def interrupt(_run: Run, _language: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dbdyno.commands.stored_run.judge_if_needed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        again(run, "design.delta_percent=15")
    monkeypatch.undo()
    assert later_judgements(run) == []
    assert Run.open(run.path).changed_files() == []
    assert again(run, "design.delta_percent=15").judged_path.name == "02"


def resumed(run: Run, override: dict[str, str]) -> Run:
    """The run as `compare --resume` opens it with other overrides in the file."""
    experiment = run.experiment().model_copy(update={"override": override})
    return comparison.resume_run(run.path.parent.parent, experiment)


def test_an_override_never_makes_resume_refuse(tmp_path: Path) -> None:
    """The run was stopped by a check in its second block; then the file got an override."""
    making = Making(
        findings=[STOP], connections=(10,), override={"P02": "old"}, absent=lambda trial: trial.block > 1
    )
    run = finished(tmp_path, making)
    add_ending(run, Ending(began_unix_us=1, ended_unix_us=2, why="check"))
    other = resumed(run, {"P07": "the limit is known"})
    assert other.experiment().override == {"P07": "the limit is known"}
    for trial in other.schedule():
        if trial.block > 1:
            store(other, trial, other.experiment(), Making(connections=(10,)))
    judge(other)
    other.release()
    (choice,) = verdict_of(run)["chosen_afterwards"]
    assert choice["trials"] == 4
    assert choice["changes"] == [
        {"key": "override.P02", "was": "old", "now": None},
        {"key": "override.P07", "was": None, "now": "the limit is known"},
    ]
    sentence = verdict_of(run)["comparisons"][0]["curve"]["sentence"]
    assert sentence.startswith("Chosen afterwards (no override of P02, override of P07): b is slower than a")
    assert "(chosen afterwards)" in summarize(run.path).text
    assert "Chosen afterwards, after 4 trials:" in render_page(Run.open(run.path))[0]
    # The next call has the same file, and changes nothing.
    resumed(run, {"P07": "the limit is known"}).release()
    assert len(Run(run.path).chosen_afterwards()) == 1


def test_an_override_before_the_first_trial_is_part_of_the_plan(tmp_path: Path) -> None:
    run = make(tmp_path / "results", Making(connections=(10,), absent=lambda _trial: True))
    run.release()
    other = resumed(run, {"P07": "the limit is known"})
    for trial in other.schedule():
        store(other, trial, other.experiment(), Making(connections=(10,)))
    judge(other)
    other.release()
    assert "chosen_afterwards" not in verdict_of(run)
    assert other.experiment().override == {"P07": "the limit is known"}


def test_resuming_a_run_that_has_ended_keeps_its_planned_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(tmp_path, Making(connections=(10,), findings=[STOP]))
    add_ending(run, Ending(began_unix_us=1, ended_unix_us=2, why="blocks"))
    experiment = run.experiment().model_copy(update={"override": {"P07": "the limit is known"}})
    other = resumed(run, experiment.override)
    assert other.experiment().override == {}
    verdict = comparison.conclude(other, experiment, Output(writes_report=False))
    assert verdict.comparisons[0].curve.verdict == "slower"
    assert "Chosen afterwards (override of P07): b is slower than a" in capsys.readouterr().out
    assert verdict_of(run)["comparisons"][0]["curve"]["verdict"] == "not-comparable"
    assert len(later_judgements(run)) == 1
    other.release()


def test_other_keys_still_make_resume_refuse(tmp_path: Path) -> None:
    run = finished(tmp_path)
    experiment = run.experiment()
    design = experiment.design.model_copy(update={"delta_percent": 3.0})
    with pytest.raises(StoreProblem, match=r"design\.delta_percent was not set and is 3\.0"):
        Run.resume(tmp_path / "results", experiment.model_copy(update={"design": design}))
