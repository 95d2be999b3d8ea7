"""The figures of background loads: medians over the blocks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from dbdyno.report import formatting
from dbdyno.store.measured import BackgroundFigures, Figures, MeasuredTrial
from dbdyno.text import compose

_LATENCIES = ("latency_p50_us", "latency_p95_us", "latency_p99_us")


@dataclass(frozen=True)
class BackgroundRow:
    """One background load, with one variant and load."""

    name: str
    load: str
    variant: str
    # Transactions per second: demanded, reached; p50, p95 and p99 in milliseconds; errors per 1,000
    # transactions; row-count mismatches of all blocks.
    cells: Sequence[str]

    @property
    def sentence(self) -> str:
        """The row in words."""
        demanded, reached, _, p95, _, errors, mismatches = self.cells
        of_rate = compose(" of {rate}", rate=demanded) if demanded != formatting.MISSING else ""
        return compose(
            "background load {name} with {variant} at {load}: {reached}{of_rate} transactions/s, "
            "p95 {p95} ms, {errors} errors per 1,000, {mismatches} row-count mismatches",
            name=self.name,
            variant=self.variant,
            load=self.load,
            reached=reached,
            of_rate=of_rate,
            p95=p95,
            errors=errors,
            mismatches=mismatches,
        )


def background_rows(
    trials: Sequence[MeasuredTrial], variants: Sequence[str], workload: str
) -> Iterator[BackgroundRow]:
    """A row for each background load of a workload, load and variant."""
    counted = [one for one in trials if one.workload == workload and one.background]
    for name in dict.fromkeys(name for one in counted for name in one.background):
        for point in sorted({one.point for one in counted}):
            for variant in variants:
                of_row = [
                    one.background[name]
                    for one in counted
                    if (one.variant, one.point) == (variant, point) and name in one.background
                ]
                if of_row:
                    yield BackgroundRow(name, formatting.load(*point), variant, _cells(of_row))


def _cells(loads: Sequence[BackgroundFigures]) -> list[str]:
    rate = loads[0].rate
    known = [one.figures for one in loads if one.figures is not None]
    return [
        formatting.MISSING if rate is None else formatting.rate(rate),
        formatting.rate(median(one.throughput for one in loads)),
        *(_latency(known, name) for name in _LATENCIES),
        f"{median(one.errors_per_1000 for one in known):.2f}" if known else formatting.MISSING,
        f"{sum(one.row_count_mismatches for one in known):,}" if known else formatting.MISSING,
    ]


def _latency(known: Sequence[Figures], name: str) -> str:
    if not known:
        return formatting.MISSING
    bound = "> " if any(name in one.censored for one in known) else ""
    return bound + formatting.milliseconds(median(one.metric(name) for one in known))
