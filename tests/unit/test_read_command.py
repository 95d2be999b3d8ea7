"""`dbdyno read`: what it prints, its exit codes, and the experiments that it writes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import get_args

import pytest
import typer
from tests.unit.reading import CASE_STUDIES, DOCUMENTS, summary
from tests.unit.stored_run import Making, make

from dbdyno.commands.options import RESULTS
from dbdyno.commands.read import ReadFormat
from dbdyno.commands.read import read as read_documents
from dbdyno.experiment.reading import read
from dbdyno.generate import with_table
from dbdyno.problem import Problem
from dbdyno.redaction import redact

PAGE = Path(__file__).parents[2] / "docs/reading.md"
POOL = CASE_STUDIES / "thread-pool-one-cpu.txt"


@dataclass
class Answer:
    returncode: int
    stdout: str
    stderr: str


def run(
    *paths: str | Path,
    output: ReadFormat = "text",
    to_experiment: Path | None = None,
    results: Path | None = None,
    language: str = "en",
) -> Answer:
    """The command in this process."""
    out, err, code = StringIO(), StringIO(), 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            read_documents(
                [Path(path) for path in paths],
                to_experiment,
                results is not None,
                results or RESULTS,
                language,
                output,
            )
        except typer.Exit as end:
            code = end.exit_code
    return Answer(code, out.getvalue(), err.getvalue())


def dbdyno(*arguments: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dbdyno", *map(str, arguments)],
        input=given,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tables_the_verdict_and_the_mistakes() -> None:
    answer = run(POOL)
    assert answer.returncode == 4, answer.stderr
    lines = answer.stdout.splitlines()
    assert lines[1] == "thread_handling = pool-of-threads (oltp_read_write)"
    assert lines[3].split()[:3] == ["10", "188.17", "3763.39"]
    assert any(line.startswith("Exploratory") and "-11.0 %, -8.6 %, -7.3 %" in line for line in lines)
    assert any(line.startswith("Q02 stop lines 1, ") for line in lines)


def test_json_has_every_number_with_its_line() -> None:
    answer = run(POOL, output="json")
    document = json.loads(answer.stdout)
    texts = POOL.read_text().split("\n")
    assert len(document["variants"]) == 2
    for variant in document["variants"]:
        for result in variant["results"]:
            for name in ("tps", "mean_ms", "p95_ms"):
                figure = result["figures"][name]
                assert f"{figure['value']:.2f}" in texts[figure["line"] - 1].replace("\xa0", " ")
    changes = {one["figure"]: one["change_percent"] for one in document["changes"]}
    assert changes["tps"] == pytest.approx([-10.95, -8.61, -7.31], abs=0.01)
    assert {"Q02", "P01", "R03"} <= {one["code"] for one in document["findings"]}


def test_markdown_and_korean() -> None:
    answer = run(POOL, output="md", language="ko")
    assert "| 10 | 188.17 |" in answer.stdout
    assert "이 문장은 수치와 모순됨" in answer.stdout


def test_several_files_are_a_list() -> None:
    answer = run(POOL, CASE_STUDIES / "thread-pool-8.4.md", output="json")
    assert [Path(one["file"]).name for one in json.loads(answer.stdout)] == [
        "thread-pool-one-cpu.txt",
        "thread-pool-8.4.md",
    ]


def test_standard_input_and_the_exit_codes() -> None:
    answer = dbdyno("read", "-", given=summary(8, 1000))
    assert answer.returncode == 0, answer.stderr
    assert "1000" in answer.stdout
    assert dbdyno("read", POOL).returncode == 4
    missing = dbdyno("read", "missing.txt")
    assert missing.returncode == 2
    assert missing.stderr.count("\n") <= 2
    assert "missing.txt: No such file or directory" in missing.stderr


@pytest.mark.parametrize("path", sorted(CASE_STUDIES.glob("*-*.*")), ids=lambda path: path.name)
def test_the_equivalent_experiment_is_valid(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "same.toml"
    answer = run(path, to_experiment=file)
    assert f"{file} is written" in answer.stderr
    experiment = read(file)
    connections = [point.connections for point in experiment.load.points()]
    assert (
        connections
        == {
            "thread-pool-8.4.md": [64, 100, 200, 300, 500],
            "thread-pool-one-cpu.txt": [10, 20, 40],
            "network-architecture.md": [2, 3000],
            "aurora-instances.md": [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024],
            "buffer-pool-instances.txt": [1, 10],
        }[path.name]
    )
    variables = [dict(one.server.variables) for one in experiment.variants]
    if path == POOL:
        assert variables == [
            {"thread_handling": "pool-of-threads"},
            {"thread_handling": "one-thread-per-connection"},
        ]
    if path.name == "buffer-pool-instances.txt":
        assert [one["innodb_buffer_pool_instances"] for one in variables] == ["1", "8"]
    with pytest.raises(Problem, match="exists already"):
        run(path, to_experiment=file)


def test_no_password_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "a.sh"
    file.write_text(
        "sysbench oltp_read_only --mysql-host=h --mysql-password=hunter2 --threads=9 --time=9 run\n"
    )
    for output in get_args(ReadFormat):
        answer = run(file, output=output, to_experiment=tmp_path / f"{output}.toml")
        assert "hunter2" not in answer.stdout + answer.stderr + (tmp_path / f"{output}.toml").read_text()


def test_the_page_has_the_output_and_the_table_of_today(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/reading.md shows a script and what the command prints of it."""
    page = PAGE.read_text()
    script, printed = (match[1] for match in re.finditer(r"```(?:bash|text)\n(.*?)```", page, re.DOTALL))
    (tmp_path / "sweep.sh").write_text(script)
    monkeypatch.chdir(tmp_path)
    assert run("sweep.sh").stdout == printed
    assert with_table(page) == page


def test_a_stored_document_is_listed_shown_and_compared(tmp_path: Path) -> None:
    results = ("--results", tmp_path)
    answer = run(POOL, results=tmp_path)
    (folder,) = (tmp_path / "thread-pool-one-cpu").iterdir()
    assert f"stored in {folder}" in answer.stderr
    assert (folder / "document").read_text() == redact(POOL.read_text())
    assert "--mysql-password=test" not in (folder / "document").read_text()
    own = make(tmp_path, Making(names=("pool", "plain")))
    own.release()
    listed = json.loads(dbdyno("list", *results, "--format", "json").stdout)
    assert [(one["number"], one["state"]) for one in listed] == [(2, "not-judged"), (1, "document")]
    assert listed[1]["text"].startswith("Exploratory")
    shown = dbdyno("show", "1", *results)
    assert shown.stdout.splitlines()[1:] == answer.stdout.splitlines()[1:]
    assert "수치와 모순됨" in dbdyno("show", "1", "--lang", "ko", *results).stdout
    # The newest run is no document.
    assert "pool" in dbdyno("show", *results).stdout
    compared = dbdyno("diff", "1", own.path, *results)
    assert "  10 connections: transactions/s 188.17, then 900 (900 to 900 in 8 results): +378.3 %" in (
        compared.stdout.splitlines()
    )
    assert compared.stdout.splitlines()[-1].startswith("Cannot tell whether they differ")
    same = json.loads(dbdyno("diff", "1", "1", *results, "--format", "json").stdout)
    assert {row["change_percent"] for pair in same for row in pair["rows"]} >= {0.0}
    other = make(tmp_path, Making(connections=(7,)))
    other.release()
    elsewhere = dbdyno("diff", "1", other.path, *results)
    assert elsewhere.returncode == 4
    assert "no number of connections and no figure in common" in elsewhere.stderr


def test_documents_without_calls_have_no_experiment(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="calls no benchmark program that dbdyno knows"):
        run(DOCUMENTS / "en-hammerdb-postgres-sixruns.txt", to_experiment=tmp_path / "x.toml")
    assert list(tmp_path.iterdir()) == []


SWEEP = """#!/bin/bash
for threads in 2 16; do
  for repetition in 1 2 3 4; do
    sysbench oltp_update_index --mysql-host=db9 --threads=$threads --time=90 run > out-$threads-$repetition
  done
done
"""


@pytest.mark.parametrize(
    ("script", "lines"),
    [
        (SWEEP, ["sysbench oltp_update_index run, 2, 16 connections, 90 s, 4 times each (line 4)"]),
        ("sysbench oltp_read_only --threads=1 run\n", ["sysbench oltp_read_only run, 1 connection (line 1)"]),
        (
            "pgbench -h db9 -S -c 12 -T 45 bench\npgbench -h db9 -S -c 12 -T 45 bench | tail -1\n",
            ["pgbench select-only run, 12 connections, 45 s, 2 times each (lines 1, 2)"],
        ),
        (
            "mysqlslap -h db9 --concurrency=4,32 --iterations=7 --auto-generate-sql\n",
            ["mysqlslap run, 4, 32 connections, 7 times each (line 1)"],
        ),
        (
            "sysbench --threads=$THREADS oltp_delete run\n",
            ["sysbench oltp_delete run, connections that are not known (line 1)"],
        ),
    ],
)
def test_a_script_without_results_shows_its_calls(script: str, lines: list[str], tmp_path: Path) -> None:
    file = tmp_path / "sweep.sh"
    file.write_text(script)
    answer = run(file)
    assert answer.returncode == 0
    assert answer.stdout.splitlines()[1 : 1 + len(lines)] == lines
    assert "No result was found. The document has" in answer.stdout
    calls = json.loads(run(file, output="json").stdout)["calls"]
    assert [one["sentence"] for one in calls] == [line.rpartition(" (")[0] for line in lines]
    assert lines[0].partition(",")[0] in run(file, output="md").stdout.replace("\\", "")


def test_settings_without_results_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "my.cnf"
    file.write_text("[mysqld]\ninnodb_buffer_pool_size = 2G\nsync_binlog = 1\n")
    assert "No result was found. The document has 2 settings." in run(file).stdout


def test_calls_beside_results_are_not_listed() -> None:
    assert "oltp_read_write run, " not in run(POOL).stdout
    assert json.loads(run(POOL, output="json").stdout)["calls"]
