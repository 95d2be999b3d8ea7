"""Every regular expression of `dbdyno.reading` takes a time in proportion to its text."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dbdyno.reading
from dbdyno import redaction
from dbdyno.reading.limits import RUN_MAX, decimal, linear, whole

FOLDER = Path(dbdyno.reading.__file__).parent
# Each class of character, and mixtures of which patterns repeat parts.
UNITS = (
    *(" ", "\t", "\n", "7", "a", "Z", "_", "가", "\u00a0", *"!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~"),
    *(
        "1 ",
        "a ",
        "a=",
        "| ",
        "<td>",
        "1.",
        "--",
        "1,",
        "a-",
        "- ",
        "**",
        "$(",
        "{1",
        "x=1 ",
        "--a=",
        " a=",
        "(a",
    ),
    *(
        "a(",
        "&#1",
        "x@",
        "a:b@",
        "://",
        "1 threads ",
        "threads ",
        "for a in ",
        "mysql ",
        "mysql -p ",
        "CPU ",
        "1461",
    ),
    *(
        "password ",
        "password=",
        "password='a",
        "identified by ",
        "min lat",
        "avglat",
        "a.b",
        "db.r5.",
        "![a",
        "(1",
    ),
    *(
        "number of ",
        "transactions: ",
        "rm -a ",
        "count(*) ",
        "innodb_",
        "${a:-",
        "$a",
        '"\\',
        "\\'",
        "run run ",
    ),
)
SHORT, LONG = 2_000, 20_000
# Ten times the text may take this much longer: a quadratic pattern takes a hundred times as long.
GROWTH_MAX = 35
# A text of SHORT characters for which a pattern needs less than this takes no time out of proportion.
CLEAR_S = 0.01


def patterns() -> dict[str, re.Pattern[Any]]:
    """The compiled patterns of all modules, by their names."""
    names = [one.name for one in pkgutil.walk_packages([str(FOLDER)], "dbdyno.reading.")]
    found: dict[int, tuple[str, re.Pattern[Any]]] = {}
    for module in (*map(importlib.import_module, names), redaction):
        for name, value in vars(module).items():
            for path, one in _within(f"{module.__name__}.{name}", value):
                found.setdefault(id(one), (path, one))
    return dict(found.values())


def _within(path: str, value: object) -> Iterator[tuple[str, re.Pattern[Any]]]:
    if isinstance(value, re.Pattern):
        yield path, value
    elif isinstance(value, tuple | list):
        for number, one in enumerate(value):
            yield from _within(f"{path}[{number}]", one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _within(f"{path}[{key}]", one)


def seconds(pattern: re.Pattern[Any], text: str) -> float:
    """The CPU time of all ways in which patterns are used."""
    given: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    began = time.process_time()
    pattern.match(given)
    pattern.fullmatch(given)
    pattern.search(given)
    for _ in pattern.finditer(given):
        pass
    return time.process_time() - began


def slow_texts(pattern: re.Pattern[Any]) -> list[str]:
    """The units whose repetition takes a time out of proportion to its length."""
    slow = []
    for unit in UNITS:
        short, long = ((unit * size)[:size] for size in (SHORT, LONG))
        # Another process may have taken the caches: the shortest of several times counts.
        if (
            seconds(pattern, short) < CLEAR_S
            or (base := min(seconds(pattern, short) for _ in range(3))) < CLEAR_S
        ):
            continue
        if min(seconds(pattern, long) for _ in range(2)) > GROWTH_MAX * base:
            slow.append(unit)
            break
    return slow


ALL = patterns()


def test_all_patterns_are_found() -> None:
    assert len(ALL) > 150
    assert "dbdyno.reading.claim._END" in ALL
    assert "dbdyno.reading.formats.sysbench._LINES[0][1]" in ALL


def test_no_pattern_needs_a_time_out_of_proportion() -> None:
    assert not {name: found for name, pattern in ALL.items() if (found := slow_texts(pattern))}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(ALL))
def test_a_pattern_reads_100_kb_of_each_class(name: str) -> None:
    size = 100_000
    assert not {unit: took for unit in UNITS if (took := seconds(ALL[name], (unit * size)[:size])) > 3}


@pytest.mark.long
@pytest.mark.parametrize("text", [r"\s*x", r"\d+ threads"])
def test_the_measure_finds_quadratic_patterns(text: str) -> None:
    assert slow_texts(re.compile(text))


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_no_pattern_is_hidden_in_a_function(path: Path) -> None:
    tree = ast.parse(path.read_text())
    inside = [
        call.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for call in ast.walk(function)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "re"
    ]
    # `linear` itself compiles what it is given.
    assert not inside or path.name == "limits.py"


def test_repetitions_get_a_limit() -> None:
    assert linear(r"a*b+?[*+]\*(?:c+)?d++").pattern == (
        rf"a{{0,{RUN_MAX}}}b{{1,{RUN_MAX}}}?[*+]\*(?:c{{1,{RUN_MAX}}})?d{{1,{RUN_MAX}}}+"
    )


def test_numbers_that_no_benchmark_measures_are_none() -> None:
    assert (whole("1,000"), whole("9" * 5_000), whole("1.5"), whole("")) == (1000, None, None, None)
    assert (decimal("1,234.5"), decimal("0"), decimal("-2")) == (1234.5, 0.0, -2.0)
    assert not any(
        decimal(text) for text in ("nan", "inf", "1e999999", "1e-300", "9" * 5_000, "1.2.3", "...", "")
    )
