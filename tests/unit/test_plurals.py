"""Counted texts say "1 block", not "1 blocks"."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

LAB = Path(__file__).parents[2] / "lab" / "dbdyno"
# What the lab counts.
NOUNS = (
    "blocks|boxes|characters|clients|columns|connections|cores|CPUs|deadlocks|engines|errors|event loops|"
    "factors|files|findings|groups|hosts|indexes|interactions|levels|lines|loads|minutes|hours|days|notes|"
    "parts|points|processes|queries|results|rows|runs|samples|seconds|sentences|servers|sessions|settings|"
    "setup statements|slices|statements|steps|tables|tests|threads|transactions|trials|values|variants|"
    "verdict sentences|verdicts|versions|warnings|workers|workloads"
)
# A number of 1 before a plural. After "of" a plural is right ("1 of 1 trials"); a limit is never 1.
_BEFORE = "(?<!of )(?<!of the )(?<!at most )(?<!first )(?<!than )"
WRONG = re.compile(rf"{_BEFORE}\b1 (?:older |more )?(?:{NOUNS})\b(?!/s)")
# The beginnings of texts whose number is never 1, by the reason.
NEVER_ONE = {
    "a verdict, a test and an interval need more": (
        "--max-blocks 1: no step can be decided before 1 blocks",
        "1 blocks of 1 differ by",
        "1 blocks or more",
        "the test for drift needs 1 blocks",
        "1 seconds; at least",
        "--blocks +1: the run would have 1 blocks",
    ),
    "one of them is no reason for the text": (
        "1 differs from 1 in 1 settings",
        "1 has 1 variants (1), but",
        "1 levels make 1 variants",
        "1 variants cannot be started",
        "The chance that any of these 1 verdicts",
        "gate: 1 against 1 over 1 tests",
        "in 1 blocks in succession",
        "it selects 1 workloads",
        "the file has 1 variants",
        "1 against 1 over 1 tests",
        "1 % at which load? 1 loads",
        "1 % to 1 % at 1 loads",
        "1 at 1 connections",
        "1 loads from 1 to 1",
        "1 event loops (1 engines)",
        "1 and 1 blocks",
        "1 steps between",
        "the same picture is shown as 1 results",
        "prepare with 1 threads",
        "throughput still rises",
        "nothing shows the CPU of the load generator",
        "1 (1 to 1 in 1 results)",
        "1 errors",
        "1 statements",
        "1 minutes",
        "1 hours",
        "1 connections",
        "1 connections need",
        "1 servers named",
        "there are 1 more notes",
        "1; within 2 % of it 1 connections",
    ),
    "one of so many, or a limit": (
        "1 characters",
        "it has 1 characters",
        "the statement has 1 characters",
        "the line has 1 characters",
        "1 has 1 queries with 1 characters",
        "1 engines with at most",
        "loading 1 rows",
        "1 (1 rows)",
        "1 rows on",
        "1 rows generated in",
        "the statements make 1 rows",
        "the run names 1 rows",
        "1 made the server examine 1 rows",
        "the intervals of 1 contain 1 errors",
        "the slices contain 1 transactions",
        "1 has 1 latencies for 1 transactions",
        "1 transactions were scheduled",
        "1 statements for 1 transactions",
        "1 errors in 1 transactions",
    ),
    "a mean, a rate or a word": (
        "reads 1 rows",
        "opens 1 tables",
        "scans 1 tables",
        "sorts 1 rows",
        "creates 1 threads",
        "has 1 deadlocks",
        "1, 1 statements",
        "1 transactions/s of 1 ms keep",
        "background load 1 with",
        "1 transactions/s, p95",
        "1 transactions, 1",
        "1 of a trial at 1 transactions/s depends on 1 transactions",
        "1 transactions/s over 1 s are 1 transactions",
        "1 runs version 1",
        "1 loads no tables",
        # The docstring of the function.
        "A text whose pattern depends on a number",
    ),
}
EXEMPT = [beginning for beginnings in NEVER_ONE.values() for beginning in beginnings]


def is_exempt(text: str) -> bool:
    """Whether its number is never 1. An entry of one noun is a whole text."""
    return any(text == entry or (len(entry.split()) > 2 and text.startswith(entry)) for entry in EXEMPT)


def texts_with_one(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the text of each pattern and f-string, with 1 for every value that may be a number."""
    singles = {
        id(node.args[2])
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "compose_count"
        and len(node.args) > 2
    }
    # "1 block" if number == 1 else f"{number} blocks"
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and re.search(r"\b1\b", ast.unparse(node.test)):
            singles |= {id(child) for branch in (node.body, node.orelse) for child in ast.walk(branch)}
    for node in ast.walk(tree):
        if id(node) in singles:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "1" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "{" in node.value:
            yield node.lineno, re.sub(r"\{[^{}]*\}", "1", node.value)


@pytest.mark.parametrize("path", sorted(LAB.rglob("*.py")), ids=lambda path: str(path.relative_to(LAB)))
def test_a_text_with_one_has_the_singular(path: Path) -> None:
    texts = texts_with_one(ast.parse(path.read_text()))
    wrong = [
        f"{path.name}:{line}: {text}" for line, text in texts if WRONG.search(text) and not is_exempt(text)
    ]
    assert not wrong, "\n".join(wrong)
