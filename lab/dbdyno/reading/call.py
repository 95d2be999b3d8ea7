"""The calls of benchmark programs in a document, each and in groups: which program runs which test, at which
loads, how long, how often.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from dbdyno.reading.document import Document
from dbdyno.reading.limits import LISTED_MAX, LOADS_MAX, linear, whole
from dbdyno.reading.shell import Command, commands, until_end
from dbdyno.text import Text, compose, compose_count, join, join_some

# Programs, and what their names may follow in a line.
_PROGRAMS = linear(
    r"(?:^|[\s/\"'`$(;&|=])(?:sysbench|pgbench|mysqlslap|mariadb-slap)(?:\s|$|[\"'],|[\"']\]|/\S*\s+--)|--(?:mysql|pgsql)-(?:host|socket|user)="
)
_PROGRAM = linear(r"(?<![\w./-])(?:[\w./-]{0,200}/)?(?:sysbench|pgbench|mysqlslap|mariadb-slap)(?=\s)")
PROGRAMS = ("sysbench", "pgbench", "mysqlslap", "mariadb-slap")
# What separates commands, and what runs the text that it reads.
_SEPARATORS = ("&&", "||", "|", "do", "then", "else", "{", "(")
_SHELL = frozenset(("bash", "sh", "ssh", "xargs", "eval"))
# What options of sysbench for a server begin with.
_DRIVER_OPTIONS = ("--mysql-", "--pgsql-")
# Options of the number of connections.
CONNECTIONS = ("threads", "num-threads", "client", "concurrency")
_PHASES = ("prepare", "run", "cleanup", "prewarm", "warmup")
# Options of pgbench and mysqlslap that have a value in the next word, with their long names.
_SHORT = {
    "pgbench": {
        "c": "client",
        "j": "jobs",
        "T": "time",
        "t": "transactions",
        "s": "scale",
        "h": "host",
        "p": "port",
        "U": "username",
        "d": "dbname",
        "f": "file",
        "b": "builtin",
        "M": "protocol",
        "R": "rate",
        "P": "progress",
        "F": "fillfactor",
        "D": "define",
        "L": "latency-limit",
    },
    "mysqlslap": {
        "h": "host",
        "P": "port",
        "u": "user",
        "S": "socket",
        "q": "query",
        "c": "concurrency",
        "i": "iterations",
    },
}
_FLAGS = {
    "pgbench": {
        "i": "initialize",
        "S": "select-only",
        "N": "skip-some-updates",
        "n": "no-vacuum",
        "r": "report-latencies",
        "C": "connect",
    }
}
# Pages print two hyphens as a dash.
_DASH = re.compile(r"^[–—](?=[a-z])")
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30}


@dataclass(frozen=True)
class Call:
    """One call of a benchmark program."""

    tool: str
    # prepare, run or cleanup; of pgbench and mysqlslap too, although they have no such words.
    phase: str
    # The test or script; "" if the call does not name one.
    test: str
    # Values by long name with hyphens; "" for an option without a value.
    options: Mapping[str, str]
    first: int
    last: int
    # The test as the call writes it, with its path.
    path: str = ""
    # Words with variables whose values are not known.
    unknown: tuple[str, ...] = ()
    # Whether a branch of the script decides with which options it runs.
    is_alternative: bool = False
    # How often it comes in a row: passes of loops.
    passes: int = field(default=1, compare=False)

    def number(self, *names: str) -> int | None:
        """The value of the first of these options that the call has, if it is a whole number."""
        for name in names:
            if (text := self.options.get(name)) is not None:
                return whole_number(text)
        return None

    @property
    def driver(self) -> str:
        """The driver of a call of sysbench: mysql or pgsql."""
        default = "pgsql" if "pgsql-host" in self.options and "mysql-host" not in self.options else "mysql"
        return self.options.get("db-driver", default)

    @property
    def connections(self) -> int | None:
        """The number of connections that the call asks for."""
        return self.number(*CONNECTIONS)


def whole_number(text: str) -> int | None:
    """A whole number, also with a unit of sysbench (K, M, G); None for any other text."""
    digits = text.rstrip("KMG")
    number = whole(digits) if "," not in digits and len(text) - len(digits) < 2 else None
    return None if number is None else number << _SHIFTS[text[len(digits) :]]


def find_calls(document: Document) -> Iterator[Call]:
    """The calls in a document, in the order of their lines, once for each pass of a loop."""
    previous: Call | None = None
    passes = 0
    for command in commands(document, _PROGRAMS):
        call = None if _is_printed(command.words) else _call(_unquote(command))
        if call is None:
            continue
        call = replace(call, is_alternative=command.is_alternative)
        # Passes of a loop that differ only in a file's name are one call.
        if previous is not None and call != previous:
            yield replace(previous, passes=passes)
            passes = 0
        previous = call
        passes += 1
    if previous is not None:
        yield replace(previous, passes=passes)


def _is_printed(words: tuple[str, ...]) -> bool:
    """Whether the last command that begins before the program prints its words."""
    at = next((at for at, word in enumerate(words) if _PROGRAM.search(f"{word} ")), 0)
    begins = [place for place, word in enumerate(words[:at]) if word in _SEPARATORS or word.endswith(";")]
    first = words[begins[-1] + 1 if begins else 0 : at][:1]
    return first in (("echo",), ("printf",)) and not _SHELL & set(words[at:])


def _unquote(command: Command) -> Command:
    """The command that is one word of another one: of `bash -c`, of `ssh`, or of a function's argument."""
    if any(word.rpartition("/")[2] in PROGRAMS for word in command.words):
        return command
    for word in command.words:
        if " " in word and (match := _PROGRAM.search(word)):
            inner = word[match.start() :].rstrip(")]};,\"'")
            try:
                words = shlex.split(inner)
            except ValueError:
                words = inner.split()
            return replace(command, words=tuple(words))
    return command


def _call(command: Command) -> Call | None:
    words = tuple(word for word in command.words if word)
    at = next((at for at, word in enumerate(words) if word.rpartition("/")[2] in PROGRAMS), None)
    if at is None:
        # A path that a document has cut, before options of sysbench.
        at = (
            next((at for at, word in enumerate(words) if word.startswith(_DRIVER_OPTIONS) and "=" in word), 0)
            - 1
        )
        tool = "sysbench"
    else:
        while at + 1 < len(words) and words[at + 1].rpartition("/")[2] in PROGRAMS:
            # The image of a container has the name of its program.
            at += 1
        tool = PurePosixPath(words[at]).name
    rest = until_end(words[at + 1 :])
    options, others = _options(rest, "mysqlslap" if tool == "mariadb-slap" else tool)
    if tool == "sysbench":
        phase = next((word for word in others if word in _PHASES), "")
        names = [word for word in others if word not in _PHASES and "$" not in word and word.strip(".…[]<>")]
        path = options.pop("test", "") or (names[0] if names else "")
        # Prose mentions the program; a call has options or a phase.
        if (not phase and not (options and path)) or options.keys() & {"version", "help", "prefix"}:
            return None
        # "..." stands for words that the document does not show.
        unknown = tuple(word for word in others if "$" in word or not word.strip(".…[]<>"))
        name = PurePosixPath(path).name.removesuffix(".lua")
        return Call(tool, phase, name, options, command.first, command.last, path, unknown)
    if not options:
        return None
    phase = "prepare" if "initialize" in options else "run"
    return Call(
        tool, phase, options.get("builtin", options.get("file", "")), options, command.first, command.last
    )


def _options(words: tuple[str, ...], tool: str) -> tuple[dict[str, str], list[str]]:
    """Options by their long names, and the other words."""
    options: dict[str, str] = {}
    others: list[str] = []
    short, flags = _SHORT.get(tool, {}), _FLAGS.get(tool, {})
    index = 0
    while index < len(words):
        word = _DASH.sub("--", words[index])
        index += 1
        if word.startswith("--"):
            name, separator, value = word[2:].partition("=")
            name = name if "$" in name else name.replace("_", "-")
            if (
                not separator
                and index < len(words)
                and tool != "sysbench"
                and not words[index].startswith("-")
            ):
                value, index = words[index], index + 1
            options[name] = value
        elif word.startswith("-") and len(word) > 1 and tool != "sysbench":
            letters = word[1:]
            for place, letter in enumerate(letters):
                if letter in flags:
                    options[flags[letter]] = ""
                elif letter in short:
                    value = letters[place + 1 :]
                    if not value and index < len(words):
                        value, index = words[index], index + 1
                    options[short[letter]] = value
                    break
        else:
            others.append(word)
    return options, others


# Options of the length of a run in seconds.
_SECONDS = ("time", "max-time")
# Options of pgbench that choose a test of its own.
_TESTS = ("select-only", "skip-some-updates")


@dataclass
class CallGroup:
    """Calls of one program with one test and one phase."""

    tool: str
    phase: str
    test: str
    # Numbers of connections and of seconds, in the order of the document.
    connections: list[int] = field(default_factory=list)
    seconds: list[int] = field(default_factory=list)
    # Whether a call has a number of connections that is not known.
    has_unknown: bool = False
    # Lines of the calls, as indices.
    lines: list[int] = field(default_factory=list)
    # How often each call runs, by its options.
    _times: Counter[tuple[tuple[str, str], ...]] = field(default_factory=Counter)

    def add(self, call: Call) -> None:
        """Count a call."""
        connections = call.connections
        numbers = call.options.get("concurrency", "").split(",")
        several = [
            int(number) for number in numbers if len(number) <= 6 and number.isascii() and number.isdigit()
        ]
        for entry in several if len(several) > 1 else [] if connections is None else [connections]:
            _append(self.connections, entry)
        if not several and connections is None and any(name in call.options for name in CONNECTIONS):
            self.has_unknown = True
        if (seconds := call.number(*_SECONDS)) is not None:
            _append(self.seconds, seconds)
        _append(self.lines, call.first)
        self._times[tuple(call.options.items())] += call.passes * (call.number("iterations") or 1)

    @property
    def repetitions(self) -> tuple[int, int]:
        """The smallest and the largest number of runs with the same options."""
        return min(self._times.values()), max(self._times.values())

    def text(self) -> Text:
        """The group in a line: sysbench oltp_read_only run, 1 and 8 connections, 60 s, 3 times."""
        parts: list[str] = [" ".join(filter(None, (self.tool, self.test, self.phase)))]
        if self.connections:
            shown = _numbers(self.connections)
            last = max(self.connections)
            parts.append(compose_count(last, "{shown} connection", "{shown} connections", shown=shown))
        if self.has_unknown:
            parts.append(compose("connections that are not known"))
        if self.seconds:
            parts.append(compose("{shown} s", shown=_numbers(self.seconds)))
        least, most = self.repetitions
        if most > 1 and least == most:
            parts.append(compose("{number} times each", number=most))
        elif most > 1:
            parts.append(compose("{least} to {most} times each", least=least, most=most))
        return join(", ", parts)


def group_calls(calls: Iterable[Call]) -> list[CallGroup]:
    """The calls in groups, in the order of the document."""
    groups: dict[tuple[str, str, str], CallGroup] = {}
    for call in calls:
        test = call.test or next((name for name in _TESTS if name in call.options), "")
        key = call.tool, call.phase, test
        groups.setdefault(key, CallGroup(*key)).add(call)
    return list(groups.values())


def _append(values: list[int], value: int) -> None:
    if value not in values and len(values) < LOADS_MAX:
        values.append(value)


def _numbers(values: Sequence[int]) -> Text:
    return join_some([str(value) for value in values], LISTED_MAX)
