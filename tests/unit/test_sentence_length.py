"""The length of verdict sentences and of their caveats, at 80 columns."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from tests.unit import sentences

from dbdyno.finding import codes
from dbdyno.rules.register import CAVEATS
from dbdyno.terminal.console import print_text

WIDTH = 80
# Lines of a verdict: who, direction, size, interval and scope.
LINES = 3


def lines_of(text: str, indent: int = 0) -> list[str]:
    """The text as a terminal shows it."""
    console = Console(file=io.StringIO(), width=WIDTH, force_terminal=True, color_system=None)
    print_text(console, text, indent=indent)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


GOLDEN = {
    f"{module}: {name}, {number}": sentence
    for module, table in sentences.read().items()
    for name, listed in table.items()
    for number, sentence in enumerate(listed, 1)
}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_sentence_has_three_lines_of_80_columns(name: str) -> None:
    statement, _, _ = GOLDEN[name].partition(" Caveat")
    assert len(lines_of(statement)) <= LINES, statement


SHORT_FORMS = {
    f"{code} {key}": text
    for code, caveat in {**codes(), **CAVEATS}.items()
    for key, text in (caveat.items() if isinstance(caveat, dict) else [("", caveat)])
    if isinstance(text, str) and text
} | {name: entry for name, entry in GOLDEN.items() if ": caveat " in name}


@pytest.mark.parametrize("name", SHORT_FORMS)
def test_a_caveat_is_one_line(name: str) -> None:
    code = "" if SHORT_FORMS[name].endswith(")") else " (D01)"
    assert len(lines_of(f"  Caveat: {SHORT_FORMS[name]}{code}.", indent=2)) == 1, SHORT_FORMS[name]
