"""What `compare` prints: everything fits in 80 columns, findings follow the verdict."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from rich.cells import cell_len
from tests.unit.judged_run import Judged
from tests.unit.stored_run import Making, experiment, make, verdict_of

from dbdyno.experiment.schedule import schedule
from dbdyno.finding import Finding
from dbdyno.report.model import gather
from dbdyno.run import progress
from dbdyno.store import Run
from dbdyno.terminal import result
from dbdyno.terminal.console import SafeConsole, print_text
from dbdyno.terminal.messages import Output
from dbdyno.terminal.progress import TrialTable, show_progress
from dbdyno.terminal.tables import peak
from dbdyno.verdict import judge

NAMES = ("one-thread-per-connection", "pool-of-threads")
WARNING = Finding("D01", "warn", "the load generator woke up late in trial 0003: 5 ms late.")
NOTE = Finding("P14", "note", "the data fit in the buffer pool.")


def terminal(width: int = 80) -> SafeConsole:
    return SafeConsole(stderr=True, highlight=False, force_terminal=True, color_system=None, width=width)


def test_lines_break_between_words_and_go_on_below_the_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = "  design    6 blocks, balanced random order (order seed 686883); data restored before each group"
    path = "/srv/" + 30 * "results/"
    print_text(terminal(), text, indent=12)
    print_text(terminal(), f"stored in {path}")
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "  design    6 blocks, balanced random order (order seed 686883); data restored"
    assert lines[1] == "            before each group"
    # A path stays whole: users copy it.
    assert lines[2:] == ["stored in", path]


def test_a_log_has_one_line_per_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(SafeConsole(stderr=True), "word " * 100, indent=2)
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_wide_characters_count_twice(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(terminal(20), "데이터베이스 성능을 비교하는 도구")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1
    assert all(cell_len(line) <= 20 for line in lines)


def run_of(tmp_path: Path) -> Run:
    checks = [asdict(one) for one in (WARNING, replace(WARNING, subject="b"), NOTE)]
    return Judged(making=Making(names=NAMES), checks=checks).write(tmp_path)


def test_the_line_of_a_trial_fits_and_has_its_figures(tmp_path: Path) -> None:
    run = make(tmp_path, Making(names=NAMES, blocks=1))
    table = TrialTable(run.experiment())
    trial = schedule(run.experiment())[0]
    stored = run.trials()[0]
    row = table.row(trial, stored, "")
    assert all(cell_len(line) <= 80 for line in (table.heading(), row))
    assert row.split()[:3] == ["1", trial.variant, f"{trial.point.connections}"]
    throughput, latency = table.figures_text(stored), row.split()[4]
    assert row.split()[3] == throughput.split()[0]
    assert float(latency) > 0.0
    failed = table.row(trial, stored, "the server refused the login")
    assert failed.endswith("failed: the server refused the login")


def test_in_an_open_loop_the_line_has_the_judged_latency(tmp_path: Path) -> None:
    run = make(tmp_path, Making(names=NAMES, blocks=1, connections=(64,), rates=(500.0,)))
    text = TrialTable(run.experiment()).figures_text(run.trials()[0])
    assert text.startswith("p95 ")
    assert text.endswith(" ms")


def test_progress_on_a_terminal_has_a_row_per_trial(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make(tmp_path, Making(names=NAMES, blocks=1))
    trials = schedule(run.experiment())[:2]
    with show_progress(terminal(), run.experiment()) as listen:
        listen(progress.Began(run.path, trials, 0))
        listen(progress.NewFindings((WARNING, replace(WARNING, subject="b"))))
        for trial in trials:
            listen(progress.TrialBegan(trial))
            listen(progress.TrialEnded(trial, "", 1000.0))
    # Without the sequences that move the cursor.
    printed = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "\n", capsys.readouterr().err)
    lines = [line.split() for line in printed.splitlines()]
    assert sum(line[:2] == ["block", "variant"] for line in lines) == 1
    for trial in trials:
        assert sum(line[:3] == ["1", trial.variant, f"{trial.point.connections}"] for line in lines) == 1
    # The result has the number of findings of each code.
    assert sum(line[:2] == ["warn", "D01:"] for line in lines) == 1


def test_the_findings_follow_the_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path)
    result.show(run, run.experiment())
    output = capsys.readouterr()
    assert output.out.splitlines()[-1] == verdict_of(run)["comparisons"][0]["curve"]["sentence"]
    assert "D01" not in output.out
    warning, notes = output.err.splitlines()
    assert warning.startswith("warning D01: the load generator woke up late")
    assert warning.endswith("(and 1 more of this code in the report)")
    assert notes == "1 note in the report"


def test_every_stop_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stops = [Finding("P04", "stop", f"{name} is 1; the experiment declares 2.") for name in ("x", "y")]
    run = Judged(making=Making(names=NAMES), checks=[asdict(one) for one in stops]).write(tmp_path)
    result.show(run, run.experiment())
    override = "  to go on all the same: --set 'override.P04=\"REASON\"'"
    lines = capsys.readouterr().err.splitlines()
    assert [line[:12] for line in lines[::2]] == ["stop P04: x ", "stop P04: y "]
    assert lines[1::2] == [override, override]


def test_quiet_is_the_verdict_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path)
    result.show(run, run.experiment(), Output(quiet=True))
    output = capsys.readouterr()
    assert output.out == verdict_of(run)["comparisons"][0]["curve"]["sentence"] + "\n"
    assert not output.err


def test_the_json_of_a_result_is_its_verdict_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(tmp_path)
    result.show(run, run.experiment(), Output(as_json=True))
    printed = json.loads(capsys.readouterr().out)
    assert printed["comparisons"] == verdict_of(run)["comparisons"]


def test_a_result_fits_in_80_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path)
    monkeypatch.setattr(result, "result_console", lambda: replace_stream(80))
    result.show(run, run.experiment())
    output = capsys.readouterr()
    assert all(cell_len(line) <= 80 for line in output.out.splitlines())
    assert max(map(cell_len, output.out.splitlines())) > 60


def test_the_table_shows_the_percentile_that_is_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    making = Making(connections=(8,), rates=(100, 200), metrics=("p99",))
    run = make(tmp_path, making)
    judge(run)
    result.show(run, run.experiment())
    heading, _, first, *_ = capsys.readouterr().out.splitlines()
    assert "p99 ms" in heading
    assert "p95" not in heading
    figures = next(one.figures for one in gather(run).trials if one.figures and one.variant == "a")
    assert first.split()[2] == f"{figures.metric('latency_p99_us') / 1000:.2f}"


def test_a_sweep_says_where_throughput_is_highest(tmp_path: Path) -> None:
    speeds = {1: 10, 2: 18, 4: 30, 8: 28}
    making = Making(
        blocks=1,
        names=("a",),
        connections=tuple(speeds),
        speed=lambda trial, _: speeds[trial.point.connections],
    )
    verdict = judge(make(tmp_path, making))
    assert peak(verdict) == "highest throughput: 300.0 transactions/s at 4 connections"


def replace_stream(width: int) -> SafeConsole:
    """A terminal on standard output."""
    return SafeConsole(highlight=False, force_terminal=True, color_system=None, width=width)


def test_the_design_fits_in_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    result.describe(terminal(), experiment(Making(names=NAMES)), None)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 6
    assert all(cell_len(line) <= 80 for line in lines)
