"""Latency histograms as they travel in the engine's records: merged by adding, read by percentile.

A histogram is a list of ``[bucket_lower_us, count]`` pairs. The bucket rule is the engine's, which is that of
an HDR histogram with three significant digits: below 2048 us a bucket is 1 us wide, above it
2^(floor(log2(value)) - 10) us, which is at most 0.1 % of the value. Percentiles are taken from merged
histograms, never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
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


def percentile(histogram: Histogram, percent: float, low_us: float, high_us: float) -> float | None:
    """The nearest-rank percentile in microseconds, or None without values.

    Of n values the one of rank ceil(percent / 100 * n) in ascending order is meant. Only its bucket is known,
    so the middle of the bucket is returned, held within the smallest and largest value seen (`low_us`,
    `high_us`): the answer is off by at most half a bucket, 0.05 % or 0.5 us.
    """
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"percent is {percent}; it must lie between 0 and 100")
    total = sum(histogram.values())
    if total == 0:
        return None
    # The rounding keeps 0.95 * 100 = 95.00000000000001 from being rank 96.
    rank = max(1, math.ceil(round(percent / 100.0 * total, 6)))
    seen = 0
    for lower_us in sorted(histogram):
        seen += histogram[lower_us]
        if seen >= rank:
            middle = lower_us + bucket_width_us(lower_us) / 2.0
            return min(max(middle, low_us), high_us)
    raise AssertionError("the counts of a histogram add up to its total")
