"""`dbdyno init`: the experiment files that it writes."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.stored_run import make

from dbdyno.commands.init import init
from dbdyno.experiment.model import Experiment, OltpWorkload
from dbdyno.experiment.reading import read
from dbdyno.problem import Problem
from dbdyno.store import files

SECRET = "very,secret"
# As sysbench is called in public scripts; the names are other ones.
SCRIPT = """#!/bin/bash
SYSBENCH_PATH=/usr/bin/sysbench
CONNECTION="--mysql-host=db1 --mysql-port=3307 --mysql-user=root --mysql-password=very,secret"
COUNTS="8 24 36"
tables=(4)
mysql -e "CREATE DATABASE sbtest"
$SYSBENCH_PATH oltp_read_only $CONNECTION --tables=4 --threads=4 prepare
# $SYSBENCH_PATH oltp_insert $CONNECTION --threads=99 run
for threads in $COUNTS; do
  for test in oltp_read_only /usr/share/sysbench/oltp_write_only.lua
  do
    $SYSBENCH_PATH $test $CONNECTION --tables=${tables[@]} --table_size=${SIZE:-100000} \\
      --threads=${threads} --time=60 --warmup-time=$WARM --report-interval=1 run | tee -a out.$threads.txt
  done
done
"""


def written(folder: Path, origin: str) -> Experiment:
    init(folder / "x.toml", origin, folder / "results")
    assert SECRET not in (folder / "x.toml").read_text()
    return read(folder / "x.toml")


def test_a_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = written(
        tmp_path,
        "sysbench --db-driver=pgsql --pgsql-host=db1 --pgsql-user=me --pgsql-password=very,secret "
        "--pgsql-db=shop oltp_read_write --tables=3 --table_size=1M --skip_trx=on --range-selects=off "
        "--threads=16 --time=30 "
        "--rate=200 --rand-type=pareto --rand-pareto-h=0.1 --db-ps-mode=disable --histogram run",
    )
    (workload,) = experiment.workloads
    assert isinstance(workload, OltpWorkload)
    assert (workload.name, workload.tables, workload.table_size) == ("oltp_read_write", 3, 1 << 20)
    assert (workload.skip_trx, workload.range_selects, workload.statements) == (True, False, "text")
    assert (workload.keys.distribution, workload.keys.h) == ("pareto", 0.1)
    assert [(point.connections, point.rate) for point in experiment.load.points()] == [(16, 200.0)]
    assert experiment.load.duration_s == 30.0
    assert [one.server.url for one in experiment.variants] == ["postgresql://me@db1:5432/shop"]
    printed = capsys.readouterr()
    text = (tmp_path / "x.toml").read_text()
    for output in (text, printed.err):
        assert "these options have no counterpart: --histogram" in output
        assert "DBDYNO_PASSWORD" in output
    assert SECRET not in printed.err + printed.out
    name = tmp_path / "x.toml"
    assert printed.out == f"{name} is written. Next: dbdyno check {name}, then dbdyno run {name}\n"


@pytest.mark.parametrize(
    ("line", "workload", "product"),
    [
        ("pgbench -c 8 -j 2 -T 20 bench", "tpcb", "postgresql"),
        ("PGHOST=db1 pgbench --select-only --client=8 --time=20 bench", "micro/point-query", "postgresql"),
        ("mysqlslap -c 8 --query='SELECT COUNT(*) FROM t' --create-schema=shop", "queries", "mysql"),
    ],
)
def test_a_command_line_of_another_program(tmp_path: Path, line: str, workload: str, product: str) -> None:
    experiment = written(tmp_path, line)
    assert [one.title for one in experiment.workloads] == [workload]
    assert [point.connections for point in experiment.load.points()] == [8]
    assert experiment.load.duration_s == (20.0 if product == "postgresql" else 30.0)
    assert experiment.variants[0].server.product == product


def test_a_script_with_loops(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sweep.sh").write_text(SCRIPT)
    experiment = written(tmp_path, str(tmp_path / "sweep.sh"))
    assert [one.title for one in experiment.workloads] == ["oltp_read_only", "oltp_write_only"]
    for workload in experiment.workloads:
        assert isinstance(workload, OltpWorkload)
        assert (workload.tables, workload.table_size) == (4, 100_000)
        assert workload.keys.distribution == "special", "the default of sysbench 1.0"
    assert [point.connections for point in experiment.load.points()] == [8, 24, 36]
    assert experiment.load.duration_s == 60.0
    assert [one.server.url for one in experiment.variants] == ["mysql://root@db1:3307/sbtest"]
    errors = capsys.readouterr().err
    assert "load.warmup: the value $WARM is not known here" in errors
    assert SECRET not in errors


@pytest.mark.parametrize(
    ("line", "connections", "seconds"),
    [
        (
            "sysbench --test=./lua-tests/db/oltp.lua --oltp-tables-count=2 --num-threads=4 --max-time=9 run",
            4,
            9,
        ),
        ("for each in 1 2 3; do sysbench oltp_read_write --threads=$each --time=5 run; done", 3, 5),
        ("sudo /opt/bin/sysbench oltp_insert --threads=7 $MORE --time=2 run > log 2>&1", 7, 2),
        ("A=1 sysbench oltp_delete --threads=6 --time=3 run && echo done", 6, 3),
        ('CMD="sysbench oltp_update_index --threads=5"\n$CMD --time=4 run', 5, 4),
        ("THREADS=9\nsysbench oltp_read_only --threads=$THREADS --time=6 prepare", 9, 6),
    ],
)
def test_further_scripts(tmp_path: Path, line: str, connections: int, seconds: float) -> None:
    (tmp_path / "one.sh").write_text(line)
    experiment = written(tmp_path, str(tmp_path / "one.sh"))
    assert max(point.connections for point in experiment.load.points()) == connections
    assert experiment.load.duration_s == seconds


def test_a_stored_run(tmp_path: Path) -> None:
    run = make(tmp_path).path
    before = '[experiment]\nname = "x"\n[[workload]]\nname = "oltp_read_only"\n'
    before += '[load]\nconnections = [2]\nduration = "1s"\n'
    before += '[[variant]]\nname = "a"\n[[variant]]\nname = "b"\n'
    files.write(run / "experiment.toml", before.encode())
    init(tmp_path / "again.toml", str(run), tmp_path)
    assert (tmp_path / "again.toml").read_text() == before


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        ("sysbench cpu --threads=2 run", "calls sysbench with cpu, but with no workload of a database"),
        ("sysbench run", "calls sysbench with no test"),
        ("nothing", "there is no run nothing below"),
        (None, "dbdyno init asks questions, and there is no terminal"),
    ],
)
def test_what_cannot_be_translated_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, origin: str | None, message: str
) -> None:
    monkeypatch.setattr("sys.stdin", (tmp_path / "empty").open("w+"))
    with pytest.raises(Problem) as caught:
        init(tmp_path / "x.toml", origin, tmp_path)
    assert message in caught.value.text
    assert not (tmp_path / "x.toml").exists()


def test_an_invalid_value_is_named_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(Problem) as caught:
        init(tmp_path / "x.toml", "sysbench oltp_read_only --tables=0 --threads=2 run", tmp_path)
    assert "tables" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_never_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "x.toml"
    file.write_text("mine")
    with pytest.raises(Problem) as caught:
        init(file, "sysbench oltp_read_only run", tmp_path)
    assert "exists already" in caught.value.text
    assert file.read_text() == "mine"


def test_five_questions(tmp_path: Path) -> None:
    """On a terminal; settings alone are those of the same server."""
    controller, terminal = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "dbdyno", "init"],
        cwd=tmp_path,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.write(controller, b"postgresql\nsynchronous_commit=off\noltp_write_only\n8\n\n")
        assert process.wait(60) == 0
    os.close(terminal)
    os.close(controller)
    experiment = read(tmp_path / "experiment.toml")
    assert [one.server.product for one in experiment.variants] == ["postgresql", "postgresql"]
    assert experiment.variants[1].server.variables == {"synchronous_commit": "off"}
    assert [one.title for one in experiment.workloads] == ["oltp_write_only"]
    assert [point.connections for point in experiment.load.points()] == [8]
    assert experiment.load.duration_s == 10.0
