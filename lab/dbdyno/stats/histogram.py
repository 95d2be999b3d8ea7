"""Latency histograms as they travel in the engine's records: merged by adding, read by percentile.

A histogram is a list of ``[bucket_lower_us, count]`` pairs. The bucket rule is the engine's, which is that of
an HDR histogram with three significant digits: below 2048 us a bucket is 1 us wide, above it
2^(floor(log2(value)) - 10) us, which is at most 0.1 % of the value. Percentiles are taken from merged
histograms, never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# Bucket's lower edge in microseconds -> values counted in it.
Histogram: TypeAlias = Mapping[int, int]

HIGHEST_US = 3_600_000_000
_UNIT_BUCKETS_US = 2048


def bucket_width_us(value_us: int) -> int:
    """Width of the bucket that holds `value_us`; a power of two."""
    return 1 if value_us < _UNIT_BUCKETS_US else 1 << (value_us.bit_length() - 11)


def bucket_lower_us(value_us: int) -> int:
    """Lower edge of the bucket that holds `value_us`."""
    value_us = min(value_us, HIGHEST_US)
    return value_us & ~(bucket_width_us(value_us) - 1)


def merge(histograms: Iterable[Sequence[Sequence[int]]]) -> dict[int, int]:
    """The sum of sparse histograms, as a mapping in ascending order of buckets."""
    total: dict[int, int] = {}
    for pairs in histograms:
        for lower_us, count in pairs:
            total[lower_us] = total.get(lower_us, 0) + count
    return dict(sorted(total.items()))


@dataclass(frozen=True)
class Percentile:
    """A percentile, or a lower bound of it."""

    value_us: float
    # True if unfinished events could change it: the percentile is then greater than `value_us`.
    censored: bool = False


def percentile(
    known: Histogram, percent: float, low_us: float, high_us: float, censored: Histogram | None = None
) -> Percentile | None:
    """The nearest-rank percentile, or None without values.

    It is the value of rank ceil(percent / 100 * n) among n values in ascending order. Only its bucket is
    known, so the result is the middle of the bucket, limited to the smallest and largest value seen
    (`low_us`, `high_us`). The error is at most half a bucket, 0.05 % or 0.5 us.

    `censored` are values of which only a lower bound is known. The percentile is lowest if each of them
    equals its bound, and highest if each is infinite. If both results are in one bucket, the percentile is
    known; else it is greater than the lower one.
    """
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"percent is {percent}; it must be from 0 to 100")
    everything = merge((list(known.items()), list((censored or {}).items())))
    total = sum(everything.values())
    if total == 0:
        return None
    # The rounding keeps 0.95 * 100 = 95.00000000000001 from being rank 96.
    rank = max(1, math.ceil(round(percent / 100.0 * total, 6)))
    least = _bucket_of(everything, rank)
    assert least is not None, "the counts of a histogram add up to its total"
    if _bucket_of(known, rank) != least:
        return Percentile(float(least), censored=True)
    # The engine rounds to the nearest microsecond, so a bucket one microsecond wide is its own middle.
    return Percentile(min(max(least + (bucket_width_us(least) - 1) / 2.0, low_us), high_us))


def _bucket_of(histogram: Histogram, rank: int) -> int | None:
    """The bucket that holds the value of that rank; None beyond the last."""
    seen = 0
    for lower_us in sorted(histogram):
        seen += histogram[lower_us]
        if seen >= rank:
            return lower_us
    return None
