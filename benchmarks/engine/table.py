"""Ratios of paired runs, the bars they are held to, and the tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log
from statistics import median

from sides import Measured

from dbdyno.stats.signed_rank import hodges_lehmann, interval, percent

BARE_BAR = 1.25


@dataclass(frozen=True)
class Third:
    """Whom dbdyno is held against beside sysbench, and the most of its CPU per query that dbdyno may need."""

    name: str
    cpu: float

    def header(self) -> str:
        """The head of a table."""
        return (
            f"| connections | | dbdyno | sysbench | {self.name} "
            f"| dbdyno / sysbench | interval | bar | dbdyno / {self.name.split()[0]} | bar |\n"
            "|---|---|---|---|---|---|---|---|---|---|"
        )


BARE_LOOP = Third("bare loop", BARE_BAR)


@dataclass(frozen=True)
class Bars:
    """What ratios dbdyno / sysbench are held to: by number of connections most CPU per query and least
    throughput; everywhere most of p95 and p99.
    """

    cpu: Mapping[int, float] = field(default_factory=dict)
    throughput: Mapping[int, float] = field(default_factory=dict)
    latency: float = inf


@dataclass(frozen=True)
class Level:
    """Runs of all sides at one number of connections, in pairs by position; `bare`, or who else stands in
    the third place, may be empty.
    """

    connections: int
    dbdyno: Sequence[Measured]
    sysbench: Sequence[Measured]
    bare: Sequence[Measured]


@dataclass(frozen=True)
class Figure:
    """One figure of every run, and what its ratios are held to."""

    key: str
    label: str
    low: float = 0.0
    high: float = inf
    bare_high: float = inf

    def row(self, level: Level) -> tuple[str, bool]:
        """The table's row, and whether every bar holds."""
        ours, theirs, bare = (
            [getattr(run, self.key) for run in runs] for runs in (level.dbdyno, level.sysbench, level.bare)
        )
        ratio, reach = paired_ratio(ours, theirs)
        held = self.low <= ratio <= self.high
        bar = "" if (self.low, self.high) == (0.0, inf) else _bar(self.low, self.high, held)
        cells = [_number(median(ours)), _number(median(theirs))]
        if None in bare or not bare:
            return self._join(level, [*cells, "", f"{ratio:.3f}", reach, bar, "", ""]), held
        against, _ = paired_ratio(ours, bare)
        bare_held = against <= self.bare_high
        bare_bar = "" if self.bare_high == inf else _bar(0, self.bare_high, bare_held)
        cells += [_number(median(bare)), f"{ratio:.3f}", reach, bar, f"{against:.3f}", bare_bar]
        return self._join(level, cells), held and bare_held

    def _join(self, level: Level, cells: Sequence[str]) -> str:
        return f"| {level.connections} | {self.label} | " + " | ".join(cells) + " |"


def figures(bars: Bars, level: Level, third: Third = BARE_LOOP) -> Iterator[Figure]:
    """What is shown of a level, with the bars that apply to it."""
    low, high = bars.throughput.get(level.connections, 0.0), bars.cpu.get(level.connections, inf)
    yield Figure("throughput", "throughput, tx/s", low=low)
    yield Figure("cpu_per_query", "client CPU per query, us", high=high, bare_high=third.cpu)
    yield Figure("latency_p95", "p95, ms", high=bars.latency)
    yield Figure("latency_p99", "p99, ms", high=bars.latency)
    yield Figure("memory", "peak memory, MiB")
    yield Figure("connected_in_s", "connecting, s")


def table(
    name: str, levels: Sequence[Level], bars: Bars, memory_bar: float, third: Third = BARE_LOOP
) -> tuple[str, list[str]]:
    """The table called `name`, and the bars that were missed; `memory_bar` in MiB at 3000 connections."""
    pairs = len(levels[0].dbdyno)
    lines = [f"## {name} ({pairs} pairs)\n", third.header()]
    missed = []
    for level in levels:
        for figure in figures(bars, level, third):
            row, held = figure.row(level)
            lines.append(row)
            if not held:
                missed.append(f"{name}: {row}")
        memory = max(run.memory for run in level.dbdyno)
        if level.connections >= 3000 and memory > memory_bar:
            missed.append(f"{name}: {memory:.0f} MiB at {level.connections} connections")
    return "\n".join([*lines, ""]), missed


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, str]:
    """The Hodges-Lehmann ratio and its signed-rank interval, as far as the pairs carry one."""
    ratios = [log(own) - log(other) for other, own in zip(theirs, ours, strict=True)]
    # Five pairs reach 93.75 % at best.
    reach = interval(ratios, 0.0625 if len(ratios) < 6 else 0.05)
    shown = "" if reach is None else f"{_factor(reach.low):.3f} to {_factor(reach.high):.3f}"
    return _factor(hodges_lehmann(ratios)), shown


def _factor(log_ratio: float) -> float:
    return 1 + percent(log_ratio) / 100


def _bar(low: float, high: float, held: bool) -> str:
    text = f"at least {low:g}" if high == inf else f"at most {high:g}"
    return f"{text}: {'holds' if held else 'MISSED'}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.2f}"
