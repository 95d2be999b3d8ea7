"""Compares the figures of others' documents with those of runs, at the loads that both have.

A document has one or a few results of each load, and no blocks in common with another one, so nothing is
tested: the comparison shows how large a difference is, next to the spread of the blocks of a run.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbdyno.store.measured import MeasuredTrial

# A figure of a document -> that of a trial, and what turns the latter into the unit of the former.
_FIGURES = {
    "tps": ("throughput", 1.0),
    "mean_ms": ("latency_mean_us", 1e-3),
    "p95_ms": ("latency_p95_us", 1e-3),
    "p99_ms": ("latency_p99_us", 1e-3),
}


@dataclass(frozen=True)
class Measured:
    """The figures of one variant: load -> figure -> the values of its results."""

    name: str
    workload: str
    loads: Mapping[int, Mapping[str, Sequence[float]]]


@dataclass(frozen=True)
class Row:
    """One figure at one load, of two variants."""

    connections: int
    figure: str
    first: Sequence[float]
    second: Sequence[float]

    @property
    def change_percent(self) -> float:
        """The change from the median of the first to that of the second."""
        return 100 * (statistics.median(self.second) / statistics.median(self.first) - 1)


def of_document(reading: Mapping[str, Any]) -> list[Measured]:
    """The variants of a stored document."""
    variants = []
    for variant in reading["variants"]:
        loads: dict[int, dict[str, list[float]]] = {}
        for result in variant["results"]:
            if result["connections"] is not None:
                figures = loads.setdefault(int(result["connections"]), {})
                for name in _FIGURES.keys() & result["figures"].keys():
                    figures.setdefault(name, []).append(float(result["figures"][name]["value"]))
        variants.append(Measured(variant["name"], variant["workload"], loads))
    return variants


def of_trials(trials: Sequence[MeasuredTrial]) -> list[Measured]:
    """The variants of a run, by workload."""
    loads: dict[tuple[str, str], dict[int, dict[str, list[float]]]] = {}
    for trial in trials:
        connections = trial.at.get("connections")
        if trial.figures is None or connections is None:
            continue
        figures = loads.setdefault((trial.variant, trial.workload), {}).setdefault(int(connections), {})
        for name, (metric, factor) in _FIGURES.items():
            figures.setdefault(name, []).append(trial.figures.metric(metric) * factor)
    return [Measured(variant, workload, of_loads) for (variant, workload), of_loads in loads.items()]


def rows(first: Measured, second: Measured) -> Iterator[Row]:
    """The loads and figures that both have."""
    for connections in sorted(first.loads.keys() & second.loads.keys()):
        one, other = first.loads[connections], second.loads[connections]
        for name in (name for name in _FIGURES if name in one and name in other):
            if statistics.median(one[name]) > 0:
                yield Row(connections, name, one[name], other[name])
