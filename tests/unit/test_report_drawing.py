"""Charts are drawn in a child process: nothing that happens to it costs the verdict or the page."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.unit.judged_run import Judged
from tests.unit.pages import joined, page_of
from tests.unit.stored_run import verdict_of

from dbdyno.commands.report import NOT_RENDERED
from dbdyno.commands.report import report as show
from dbdyno.report import charts, rendering
from dbdyno.report import writing as report
from dbdyno.report.chart import Chart
from dbdyno.report.model import gather
from dbdyno.store import VERDICT, Run, StoreProblem, files
from dbdyno.terminal import result

LAB = str(Path(report.__file__).parents[2])
# Less address space than the chart library reserves, and enough for everything else.
LIMIT_KIB = 8_000_000


def limited(run: Run, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`dbdyno report` with little address space."""
    return subprocess.run(
        ["bash", "-c", f'ulimit -v {LIMIT_KIB}; exec "$@"', "limited", sys.executable, "-m", "dbdyno",
         "report", str(run.path), *arguments],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, "PYTHONPATH": LAB},
    )  # fmt: skip


def figures(run: Run) -> list[Chart]:
    """The charts of a run, not drawn."""
    return charts.all_charts(gather(run))


def test_little_address_space_costs_the_charts_and_nothing_else(tmp_path: Path) -> None:
    run = Judged().write(tmp_path)
    answer = limited(run)
    assert answer.returncode == 0
    assert answer.stdout.strip() == str(run.path / "report.html")
    (line,) = answer.stderr.splitlines()
    assert line.startswith("warning: report.html lacks charts: the chart library was ended by SIG")
    assert "address space is limited to 7.6 GiB (ulimit -v)" in line
    page = (run.path / "report.html").read_text()
    assert "The charts could not be rendered: the chart library was ended by SIG" in page
    assert "<svg" not in page
    assert Judged().sentence in page
    assert "All trials" in page


def test_charts_that_were_requested_and_cannot_be_drawn_are_an_error(tmp_path: Path) -> None:
    run = Judged().write(tmp_path)
    for picture in ("svg", "png"):
        answer = limited(run, "--format", picture)
        assert (answer.returncode, answer.stdout) == (NOT_RENDERED, "")
        (line,) = answer.stderr.splitlines()
        assert line.startswith("error: charts cannot be rendered: the chart library was ended by SIG")


def test_the_chart_library_is_never_imported_by_the_command(tmp_path: Path) -> None:
    run = Judged().write(tmp_path)
    program = (
        "import sys, pathlib; from dbdyno.commands import comparison; from dbdyno.terminal import result;"
        "from dbdyno.store import Run;"
        "before = set(sys.modules);"
        "result.write_report(Run.open(pathlib.Path(sys.argv[1])));"
        "print('altair' in before, 'altair' in sys.modules, 'vl_convert' in sys.modules)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(run.path)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": LAB},
    )  # fmt: skip
    # The specifications are made when the verdict is out, the pictures elsewhere.
    assert answer.stdout.split() == ["False", "True", "False"]
    assert answer.stderr == f"report: {run.path / 'report.html'}\n"
    assert len(list((run.path / "charts").iterdir())) == 14


def test_a_chart_that_is_rejected_leaves_the_others(tmp_path: Path) -> None:
    run = Judged().write(tmp_path)
    good, *_ = figures(run)

    class Rejected:
        def __getattr__(self, _name: str) -> Any:
            return lambda *_args, **_kwargs: self

        def to_dict(self, **_options: bool) -> dict[str, Any]:
            return {"mark": "no such mark", "config": {}}

    bad = Chart("bad", "", "", "", Rejected())
    drawn = rendering.render([bad, good])
    assert list(drawn.by_name) == [good.name, good.narrow_name]
    assert drawn.by_name[good.name].png.startswith(b"\x89PNG")
    assert drawn.failure.startswith("the chart library rejects bad: ")
    assert "\n" not in drawn.failure


def test_what_was_drawn_before_the_child_ended_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A child that draws the first chart as the real one does, and dies.
    program = tmp_path / "draw.py"
    program.write_text(
        rendering.PROGRAM.read_text().replace(
            "        sys.stdout.flush()\n", "        sys.stdout.flush()\n        import os; os.abort()\n"
        )
    )
    monkeypatch.setattr(rendering, "PROGRAM", program)
    run = Judged().write(tmp_path)
    reasons: list[str] = []
    page = report.write(run, reasons.append).read_text()
    assert reasons == ["the chart library was ended by SIGABRT"]
    assert page.count("<svg") == 1
    assert "Some charts could not be rendered: the chart library was ended by SIGABRT." in page


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("import no_such_module", "exit code 1): ModuleNotFoundError: No module named 'no_such_module'"),
        ("print('{')", "the chart library ended early"),
        ("import time; time.sleep(60)", "did not finish within 0.5 s"),
    ],
)
def test_every_end_of_the_child_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    child = tmp_path / "draw.py"
    child.write_text(program)
    monkeypatch.setattr(rendering, "PROGRAM", child)
    monkeypatch.setattr(rendering, "SECONDS_TO_START", 0.5)
    monkeypatch.setattr(rendering, "SECONDS_PER_CHART", 0.0)
    if "import" not in program or "no_such" in program:
        monkeypatch.setattr(rendering, "SECONDS_TO_START", 60.0)
    run = Judged().write(tmp_path)
    drawn = rendering.render(figures(run))
    assert drawn.by_name == {}
    assert reason in drawn.failure


def test_a_mistake_in_a_chart_costs_the_charts_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Judged().write(tmp_path)
    with pytest.raises(TypeError) as caught:
        # The crash that an overloaded comparison ended with.
        min([None, 1.0])  # type: ignore[type-var]

    def mistaken(_report: object) -> None:
        raise caught.value

    monkeypatch.setattr(charts, "all_charts", mistaken)
    result.write_report(run)
    answer = capsys.readouterr()
    assert answer.out == ""
    first, second = answer.err.splitlines()
    assert first.startswith("warning: report.html lacks charts: TypeError: ")
    assert second == f"report: {run.path / 'report.html'}"
    assert "The charts could not be rendered: TypeError" in (run.path / "report.html").read_text()
    with pytest.raises(typer.Exit) as ended:
        show(run.path, "svg")
    assert ended.value.exit_code == NOT_RENDERED


def test_a_report_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Judged().write(tmp_path)
    (run.path / "report.html").mkdir()
    result.write_report(run)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: no report: ")


def test_a_report_without_file_handles_names_the_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(report, "write", fail)
    result.write_report(Judged().write(tmp_path))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: no report: no more file handles (ulimit -n): ")


def test_the_verdict_of_an_older_dbdyno_is_judged_again_and_of_a_newer_one_refused(tmp_path: Path) -> None:
    run = Judged().write(tmp_path)
    verdict = verdict_of(run)
    files.write_json(run.path / VERDICT, {**verdict, "schema": 1, "comparisons": []})
    with pytest.raises(StoreProblem, match="has not been judged"):
        report.write(run)
    show(run.path, "html")
    assert verdict_of(run)["schema"] == 3
    assert "not run" in joined(page_of(run).text)
    files.write_json(run.path / VERDICT, {**verdict, "schema": 4})
    with pytest.raises(StoreProblem, match="written by a newer dbdyno"):
        report.write(run)
