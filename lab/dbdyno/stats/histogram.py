"""Merges latency histograms of the engine's records, and computes percentiles from them.

A histogram is a list of ``[bucket_lower_us, count]`` pairs. Its buckets are those of the engine: 1 µs wide
below 2048 µs, and 2^(floor(log2(value)) - 10) µs above, which is at most 0.1 % of the value (an HDR histogram
with three significant digits). Percentiles are computed from merged histograms, never averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

# Lower edge of a bucket in microseconds -> number of values in it.
Histogram: TypeAlias = Mapping[int, int]

# The largest value that a histogram can hold.
HIGHEST_US = 3_600_000_000
_UNIT_BUCKETS_US = 2048


def bucket_width_us(value_us: int) -> int:
    """Width of the bucket that contains `value_us`; a power of two."""
    return 1 if value_us < _UNIT_BUCKETS_US else 1 << (value_us.bit_length() - 11)


def bucket_lower_us(value_us: int) -> int:
    """Lower edge of the bucket that contains `value_us`."""
    value_us = min(value_us, HIGHEST_US)
    return value_us & ~(bucket_width_us(value_us) - 1)


def merge(histograms: Iterable[Sequence[Sequence[int]]]) -> dict[int, int]:
    """The sum of histograms, in ascending order of buckets."""
    total: dict[int, int] = {}
    for pairs in histograms:
        for lower_us, count in pairs:
            total[lower_us] = total.get(lower_us, 0) + count
    return dict(sorted(total.items()))


@dataclass(frozen=True)
class Percentile:
    """A percentile, or a lower bound of it."""

    value_us: float
    # Whether `value_us` is only a lower bound, because unfinished transactions may change the percentile.
    censored: bool = False
    # The upper bound of a percentile that is `censored`.
    at_most_us: float = math.inf


def percentile(
    histogram: Histogram, percent: float, low_us: float, high_us: float, censored: Histogram | None = None
) -> Percentile | None:
    """The nearest-rank percentile; None without values.

    It is the value of rank ceil(percent / 100 * n) among n values in ascending order. Only its bucket is
    known, so the result is the middle of the bucket, limited to the smallest and largest measured value
    (`low_us`, `high_us`). The error is at most half a bucket: 0.05 % or 0.5 µs.

    Of the values in `censored` only a lower bound is known. The percentile is lowest if each of them equals
    its bound, and highest if each is infinite. If both results are in the same bucket, or no more values
    with a bound up to the lower result are censored than the standard error of the rank, the percentile is
    known: it is the lower one. Otherwise both are bounds of it. The upper one is infinite if as many values
    are censored as are from the rank on.
    """
    if not 0.0 <= percent <= 100.0:
        raise ValueError(f"percent is {percent}; it must be from 0 to 100")
    all_values = merge((list(histogram.items()), list((censored or {}).items())))
    total = sum(all_values.values())
    if total == 0:
        return None
    # Without the rounding, a product such as 95.00000000000001 would give rank 96.
    rank = max(1, math.ceil(round(percent / 100.0 * total, 6)))
    lowest, highest = _bucket_of(all_values, rank), _bucket_of(histogram, rank)
    assert lowest is not None, "the counts of a histogram add up to its total"
    if highest is None:
        return Percentile(float(lowest), censored=True)
    share = percent / 100.0
    may_pass = sum(count for lower_us, count in (censored or {}).items() if lower_us <= lowest)
    if highest != lowest and may_pass > math.sqrt(total * share * (1.0 - share)):
        return Percentile(float(lowest), censored=True, at_most_us=_middle_us(highest, low_us, high_us))
    return Percentile(_middle_us(lowest, low_us, high_us))


def _middle_us(lower_us: int, low_us: float, high_us: float) -> float:
    """The middle of a bucket, limited to the smallest and largest measured value. The engine rounds to whole
    microseconds, so in a bucket that is 1 µs wide it is the lower edge.
    """
    return min(max(lower_us + (bucket_width_us(lower_us) - 1) / 2.0, low_us), high_us)


def _bucket_of(histogram: Histogram, rank: int) -> int | None:
    """The bucket that contains the value of this rank; None if there are fewer values."""
    counted = 0
    for lower_us in sorted(histogram):
        counted += histogram[lower_us]
        if counted >= rank:
            return lower_us
    return None
