"""P21: commands that do not run as they stand, and options without effect."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dbdyno.finding import Finding
from dbdyno.reading.call import Call
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.limits import LINE_MAX
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

# A number's place with something that is no number: "{2~3000}", "<threads>", "xxx", "스레드수".
_NUMBERS = (
    "threads",
    "num-threads",
    "table-size",
    "tables",
    "time",
    "events",
    "oltp-table-size",
    "client",
    "concurrency",
)
# What begins a variable, also of a template.
_VARIABLES = ("$", "{{", "{%", "<%", "%(")
_NUMBER = re.compile(r"[\d.,]{1,40}+[KMGkmg]?s?")
_DASH = re.compile(r"[–—][a-z][\w-]{0,60}+=?")
_TWICE = re.compile(r"\b(prepare|run|cleanup)\s{1,60}+\1\b")
_NO_TEST = re.compile(r"sysbench (<[\w -]{1,100}+>)")
# Options of sysbench that its prepare reads and does not use.
_WITHOUT_EFFECT = ("time", "max-time", "report-interval", "events", "rate", "percentile", "histogram")


def find(reading: Reading) -> Iterator[Finding]:
    """Looks at each call as it is written."""
    seen: set[tuple[str, ...]] = set()
    line = -1
    for call in reading.calls:
        spelling = () if call.first == line else _spelling(reading, call)
        line = call.first
        for text in (*_placeholders(call), *_useless(call), *_other_driver(call), *spelling):
            key = (call.phase, str(text))
            if key not in seen:
                seen.add(key)
                yield finding(reading, "P21", "note", text, range(call.first, call.first + 1))


def _placeholders(call: Call) -> Iterator[str]:
    for name in _NUMBERS:
        value = call.options.get(name)
        if value and not _NUMBER.fullmatch(value) and not value.startswith(_VARIABLES):
            yield compose(
                "--{name}={value} is no number, so the command of the results is not known",
                name=name,
                value=value,
            )


def _useless(call: Call) -> Iterator[str]:
    if call.tool == "sysbench" and call.phase in ("prepare", "cleanup"):
        names = [f"--{name}" for name in _WITHOUT_EFFECT if name in call.options]
        if names:
            yield compose("{names} has no effect in {phase}", names=", ".join(names), phase=call.phase)
    tables, threads = call.number("tables"), call.number("threads")
    if call.phase == "prepare" and tables and threads and threads > tables:
        yield compose(
            "prepare with {threads} threads: no more than {tables} work, one per table",
            threads=threads,
            tables=tables,
        )


def _other_driver(call: Call) -> Iterator[str]:
    other = "mysql-" if call.driver == "pgsql" else "pgsql-"
    names = [f"--{name}" for name in call.options if name.startswith(other)]
    if names:
        yield compose("{names} is an option of the other driver, and has no effect", names=", ".join(names))


def _spelling(reading: Reading, call: Call) -> Iterator[str]:
    # One line, unless the command is wrapped; the passes of a loop share it.
    lines = " ".join(reading.document.texts[call.first : call.last + 1])[:LINE_MAX]
    if match := _DASH.search(lines):
        yield compose("{option} begins with a dash of prose, so it is no option", option=match[0])
    if _TWICE.search(lines):
        yield compose("the command {phase} stands twice", phase=call.phase)
    if match := _NO_TEST.search(lines):
        yield compose(
            "{placeholder} is no test, so the command of the results is not known", placeholder=match[1]
        )


CHECK = DocumentCheck("P21", find)
