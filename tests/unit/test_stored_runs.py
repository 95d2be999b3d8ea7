"""`dbdyno list` and `dbdyno show`, and how users name a stored run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.stored_run import Making, make

from dbdyno.commands.list import list as list_command
from dbdyno.commands.show import show
from dbdyno.finding import Finding
from dbdyno.problem import Problem
from dbdyno.store import VERDICT, Run, StoreProblem, files
from dbdyno.store.listing import find_run
from dbdyno.verdict import judge

SMALL = Making(blocks=6, connections=(10,))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Three runs: one judged, one not, and one whose verdict is damaged."""
    for number in (1, 2, 3):
        run = make(tmp_path, SMALL)
        run.release()
        if number != 2:
            judge(run)
        if number == 3:
            files.write(run.path / VERDICT, b"{")
    return tmp_path


def listed(results: Path, capsys: pytest.CaptureFixture[str], **options: Any) -> list[dict[str, Any]]:
    list_command(results=results, output_format="json", **options)
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_runs_are_listed_with_their_results(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged, unjudged, judged = listed(results, capsys)
    assert [one["number"] for one in (damaged, unjudged, judged)] == [3, 2, 1]
    assert (damaged["state"], unjudged["state"], judged["state"]) == ("unreadable", "not-judged", "judged")
    assert "is not valid JSON" in str(damaged["text"])
    assert (judged["trials"], judged["planned"]) == (12, 12)
    assert str(judged["began"]).startswith("20")
    verdict = json.loads((Path(str(judged["path"])) / VERDICT).read_text())
    (result,) = judged["results"]
    curve = verdict["comparisons"][0]["curve"]
    keys = ("verdict", "effect_percent", "interval_percent", "sentence")
    assert {key: result[key] for key in keys} == {key: curve[key] for key in keys}
    list_command(results=results)
    line = next(line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("1 "))
    assert f"12/12  b: {curve['verdict']} " in line


def test_runs_are_found_by_name_date_and_verdict(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (judged,) = listed(results, capsys, verdict="slower")
    assert judged["number"] == 1
    assert [one["number"] for one in listed(results, capsys, verdict="not-judged")] == [2]
    day = str(judged["began"])[:10]
    for options in ({"since": "1d"}, {"since": day}, {"until": day}, {"experiment": "*"}):
        assert len(listed(results, capsys, **options)) == 3
    for options in ({"until": "2020-01-01"}, {"since": "2099-01-01T10:00"}, {"verdict": "undecided"}):
        with pytest.raises(Problem, match="none of the runs below"):
            listed(results, capsys, **options)
    with pytest.raises(Problem, match="--since yesterday: this is no date"):
        listed(results, capsys, since="yesterday")


def test_every_run_is_one_line_and_says_why_it_has_no_verdict(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped = Run(find_run(results, Path("2")).path)
    stopped.add_findings([Finding("P03", "stop", "two servers\nare one", {})])
    list_command(results=results)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[2].endswith("not judged: stopped by P03: two servers are one")


def test_the_newest_are_listed_and_the_others_counted(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    list_command(results=results, limit=1, output_format="json")
    printed = capsys.readouterr()
    assert [one["number"] for one in json.loads(printed.out)] == [3]
    assert printed.err == "2 older runs are not shown (--all shows them)\n"
    assert len(listed(results, capsys, everything=True)) == 3


def test_a_run_that_another_dbdyno_writes_is_running(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make(tmp_path, SMALL)
    assert [one["state"] for one in listed(tmp_path, capsys)] == ["running"]
    run.release()
    assert [one["state"] for one in listed(tmp_path, capsys)] == ["not-judged"]


def test_no_runs_are_an_error(tmp_path: Path, results: Path) -> None:
    with pytest.raises(Problem, match=r"there is no run below .*nowhere"):
        list_command(results=tmp_path / "nowhere")
    with pytest.raises(Problem, match="there is no run of other below"):
        list_command("other", results=results)


def test_a_run_has_a_folder_a_number_and_an_experiment(results: Path) -> None:
    (name,) = [path.name for path in results.iterdir()]
    newest = find_run(results, None)
    assert newest.path.name.endswith("-r0003")
    for other in (Path("3"), Path("r0003"), Path(name), newest.path):
        assert find_run(results, other).path == newest.path
    assert find_run(results, Path("1")).path.name.endswith("-r0001")
    with pytest.raises(StoreProblem, match="there is no run 4 below"):
        find_run(results, Path("4"))
    with pytest.raises(StoreProblem, match="is not a run directory"):
        find_run(results, results / name)


def test_a_stored_run_is_shown_and_judged_first(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show(Path("2"), results=results)
    whole = capsys.readouterr()
    verdict = Run.open(find_run(results, Path("2")).path).verdict()
    assert verdict is not None
    sentence = verdict.comparisons[0].curve.sentence
    assert whole.out.splitlines()[-1] == sentence
    assert "transactions/s" in whole.out
    show(Path("2"), results=results, quiet=True)
    assert capsys.readouterr().out == f"{sentence}\n"


def test_those_who_ask_whether_a_run_is_in_use_do_not_keep_others_from_it(tmp_path: Path) -> None:
    """A list, a view and a monitoring system ask every second."""
    run = make(tmp_path, Making(blocks=1))
    run.release()
    program = (
        "import sys; from pathlib import Path; from dbdyno.store import Run; "
        "from dbdyno.store.listing import is_running; run = Run.open(Path(sys.argv[1]))\n"
        "print(flush=True)\n"
        "while True: is_running(run)"
    )
    command = [sys.executable, "-c", program, str(run.path)]
    asking = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for process in asking:
            assert process.stdout is not None
            process.stdout.readline()
        # Without further attempts about one in 250 is refused.
        for _ in range(5000):
            run.lock()
            run.release()
    finally:
        for process in asking:
            process.kill()
            process.wait()
