"""Numbers, effects, loads and lists as text, for verdict sentences and findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dbdyno.change_text import is_ratio, ratio_decimals, times
from dbdyno.experiment.metrics import CAPACITY, CPU, THROUGHPUT, metric_text
from dbdyno.stats.paired import Bound, Effect

# Text for an infinite ratio: most trials of the baseline failed and count as 0.
INFINITE = "infinitely higher"
# Added to a verdict with a direction whose interval contains zero, which Holm's procedure makes possible.
SIZE_UNSURE = (
    "the direction is sure by Holm's test, the size is not: the interval, which holds for all sentences "
    "together, reaches zero"
)
# The same for a gate whose interval contains the allowed loss.
SIDE_SURE = "this is sure by Holm's test, though not by the interval, which holds for all sentences together"
# Maximum number of loads that are listed one by one; more are given as a range.
LISTED_LOADS = 6
# Maximum number of decimals.
DECIMALS_MAX = 2


def finite(value: float | None) -> float | None:
    """The value; None if it is infinite, which JSON cannot represent."""
    return value if value is not None and math.isfinite(value) else None


def join_words(items: Sequence[str]) -> str:
    """Items as a list: a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 block, 8 blocks."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def blocks_text(number: int, planned: int) -> str:
    """The number of blocks that count: 7 of 8 blocks, 8 blocks."""
    return f"{number} of {planned} blocks" if number < planned else count(number, "block")


def blocks_clause(number: int, blocks: tuple[int, int], at_most: int | None, detail: str = "") -> str:
    """The number of blocks that count, then `detail`. If the run could stop at any block, it says so.

    `blocks` are the finished and planned ones. `at_most` is None if their number was fixed before the run.
    """
    finished, planned = blocks
    if at_most is None:
        return f"{blocks_text(number, planned)}{detail}"
    missing = f"{number} of {finished} blocks count; " if number < finished else ""
    return (
        f"{missing}stopped after {finished} of at most {at_most} blocks{detail}; the interval allows for "
        "every look"
    )


def blocks_of(number: int, blocks: tuple[int, int], at_most: int | None) -> str:
    """The number of blocks without the noun: 3 of 8, 7 of at most 20."""
    if at_most is None:
        return blocks_text(number, blocks[1]).rpartition(" ")[0]
    return f"{number} of at most {at_most}"


def duration(seconds: float) -> str:
    """A rough duration: 50 s, 40 minutes, 3.5 hours."""
    if seconds < 90.0:
        return f"{seconds:.0f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} minutes" if minutes < 120.0 else f"{minutes / 60.0:.2g} hours"


def signed(value: float, decimals: int = 1) -> str:
    """A change with its sign; 0 without a sign."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text


def decimals_for(values: Sequence[float], delta_percent: float | None = None) -> int:
    """1, or 2 if rounding to one decimal moves a value across 0 or ±delta."""
    limits = [0.0] if delta_percent is None else [0.0, delta_percent, -delta_percent]
    crosses = any(
        _side(round(value, 1), limit) != _side(value, limit)
        for value in values
        for limit in limits
        if math.isfinite(value)
    )
    return DECIMALS_MAX if crosses else 1


def _side(value: float, limit: float) -> int:
    """-1, 0 or 1: below, at or above the limit."""
    return (value > limit) - (value < limit)


def times_interval(ends: tuple[float, float]) -> str:
    """Both ends of an interval as ratios: 7.9 to 8.1 times."""
    low, high = (times(end, ratio_decimals(ends)) for end in ends)
    return f"{low} to {high} times"


def confidence(alpha: float) -> str:
    """The name of an interval with confidence 1 - alpha: 95 % interval, 98.3 % interval."""
    return f"{round(100.0 * (1.0 - alpha), 1):g} % interval"


def effect_text(
    metric: str, effect: Effect, delta_percent: float | None = None, *, average: bool = False
) -> str:
    """Metric, estimate and interval: throughput -9.3 % on average (95 % interval -9.8 to -8.8)."""
    ends = effect.interval_percent
    mean = " on average" if average else ""
    name = metric_text(metric)
    if has_no_estimate(effect):
        return f"{name} {_between(effect, mean)}"
    decimals = decimals_for((effect.effect_percent, *(ends or ())), delta_percent)
    inside = ""
    if ends and (effect.bound == Bound.EXACT or -100.0 < ends[0] < ends[1] < math.inf):
        shown = times_interval(ends) if is_ratio(effect.effect_percent) else interval(ends, decimals)
        inside = f" ({confidence(effect.alpha)} {shown})"
    if effect.bound != Bound.EXACT:
        return f"{_bounded(name, effect)}{mean}{inside}"
    if is_ratio(effect.effect_percent):
        return f"{times(effect.effect_percent)} times the {name}{mean}{inside}"
    return f"{name} {signed(effect.effect_percent, decimals)} %{mean}{inside}"


def interval(ends: tuple[float, float], decimals: int | None = None) -> str:
    """Both ends of an interval: -9.8 to -8.8."""
    digits = decimals_for(ends) if decimals is None else decimals
    return f"{signed(ends[0], digits)} to {signed(ends[1], digits)}"


def is_unknown(effect: Effect) -> bool:
    """Whether nothing is known about the effect, because neither variant completed enough transactions."""
    value = effect.effect_percent
    return effect.bound != Bound.EXACT and (not math.isfinite(value) or value <= -100.0)


def has_no_estimate(effect: Effect) -> bool:
    """Whether the estimate is a ratio of zero or infinity, because most trials of a variant failed."""
    return effect.bound == Bound.EXACT and (
        effect.effect_percent <= -100.0 or math.isinf(effect.effect_percent)
    )


def _between(effect: Effect, mean: str = "") -> str:
    """The interval instead of an estimate: between -100.0 and -9.2 % (95 % interval)."""
    ends = effect.interval_percent
    if ends is None:
        return f"unknown{mean}"
    if ends[0] == ends[1]:
        return f"{INFINITE if effect.effect_percent > 0.0 else '-100 %'}{mean}"
    low, high = (signed(end, decimals_for(ends)) for end in ends)
    between = _or_more(ends[0], low) if math.isinf(ends[1]) else f"between {low} and {high} %"
    return f"{between}{mean} ({confidence(effect.alpha)})"


def _or_more(bound: float, text: str) -> str:
    """A lower bound: +12.0 % or more, but above -7.0 %, since "-7.0 % or more" reads like a larger loss."""
    return f"{text} % or more" if bound >= 0.0 else f"above {text} %"


def _bounded(name: str, effect: Effect) -> str:
    """An effect of which only a lower or upper bound is known: throughput lower by at least 20.0 %."""
    known = effect.effect_percent
    if is_unknown(effect):
        return f"{name} unknown"
    if effect.bound == Bound.AT_LEAST:
        return (
            f"{name} {_or_more(known, signed(known))}"
            if not is_ratio(known)
            else f"{name} at least {times(known)} times"
        )
    share = f" ({times(known)} times or less)" if is_ratio(known) else ""
    return (
        f"{name} lower by at least {abs(known):.1f} %{share}"
        if known < 0
        else f"{name} {signed(known)} % or less"
    )


def change(effect: Effect) -> str:
    """The estimate without metric and interval: +25.0 %, 3.1 times."""
    known = effect.effect_percent
    if is_unknown(effect):
        return "unknown"
    if effect.bound == Bound.AT_LEAST:
        return f"{times(known)} times or more" if is_ratio(known) else _or_more(known, signed(known))
    if effect.bound == Bound.AT_MOST:
        return f"{times(known)} times or less" if is_ratio(known) else f"{signed(known)} % or less"
    if has_no_estimate(effect):
        return _between(effect)
    return f"{times(known)} times" if is_ratio(known) else f"{signed(known, decimals_for((known,)))} %"


def loads(points: Sequence[Mapping[str, float]]) -> str:
    """Loads as text: at 10, 20 and 40 connections; at 8 loads from 1 to 128 connections."""
    values = [next(iter(point.values())) for point in points]
    unit = "connections" if "connections" in points[0] else "transactions/s"
    if unit == "connections" and values == [1]:
        unit = "connection"
    if len(values) > LISTED_LOADS:
        return f"at {len(values)} loads from {min(values):g} to {max(values):g} {unit}"
    return f"at {join_words([f'{value:g}' for value in values])} {unit}"


def better(metric: str, *, faster: bool) -> str:
    """The relation of two variants: "is faster than", "has a lower p95 latency than"."""
    if metric == THROUGHPUT:
        return f"is {'faster' if faster else 'slower'} than"
    if metric == CAPACITY:
        return f"has a {'higher' if faster else 'lower'} capacity than"
    if metric == CPU:
        return f"needs {'less' if faster else 'more'} {metric_text(metric)} than"
    return f"has a {'lower' if faster else 'higher'} {metric_text(metric)} than"


def excluded(effect: Effect) -> list[str]:
    """A text with the differences that the interval of an undecided effect excludes; [] if it
    excludes none.
    """
    ends = effect.interval_percent
    if ends is None or not all(map(math.isfinite, ends)) or ends[0] <= -100.0:
        return []
    if not ends[0] <= 0.0 <= ends[1]:
        return []
    low, high = (abs(end) for end in ends)
    if is_ratio(ends[0]) or is_ratio(ends[1]):
        return [f"less than {times(ends[0])} times and more than {times(ends[1])} times are excluded"]
    farthest = max(low, high)
    return [f"a difference of more than {farthest:.{decimals_for((farthest,))}f} % either way is excluded"]
