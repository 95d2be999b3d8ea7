"""CSV: names and errors of another person's run are no formulas."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from tests.unit.stored_run import Making, make

from dbdyno import result_text
from dbdyno.exports import WRITERS
from dbdyno.report import tables
from dbdyno.verdict import judge


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('=HYPERLINK("http://x.example","a")', '\'=HYPERLINK("http://x.example","a")'),
        ("+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"),
        ("-2+3", "'-2+3"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t'=1"),
        ("\r=1", "'\r'=1"),
        ("\N{FULLWIDTH EQUALS SIGN}1+1", "'\N{FULLWIDTH EQUALS SIGN}1+1"),
        # A semicolon ends a cell where the comma is the decimal sign.
        ("a;=1+1", "a;'=1+1"),
        ("a=1", "a=1"),
        ("x-1@y", "x-1@y"),
        ("-1.5e-3", "-1.5e-3"),
        ("+7", "+7"),
        ("", ""),
        (-1.5, -1.5),
    ],
)
def test_a_cell_is_no_formula(text: object, shown: object) -> None:
    assert result_text.cell(text) == shown


def test_names_and_errors_are_no_formulas(tmp_path: Path) -> None:
    name, error = '=HYPERLINK("http://x.example";"b")', "=cmd|' /C calc'!A0"
    run = make(
        tmp_path,
        Making(blocks=6, names=("@a", name), failed=lambda one: "crashed" if one.block == 1 else None),
    )
    for path in run.path.glob("trials/*/trial.json"):
        path.write_text(path.read_text().replace('"crashed', f'"{error}'))
    judge(run)
    rows = list(csv.DictReader(io.StringIO(tables.as_csv(run))))
    assert {row["variant"] for row in rows} == {"'@a", f"'{name}"}
    assert any(row["failure"].startswith(f"'{error}") for row in rows)
    otava = [one for row in csv.reader(io.StringIO(WRITERS["otava"](run))) for one in row]
    cells = [one for row in rows for one in row.values()] + otava
    assert len(cells) > 100
    assert not [one for one in cells if re.match(r"[=+@\t\r]|-\D", one)]
