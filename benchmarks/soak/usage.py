"""Samples what a process uses, and the slope of each of these over time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import psutil

HOUR_S = 3600.0
MIB = 1 << 20


@dataclass(frozen=True)
class Sample:
    """What a process uses at an instant."""

    at_s: float
    memory_mib: float
    handles: int
    threads: int


@dataclass
class Series:
    """The samples of one process."""

    name: str
    process: psutil.Process
    samples: list[Sample] = field(default_factory=list)

    def sample(self) -> None:
        """Add a sample; none if the process has ended."""
        try:
            with self.process.oneshot():
                memory = self.process.memory_info().rss / MIB
                threads = self.process.num_threads()
            self.samples.append(Sample(time.monotonic(), memory, self.process.num_fds(), threads))
        except psutil.NoSuchProcess:
            return


@dataclass(frozen=True)
class Slope:
    """How fast a figure grows, and its size."""

    what: str
    unit: str
    first: float
    last: float
    highest: float
    per_hour: float

    def text(self) -> str:
        """In one line."""
        return (
            f"{self.what}: {self.first:.6g} to {self.last:.6g} {self.unit}, at most {self.highest:.6g}, "
            f"{self.per_hour:+.3g} an hour"
        )


def slope(what: str, unit: str, times_s: Sequence[float], values: Sequence[float]) -> Slope:
    """The least-squares slope of a figure."""
    per_hour = 0.0
    if len(set(times_s)) > 1:
        hours = (np.asarray(times_s) - times_s[0]) / HOUR_S
        per_hour = float(np.polyfit(hours, np.asarray(values, dtype=float), 1)[0])
    return Slope(what, unit, values[0], values[-1], max(values), per_hour)


def slopes(series: Series) -> list[Slope]:
    """The slopes of one process, without the first tenth of its samples, in which connections open."""
    kept = series.samples[len(series.samples) // 10 :]
    if not kept:
        return []
    times = [one.at_s for one in kept]
    return [
        slope(f"{series.name} memory", "MiB", times, [one.memory_mib for one in kept]),
        slope(f"{series.name} file handles", "", times, [float(one.handles) for one in kept]),
        slope(f"{series.name} threads", "", times, [float(one.threads) for one in kept]),
    ]


def is_flat(one: Slope, hours: float) -> bool:
    """Whether the growth over the run is at most 5 % of the figure, or 8 MiB (8 handles, 8 threads)."""
    return one.per_hour * hours <= max(8.0, 0.05 * one.first)
