"""Numbers, effects, loads and lists as text, for verdict sentences and findings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from dbdyno.experiment.metrics import CAPACITY, CPU, THROUGHPUT, metric_text
from dbdyno.result_text import (
    blocks_count,
    connections_count,
    decimals_for,
    is_ratio,
    ratio_decimals,
    signed,
    times,
)
from dbdyno.stats.paired import Bound, Effect
from dbdyno.store.document import PointDict
from dbdyno.store.measured import Point
from dbdyno.text import Text, compose, compose_form, join, mark

# Text for an infinite ratio: most trials of the baseline failed and count as 0.
INFINITE = compose("infinitely higher")
# Added to a verdict with a direction whose interval contains zero, which Holm's procedure makes possible.
DIRECTION_BY_HOLM = compose(
    "the direction is significant by Holm's test, though the interval for all sentences together reaches zero"
)
# The same for a gate whose interval contains the allowed loss.
SIDE_BY_HOLM = compose(
    "this is significant by Holm's test, though not by the interval, which holds for all sentences together"
)


class MetricWording(NamedTuple):
    """What sentences say of the values of a metric, as patterns. The better value may be the lower one."""

    # The relation of the variant to the baseline.
    better: str
    worse: str
    # Added where single loads have the opposite direction of the mean.
    but_better: str
    but_worse: str
    # The verdict that depends on the load.
    mixed: str


_OF_LATENCIES = MetricWording(
    mark("{variant} has a lower {metric} than {baseline}"),
    mark("{variant} has a higher {metric} than {baseline}"),
    mark("but lower {loads}"),
    mark("but higher {loads}"),
    mark("It depends on the load: {faster}, a higher one {other}; {where}"),
)
# Those of the other metrics; those of a capacity are never mixed, because it is one for all loads.
_OF_METRICS = {
    THROUGHPUT: MetricWording(
        mark("{variant} is faster than {baseline}"),
        mark("{variant} is slower than {baseline}"),
        mark("but faster {loads}"),
        mark("but slower {loads}"),
        mark("It depends on the load: {faster}, slower {other}; throughput, {where}"),
    ),
    CPU: MetricWording(
        mark("{variant} needs less {metric} than {baseline}"),
        mark("{variant} needs more {metric} than {baseline}"),
        mark("but less {loads}"),
        mark("but more {loads}"),
        mark("It depends on the load: {faster}, more {other}; {where}"),
    ),
    CAPACITY: _OF_LATENCIES._replace(better=_OF_LATENCIES.worse, worse=_OF_LATENCIES.better),
}
# Maximum number of loads that are listed one by one; more are given as a range.
LISTED_LOADS = 6


def finite(value: float | None) -> float | None:
    """The value; None if it is infinite, which JSON cannot represent."""
    return value if value is not None and math.isfinite(value) else None


def join_words(items: Sequence[str]) -> str:
    """Items as a list: a, b and c."""
    if len(items) == 1:
        return items[0]
    return compose("{items} and {last}", items=join(", ", items[:-1]), last=items[-1])


def blocks_text(number: int, planned: int) -> Text:
    """The number of blocks that count: 7 of 8 blocks, 8 blocks."""
    if number < planned:
        return compose("{number} of {planned} blocks", number=number, planned=planned)
    return blocks_count(number)


def blocks_clause(number: int, blocks: tuple[int, int], at_most: int | None) -> Text:
    """The number of blocks that count. If the run could stop at any block, it says so.

    `blocks` are the finished and planned ones. `at_most` is None if their number was fixed before the run.
    """
    finished, planned = blocks
    if at_most is None:
        return blocks_text(number, planned)
    stopped = compose(
        "stopped after {finished} of at most {at_most} blocks; the interval allows for every look",
        finished=finished,
        at_most=at_most,
    )
    if number == finished:
        return stopped
    return compose(
        "{number} of {finished} blocks count; {stopped}", number=number, finished=finished, stopped=stopped
    )


def blocks_of(number: int, blocks: tuple[int, int], at_most: int | None) -> str:
    """The number of blocks without the noun: 3 of 8, 7 of at most 20."""
    if at_most is not None:
        return compose("{number} of at most {at_most}", number=number, at_most=at_most)
    _, planned = blocks
    return (
        compose("{number} of {planned}", number=number, planned=planned) if number < planned else str(number)
    )


def duration(seconds: float) -> str:
    """A rough duration: 50 s, 40 minutes, 3.5 hours."""
    if seconds < 90.0:
        return compose("{seconds:.0f} s", seconds=seconds)
    minutes = seconds / 60.0
    if minutes < 120.0:
        return compose("{minutes:.0f} minutes", minutes=minutes)
    return compose("{hours:.2g} hours", hours=minutes / 60.0)


def times_interval(ends: tuple[float, float]) -> str:
    """Both ends of an interval as ratios: 7.9 to 8.1 times."""
    low, high = (times(end, ratio_decimals(ends)) for end in ends)
    return compose("{low} to {high} times", low=low, high=high)


def confidence(alpha: float) -> str:
    """The name of an interval with confidence 1 - alpha: 95 % interval, 98.3 % interval."""
    return compose("{percent:g} % interval", percent=round(100.0 * (1.0 - alpha), 1))


def effect_text(
    metric: str, effect: Effect, delta_percent: float | None = None, *, average: bool = False
) -> str:
    """Metric, estimate and interval: throughput -9.3 % on average (95 % interval -9.8 to -8.8)."""
    name = metric_text(metric)
    mean = compose(" on average") if average else ""
    if has_no_estimate(effect):
        return compose("{metric} {change}", metric=name, change=_between(effect, mean))
    if (size := size_text(effect, delta_percent, average=average)) is not None:
        return compose("{metric} {size}", metric=name, size=size)
    inside = _inside(effect, delta_percent)
    if effect.bound != Bound.EXACT:
        return join("", (_bounded(name, effect), mean, inside))
    ratio = times(effect.effect_percent)
    return compose(
        "{times} times the {metric}{mean}{inside}", times=ratio, metric=name, mean=mean, inside=inside
    )


def size_text(
    effect: Effect, delta_percent: float | None = None, *, average: bool = False, with_level: bool = True
) -> Text | None:
    """Estimate and interval in percent, without the metric; None if the text is not in percent or a bound.

    Without `with_level` the text before has the level of confidence.
    """
    if effect.bound != Bound.EXACT or has_no_estimate(effect) or is_ratio(effect.effect_percent):
        return None
    percent = signed(effect.effect_percent, _decimals(effect, delta_percent))
    mean = compose(" on average") if average else ""
    inside = _inside(effect, delta_percent, with_level=with_level)
    return compose("{percent} %{mean}{inside}", percent=percent, mean=mean, inside=inside)


def _inside(effect: Effect, delta_percent: float | None, *, with_level: bool = True) -> str:
    """The interval of an effect in parentheses; "" without one."""
    ends = effect.interval_percent
    if not ends or not (effect.bound == Bound.EXACT or -100.0 < ends[0] < ends[1] < math.inf):
        return ""
    is_in_times = is_ratio(effect.effect_percent)
    shown = times_interval(ends) if is_in_times else interval(ends, _decimals(effect, delta_percent))
    if not with_level:
        return compose(" ({interval})", interval=shown)
    return compose(" ({confidence} {interval})", confidence=confidence(effect.alpha), interval=shown)


def _decimals(effect: Effect, delta_percent: float | None) -> int:
    return decimals_for((effect.effect_percent, *(effect.interval_percent or ())), delta_percent)


def interval(ends: tuple[float, float], decimals: int | None = None) -> str:
    """Both ends of an interval: -9.8 to -8.8."""
    digits = decimals_for(ends) if decimals is None else decimals
    return compose("{low} to {high}", low=signed(ends[0], digits), high=signed(ends[1], digits))


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
        return compose("unknown") + mean
    if ends[0] == ends[1]:
        return join("", (INFINITE if effect.effect_percent > 0.0 else "-100 %", mean))
    low, high = (signed(end, decimals_for(ends)) for end in ends)
    between = (
        _or_more(ends[0], low)
        if math.isinf(ends[1])
        else compose("between {low} and {high} %", low=low, high=high)
    )
    return compose(
        "{between}{mean} ({confidence})", between=between, mean=mean, confidence=confidence(effect.alpha)
    )


def _or_more(bound: float, percent: str) -> Text:
    """A lower bound: +12.0 % or more, but above -7.0 %, since "-7.0 % or more" reads like a larger loss."""
    if bound >= 0.0:
        return compose("{percent} % or more", percent=percent)
    return compose("above {percent} %", percent=percent)


def _bounded(name: str, effect: Effect) -> Text:
    """An effect of which only a lower or upper bound is known: throughput lower by at least 20.0 %."""
    change_percent = effect.effect_percent
    if is_unknown(effect):
        return compose("{metric} unknown", metric=name)
    if effect.bound == Bound.AT_LEAST and is_ratio(change_percent):
        return compose("{metric} at least {times} times", metric=name, times=times(change_percent))
    if effect.bound == Bound.AT_LEAST:
        return compose(
            "{metric} {change}", metric=name, change=_or_more(change_percent, signed(change_percent))
        )
    if change_percent >= 0:
        return compose("{metric} {percent} % or less", metric=name, percent=signed(change_percent))
    text = compose("{metric} lower by at least {percent:.1f} %", metric=name, percent=abs(change_percent))
    return (
        text + compose(" ({times} times or less)", times=times(change_percent))
        if is_ratio(change_percent)
        else text
    )


def change(effect: Effect) -> str:
    """The estimate without metric and interval: +25.0 %, 3.1 times."""
    change_percent = effect.effect_percent
    if is_unknown(effect):
        return compose("unknown")
    if effect.bound == Bound.EXACT and has_no_estimate(effect):
        return _between(effect)
    if is_ratio(change_percent):
        ratio = times(change_percent)
        match effect.bound:
            case Bound.AT_LEAST:
                return compose("{times} times or more", times=ratio)
            case Bound.AT_MOST:
                return compose("{times} times or less", times=ratio)
        return compose("{times} times", times=ratio)
    match effect.bound:
        case Bound.AT_LEAST:
            return _or_more(change_percent, signed(change_percent))
        case Bound.AT_MOST:
            return compose("{percent} % or less", percent=signed(change_percent))
    return f"{signed(change_percent, decimals_for((change_percent,)))} %"


def loads(points: Sequence[PointDict]) -> Text:
    """Loads as text: at 10, 20 and 40 connections; at 8 loads from 1 to 128 connections."""
    return compose("at {loads}", loads=listed_loads(points))


def each_load(points: Sequence[PointDict]) -> Text:
    """Several loads, each by itself: at each of 10, 20 and 40 connections."""
    return compose("at each of {loads}", loads=listed_loads(points))


def listed_loads(points: Sequence[PointDict]) -> Text:
    """8, 16 and 32 connections; at least one load."""
    values = [Point.of(point).value for point in points]
    is_rate = Point.of(points[0]).unit == "rate"
    if len(values) > LISTED_LOADS:
        ends = {"number": len(values), "low": min(values), "high": max(values)}
        if is_rate:
            return compose("{number} loads from {low:g} to {high:g} transactions/s", **ends)
        return compose("{number} loads from {low:g} to {high:g} connections", **ends)
    listed = join_words([f"{value:g}" for value in values])
    if is_rate:
        return compose("{listed} transactions/s", listed=listed)
    if values == [1]:
        return connections_count(1)
    return compose("{listed} connections", listed=listed)


def metric_wording(metric: str) -> MetricWording:
    """What sentences say of the values of a metric."""
    return _OF_METRICS.get(metric, _OF_LATENCIES)


def relation(metric: str, variant: str, baseline: str, *, faster: bool) -> Text:
    """The relation of two variants: "b is faster than a", "b has a lower p95 latency than a"."""
    words = metric_wording(metric)
    values = {"metric": metric_text(metric), "variant": variant, "baseline": baseline}
    return compose_form(words.better if faster else words.worse, values)
