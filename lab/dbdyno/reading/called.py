"""The calls of a document in groups: which program runs which test, at which loads, how long, how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dbdyno.reading.call import Call
from dbdyno.reading.limits import LISTED_MAX, LOADS_MAX
from dbdyno.text import Text, compose, compose_count, join, join_some

# Options of the length of a run in seconds.
_SECONDS = ("time", "max-time")
# Options of the number of connections.
_CONNECTIONS = ("threads", "num-threads", "client", "concurrency")
# Options of pgbench that choose a test of its own.
_TESTS = ("select-only", "skip-some-updates")


@dataclass
class Called:
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
        several = [int(one) for one in numbers if len(one) <= 6 and one.isascii() and one.isdigit()]
        for one in several if len(several) > 1 else [] if connections is None else [connections]:
            _append(self.connections, one)
        if not several and connections is None and any(name in call.options for name in _CONNECTIONS):
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


def group_calls(calls: Iterable[Call]) -> list[Called]:
    """The calls in groups, in the order of the document."""
    groups: dict[tuple[str, str, str], Called] = {}
    for call in calls:
        test = call.test or next((name for name in _TESTS if name in call.options), "")
        key = call.tool, call.phase, test
        groups.setdefault(key, Called(*key)).add(call)
    return list(groups.values())


def _append(values: list[int], value: int) -> None:
    if value not in values and len(values) < LOADS_MAX:
        values.append(value)


def _numbers(values: Sequence[int]) -> Text:
    return join_some([str(value) for value in values], LISTED_MAX)
