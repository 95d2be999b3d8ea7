"""Whether the commands of a document run as they are written, safely, and more than once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dbdyno.reading.call import Call
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.document import Document
from dbdyno.reading.limits import LINE_MAX, linear
from dbdyno.redaction import REDACTED
from dbdyno.text import compose

_PASSWORDS = ("mysql-password", "pgsql-password", "password")
# Reading has replaced each password by an ellipsis.
_COMMAND = re.compile(
    rf"(?<!\S)-[\w-]{{1,60}}+[= ]?[\"'`]?{REDACTED}|(?:PASSWORD|PWD|PASS)=[\"'`]?{REDACTED}|://[^\s/@]{{0,100}}+{REDACTED}@"
)
_OPEN = linear(r"(?:cidr|source-ranges|cidr_blocks)\W+0\.0\.0\.0/0")


@check("P20")
def secrets(document: Document, calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks for passwords in commands, and for addresses of everybody.

    Every user of a machine can read the arguments of its processes.

    Rule: passwords do not belong on command lines, nor databases on the open internet.
    """
    indexes = [
        call.first for call in calls if any(REDACTED in call.options.get(name, "") for name in _PASSWORDS)
    ]
    indexes += [index for index, text in document.lines() if REDACTED in text and _COMMAND.search(text)]
    if indexes:
        yield Mistake(
            "note",
            compose("a password is on a command line"),
            indexes,
            fix=compose("Use an option file, a file of secrets or the environment"),
        )
    opened = [index for index, text in document.lines() if _OPEN.search(text)]
    if opened:
        yield Mistake("note", compose("the server is open to every address of the internet"), opened)


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


@check("P21")
def spelling(document: Document, calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks at each call as it is written.

    Rule: commands that do not run as they stand, and options without effect.
    """
    seen: set[tuple[str, ...]] = set()
    line = -1
    for call in calls:
        misspelled = () if call.first == line else _spelling(document, call)
        line = call.first
        for text in (*_placeholders(call), *_useless(call), *_other_driver(call), *misspelled):
            key = (call.phase, str(text))
            if key not in seen:
                seen.add(key)
                yield Mistake("note", text, range(call.first, call.first + 1))


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
    foreign_prefix = "mysql-" if call.driver == "pgsql" else "pgsql-"
    names = [f"--{name}" for name in call.options if name.startswith(foreign_prefix)]
    if names:
        yield compose("{names} is an option of the other driver, and has no effect", names=", ".join(names))


def _spelling(document: Document, call: Call) -> Iterator[str]:
    # One line, unless the command is wrapped; the passes of a loop share it.
    lines = " ".join(document.texts[call.first : call.last + 1])[:LINE_MAX]
    if match := _DASH.search(lines):
        yield compose("{option} begins with a dash of prose, so it is no option", option=match[0])
    if _TWICE.search(lines):
        yield compose("the command {phase} stands twice", phase=call.phase)
    if match := _NO_TEST.search(lines):
        yield compose(
            "{placeholder} is no test, so the command of the results is not known", placeholder=match[1]
        )


_APPENDED = linear(r"(?:\btee\s++(?:-a|--append)\s++|(?<!<)>>\s*+)([\"']?[\w./${}\-]+)")
_REMOVED = linear(
    r"\brm\s++(?:-\w++\s++){0,9}([^;|&#\n]{1,1000}+)|(?<![>\d&=-])>\s*+(\"?[\w./${}\-]+)|"
    r"\btee\s++(?!-)(\"?[\w./${}\-]+)|\btruncate\s.{0,40}?-s\s*+0\s++(\S+)"
)
_MAY_REMOVE = re.compile(r">|\brm\b|\btee\b|truncate")
# A variable whose value is another one in each execution.
_UNIQUE = linear(r"(?<!\w)(\w++)=.{0,200}?(?:\bdate\b|mktemp|\$\$|uuid|RANDOM|BUILD_)")
_VARIABLE = re.compile(r"\$\{?(\w{1,64})")


@check("R11")
def shared_files(document: Document, calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks for files to which the runs of a script are appended and which it does not empty before.

    Catches results of an earlier execution among those of this one. A published script appends to result_64
    and reads the whole file, so a second execution reads the first one's numbers again.

    Rule: results of different runs must not share a file.
    """
    if not any(call.phase == "run" for call in calls):
        return
    appended: dict[str, int] = {}
    removed: set[str] = set()
    unique: set[str] = set()
    for index, text in document.lines():
        if ">>" in text or "tee" in text:
            for match in _APPENDED.finditer(text):
                appended.setdefault(match[1].strip("\"'"), index)
        for match in _REMOVED.finditer(text) if _MAY_REMOVE.search(text) else ():
            removed.update(next(group for group in match.groups() if group).replace('"', "").split())
        if "=" in text and (value := _UNIQUE.search(text)):
            unique.add(value[1])
    for name, index in appended.items():
        is_new = any(entry in unique for entry in _VARIABLE.findall(name))
        if name not in removed and not is_new and not name.startswith(("/dev/", "$(", "/proc", "/etc")):
            yield Mistake(
                "warn",
                compose(
                    "{name} is appended to and never emptied, so a second execution mixes its results with "
                    "the first",
                    name=name,
                ),
                [index],
                fix=compose("Write each execution into a folder of its own"),
            )
