"""The comparison with sysbench on trial: two originals are alike, and a changed one is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.end_to_end.differential import ORIGINAL, Case, Database, Side, difference, original

CPU = Case("cpu", "sysbench cpu run --events=5 --histogram --percentile=99")
READ = "oltp_read_only {db} --tables=1 --table-size=100"
DATABASE_RUN = Case(
    "a run", f"sysbench {READ} --events=10 run", tables="oltp_read_only --tables=1 --table-size=100"
)
CREATED = Case(
    "prepare", f"sysbench {READ} prepare", sql=("SELECT 1",), asked=("SELECT COUNT(*) FROM sbtest.sbtest1",)
)

# What is done to an original's output on its way, in sed, and so what must be found.
CHANGES = [
    "s/^General statistics:/General statistic:/",
    "s/min: /min:/",
    r"s/\(total number of events: *\)5/\16/",
    r"s/\(th percentile: *\)\(.*\)/\1 \2/",
    r"s/\([0-9]\.[0-9][0-9]\)[0-9]*s$/\1s/",
    r"s/ |\*/ |/",
    "/Threads started/d",
    "$d",
    "s/$/ /",
]


def changed(folder: Path, change: str, exit_code: str = "$code") -> Side:
    """sysbench whose output goes through sed."""
    folder.mkdir(exist_ok=True)
    program = folder / "sysbench"
    program.write_text(
        f'#!/bin/sh\n{ORIGINAL} "$@" >output 2>errors; code=$?\n'
        f"sed '{change}' output; cat errors >&2; exit {exit_code}\n"
    )
    program.chmod(0o755)
    return Side("changed", folder)


@pytest.mark.parametrize(
    "case", [CPU, Case("version", "sysbench --version"), Case("bad", "sysbench bogus run")], ids=str
)
def test_an_original_is_like_another(tmp_path: Path, case: Case) -> None:
    for _ in range(3):
        assert not difference(case, original(tmp_path), changed(tmp_path / "same", ""))


@pytest.mark.parametrize("change", CHANGES)
def test_every_change_is_found(tmp_path: Path, change: str) -> None:
    assert difference(CPU, original(tmp_path), changed(tmp_path / "changed", change))


def test_another_exit_code_is_found(tmp_path: Path) -> None:
    found = difference(CPU, original(tmp_path), changed(tmp_path / "changed", "", "3"))
    assert "+exit code 3" in found


def test_words_on_the_other_stream_are_found(tmp_path: Path) -> None:
    case = Case("stderr", "sysbench cpu")
    side = changed(tmp_path / "changed", "")
    (side.folder / "sysbench").write_text(f'#!/bin/sh\n{ORIGINAL} "$@" 2>&1\n')
    assert "-err: The 'cpu' test requires" in difference(case, original(tmp_path), side)


def test_a_server_tells_what_a_side_left_behind(sbtest: Database, tmp_path: Path) -> None:
    theirs = original(sbtest.folder)
    assert not difference(DATABASE_RUN, theirs, changed(tmp_path / "same", ""), sbtest)
    assert not difference(CREATED, theirs, changed(tmp_path / "same", ""), sbtest)
    fewer = changed(tmp_path / "fewer", "")
    (fewer.folder / "sysbench").write_text(f'#!/bin/sh\n{ORIGINAL} "$@" --table-size=99 | sed s/99/100/\n')
    assert "answer: ((99,),)" in difference(CREATED, theirs, fewer, sbtest).replace("[", "(").replace(
        "]", ",)"
    )
