"""Ratios of paired runs, their targets, and the tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, log
from statistics import median

from sides import Measured

from dbdyno.stats.signed_rank import hodges_lehmann, interval, percent

BARE_LOOP_TARGET = 1.25


@dataclass(frozen=True)
class Reference:
    """The client in the third column, and the target of the ratio dbdyno / client of CPU per query."""

    name: str
    cpu: float

    def header(self, has_batch: bool) -> str:
        """The header lines of a table."""
        batch = " sysbench batch | dbdyno / sysbench batch | interval |" if has_batch else ""
        names = (
            f"| connections | | dbdyno | sysbench | {self.name} "
            f"| dbdyno / sysbench | interval | target | dbdyno / {self.name.split()[0]} | target |{batch}"
        )
        return f"{names}\n|{'---|' * (names.count('|') - 1)}"


BARE_LOOP = Reference("bare loop", BARE_LOOP_TARGET)


@dataclass(frozen=True)
class Targets:
    """Targets of the ratio dbdyno / sysbench: by number of connections the highest CPU per query and the
    lowest throughput; for all of them the highest p95 and p99.
    """

    cpu: Mapping[int, float] = field(default_factory=dict)
    throughput: Mapping[int, float] = field(default_factory=dict)
    latency: float = inf


@dataclass(frozen=True)
class Point:
    """Runs of all clients at one number of connections; runs with the same index form a pair. `bare` has the
    runs of the reference, `batch` those of sysbench in SCHED_BATCH; both may be empty.
    """

    connections: int
    dbdyno: Sequence[Measured]
    sysbench: Sequence[Measured]
    bare: Sequence[Measured] = ()
    batch: Sequence[Measured] = ()

    @classmethod
    def of(cls, connections: int, runs: Mapping[str, Sequence[Measured]], reference: str) -> Point:
        """The runs by the names of the clients; a client that was not run has none."""
        names = ("dbdyno", "sysbench", reference, "sysbench batch")
        return cls(connections, *(runs.get(name, ()) for name in names))


@dataclass(frozen=True)
class Figure:
    """One figure of every run, and the targets of its ratios."""

    key: str
    label: str
    low: float = 0.0
    high: float = inf
    bare_high: float = inf

    def row(self, point: Point) -> tuple[str, bool]:
        """The row of the table, and whether every target is met."""
        ours, theirs, bare = (
            [getattr(run, self.key) for run in runs] for runs in (point.dbdyno, point.sysbench, point.bare)
        )
        ratio, bounds = paired_ratio(ours, theirs)
        is_met = self.low <= ratio <= self.high
        target = "" if (self.low, self.high) == (0.0, inf) else _format_target(self.low, self.high, is_met)
        cells = [_number(median(ours)), _number(median(theirs))]
        batch = self._against_batch(point, ours)
        if None in bare or not bare:
            return self._join(point, [*cells, "", f"{ratio:.3f}", bounds, target, "", "", *batch]), is_met
        against, _ = paired_ratio(ours, bare)
        bare_is_met = against <= self.bare_high
        bare_target = "" if self.bare_high == inf else _format_target(0, self.bare_high, bare_is_met)
        cells += [_number(median(bare)), f"{ratio:.3f}", bounds, target, f"{against:.3f}", bare_target]
        return self._join(point, [*cells, *batch]), is_met and bare_is_met

    def _against_batch(self, point: Point, ours: Sequence[float]) -> list[str]:
        """The cells about sysbench in SCHED_BATCH."""
        if not point.batch:
            return []
        theirs = [getattr(run, self.key) for run in point.batch]
        ratio, bounds = paired_ratio(ours, theirs)
        return [_number(median(theirs)), f"{ratio:.3f}", bounds]

    def _join(self, point: Point, cells: Sequence[str]) -> str:
        return f"| {point.connections} | {self.label} | " + " | ".join(cells) + " |"


def figures(targets: Targets, point: Point, reference: Reference = BARE_LOOP) -> Iterator[Figure]:
    """The figures of a point in the table, with their targets."""
    low, high = targets.throughput.get(point.connections, 0.0), targets.cpu.get(point.connections, inf)
    yield Figure("throughput", "throughput, tx/s", low=low)
    yield Figure("cpu_per_query", "client CPU per query, us", high=high, bare_high=reference.cpu)
    yield Figure("latency_p95", "p95, ms", high=targets.latency)
    yield Figure("latency_p99", "p99, ms", high=targets.latency)
    yield Figure("memory", "peak memory, MiB")
    yield Figure("connected_in_s", "connecting, s")


def table(
    name: str,
    points: Sequence[Point],
    targets: Targets,
    memory_target: float,
    reference: Reference = BARE_LOOP,
) -> tuple[str, list[str]]:
    """The table with the title `name`, and the missed targets; `memory_target` is the highest memory in MiB
    from 3000 connections on.
    """
    pairs = len(points[0].dbdyno)
    lines = [f"## {name} ({pairs} pairs)\n", reference.header(any(point.batch for point in points))]
    missed = []
    for point in points:
        for figure in figures(targets, point, reference):
            row, is_met = figure.row(point)
            lines.append(row)
            if not is_met:
                missed.append(f"{name}: {row}")
        memory = max(run.memory for run in point.dbdyno)
        if point.connections >= 3000 and memory > memory_target:
            missed.append(f"{name}: {memory:.0f} MiB at {point.connections} connections")
    return "\n".join([*lines, ""]), missed


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, str]:
    """The Hodges-Lehmann ratio and its signed-rank interval, which is empty with too few pairs."""
    ratios = [log(own) - log(other) for other, own in zip(theirs, ours, strict=True)]
    # With five pairs 93.75 % is the highest possible confidence.
    bounds = interval(ratios, 0.0625 if len(ratios) < 6 else 0.05)
    shown = "" if bounds is None else f"{_factor(bounds.low):.3f} to {_factor(bounds.high):.3f}"
    return _factor(hodges_lehmann(ratios)), shown


def _factor(log_ratio: float) -> float:
    return 1 + percent(log_ratio) / 100


def _format_target(low: float, high: float, is_met: bool) -> str:
    text = f"at least {low:g}" if high == inf else f"at most {high:g}"
    return f"{text}: {'met' if is_met else 'MISSED'}"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.2f}"
