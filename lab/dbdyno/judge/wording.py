"""Numbers and lists as text, in the same form for comparisons and factors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dbdyno.judge.figures import LATENCY_P95, THROUGHPUT
from dbdyno.stats.paired import Bound, Effect

METRICS = {THROUGHPUT: "throughput", LATENCY_P95: "p95 latency"}
# Beyond these changes, in percent, a ratio is easier to read than a percentage.
RATIO_BELOW, RATIO_ABOVE = -50.0, 100.0
# Text for a ratio to zero, when most trials of the baseline failed.
INFINITE = "infinitely higher"
# Added if Holm's procedure gives a direction to an effect whose interval contains zero.
SIZE_UNSURE = (
    "the direction is sure by Holm's test, the size is not: the interval, which holds for all sentences "
    "together, reaches zero"
)
# Load levels that are listed one by one; more are given as a range.
LISTED_LEVELS = 6
# Maximum number of decimals, also for smaller changes.
DECIMALS_MAX = 2
# Ratios below this have two significant digits.
SMALL_RATIO = 0.1


def finite(value: float | None) -> float | None:
    """The value, or None for infinity, which JSON does not have: null is an unknown end."""
    return value if value is not None and math.isfinite(value) else None


def join_words(items: Sequence[str]) -> str:
    """Items as a list: a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def count(number: int, noun: str) -> str:
    """A number with its noun: 1 block, 8 blocks."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def blocks_text(number: int, planned: int) -> str:
    """How many blocks count: 7 of 8 blocks, 8 blocks."""
    return f"{number} of {planned} blocks" if number < planned else count(number, "block")


def signed(value: float, decimals: int = 1) -> str:
    """A change with its sign; a plain 0 has none."""
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text


def decimals_for(values: Sequence[float], delta_percent: float | None = None) -> int:
    """1, or 2 where rounding to one decimal would move a value across 0 or ±delta."""
    limits = [0.0] if delta_percent is None else [0.0, delta_percent, -delta_percent]
    moved = any(
        _side(round(value, 1), limit) != _side(value, limit)
        for value in values
        for limit in limits
        if math.isfinite(value)
    )
    return DECIMALS_MAX if moved else 1


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def is_ratio(change_percent: float) -> bool:
    """Whether a change is written as a ratio: 8.0 times, 0.4 times. Zero stays -100 %."""
    return -100.0 < change_percent < RATIO_BELOW or RATIO_ABOVE < change_percent < math.inf


def times(change_percent: float, decimals: int = 1) -> str:
    """A change as a ratio: 8.0, 0.41, 0.0055; ∞ if it is unknown."""
    if math.isinf(change_percent):
        return "∞"
    ratio = 1.0 + change_percent / 100.0
    if 0.0 < ratio < SMALL_RATIO:
        return f"{ratio:.2g}"
    return f"{ratio:.{decimals}f}" if ratio >= 1.0 else f"{ratio:.2f}"


def times_interval(ends: tuple[float, float]) -> str:
    """Both ends of an interval as ratios, with a second decimal where one would make them equal."""
    low, high = (times(end) for end in ends)
    if low == high:
        low, high = (times(end, DECIMALS_MAX) for end in ends)
    return f"{low} to {high} times"


def confidence(alpha: float) -> str:
    """The name of an interval at 1 - alpha: 95 % interval, 98.3 % interval."""
    return f"{round(100.0 * (1.0 - alpha), 1):g} % interval"


def size(metric: str, effect: Effect, delta_percent: float | None = None, *, average: bool = False) -> str:
    """Metric, estimate and interval: throughput -9.3 % on average (95 % interval -9.8 to -8.8)."""
    ends = effect.interval_percent
    mean = " on average" if average else ""
    name = METRICS[metric]
    if effect.bound != Bound.EXACT:
        return f"{_bounded(name, effect)}{mean}"
    if has_no_estimate(effect):
        return f"{name} {_between(effect, mean)}"
    if is_ratio(effect.effect_percent):
        inside = f" ({confidence(effect.alpha)} {times_interval(ends)})" if ends else ""
        return f"{times(effect.effect_percent)} times the {name}{mean}{inside}"
    decimals = decimals_for((effect.effect_percent, *(ends or ())), delta_percent)
    inside = f" ({confidence(effect.alpha)} {interval(ends, decimals)})" if ends else ""
    return f"{name} {signed(effect.effect_percent, decimals)} %{mean}{inside}"


def interval(ends: tuple[float, float], decimals: int | None = None) -> str:
    """Both ends of an interval: -9.8 to -8.8."""
    places = decimals_for(ends) if decimals is None else decimals
    return f"{signed(ends[0], places)} to {signed(ends[1], places)}"


def is_unknown(effect: Effect) -> bool:
    """Whether the interval excludes no value, because neither variant has enough results."""
    known = effect.effect_percent
    return effect.bound != Bound.EXACT and (not math.isfinite(known) or known <= -100.0)


def has_no_estimate(effect: Effect) -> bool:
    """Whether most trials failed, so that the median ratio is zero or infinite."""
    return effect.bound == Bound.EXACT and (
        effect.effect_percent <= -100.0 or math.isinf(effect.effect_percent)
    )


def _between(effect: Effect, mean: str = "") -> str:
    """The interval in place of an estimate: between -100.0 and -9.2 % (95 % interval)."""
    ends = effect.interval_percent
    if ends is None:
        return f"unknown{mean}"
    if ends[0] == ends[1]:
        return f"{INFINITE if effect.effect_percent > 0.0 else '-100 %'}{mean}"
    low, high = (signed(end, decimals_for(ends)) for end in ends)
    between = f"{low} % or more" if math.isinf(ends[1]) else f"between {low} and {high} %"
    return f"{between}{mean} ({confidence(effect.alpha)})"


def _bounded(name: str, effect: Effect) -> str:
    """An estimate of which only a lower or upper bound is known."""
    known = effect.effect_percent
    if is_unknown(effect):
        return f"{name} unknown"
    if effect.bound == Bound.AT_LEAST:
        return (
            f"{name} {signed(known)} % or more"
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
    """An estimate alone: +25.0 %, 3.1 times."""
    known = effect.effect_percent
    if is_unknown(effect):
        return "unknown"
    if effect.bound != Bound.EXACT:
        end = "more" if effect.bound == Bound.AT_LEAST else "less"
        return f"{times(known)} times or {end}" if is_ratio(known) else f"{signed(known)} % or {end}"
    if has_no_estimate(effect):
        return _between(effect)
    return f"{times(known)} times" if is_ratio(known) else f"{signed(known, decimals_for((known,)))} %"


def loads(levels: Sequence[Mapping[str, float]]) -> str:
    """Load levels: at 10, 20 and 40 connections; at 8 loads from 1 to 128 connections."""
    values = [next(iter(level.values())) for level in levels]
    unit = "connections" if "connections" in levels[0] else "transactions/s"
    if unit == "connections" and values == [1]:
        unit = "connection"
    if len(values) > LISTED_LEVELS:
        return f"at {len(values)} loads from {min(values):g} to {max(values):g} {unit}"
    return f"at {join_words([f'{value:g}' for value in values])} {unit}"


def better(metric: str, *, faster: bool) -> str:
    """How a variant compares: "is faster than", "has a lower p95 latency than"."""
    if metric == THROUGHPUT:
        return f"is {'faster' if faster else 'slower'} than"
    return f"has a {'lower' if faster else 'higher'} {METRICS[metric]} than"


def excluded(effect: Effect) -> list[str]:
    """The differences that an interval around zero excludes."""
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
