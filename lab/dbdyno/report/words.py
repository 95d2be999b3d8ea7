"""Numbers and names as a reader sees them: one form each, used by page, charts and tables alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from dbdyno.store.measured import Figures
from dbdyno.store.verdict import Change, Comparison, Effect, Factor, JudgedEffect, Order, Point, Scaling

# An en dash and a true minus sign, by name because they look like a hyphen.
MISSING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

# Verdict codes of verdict.json as readers see them.
VERDICTS = {
    "not-comparable": "not comparable",
    "unfinished": "unfinished",
    "too-few-blocks": "too few blocks",
    "mixed": "mixed",
    "equivalent": "equivalent",
    "faster": "faster",
    "slower": "slower",
    "undecided": "undecided",
}
# Of two factors together: whether the effect of one depends on the other.
INTERACTIONS = VERDICTS | {
    "equivalent": "no interaction",
    "faster": "interact",
    "slower": "interact",
    "undecided": "inconclusive",
}
LEVELS = {"stop": "stop", "warn": "warning", "note": "note"}
METRICS = {"throughput": "throughput", "latency_p95_us": "p95 latency"}
# Row of a comparison that averages over its load levels.
ALL_LOADS = "all loads combined"


def verdict(code: str | None) -> str:
    """A verdict code for readers; an en dash where the comparison has no word of its own."""
    return MISSING if code is None else VERDICTS[code]


def tone(code: str | None, factors: Sequence[str] = ()) -> str:
    """The style of a verdict: its code where report.css has a colour for it, else "neutral".

    An interaction of two `factors` is neither good nor bad.
    """
    coloured = (
        {"not-comparable"} if len(factors) > 1 else {"faster", "slower", "equivalent", "not-comparable"}
    )
    return code if code in coloured else "neutral"


def heading(entry: Comparison | Factor) -> str:
    """The word above the sentence of a comparison or a factor."""
    if isinstance(entry, Factor):
        return factor_verdict(entry)
    return "identical variants" if entry.identical else verdict(entry.curve.verdict)


def rate(value: float | None) -> str:
    """Transactions per second with about four digits."""
    if value is None:
        return MISSING
    return (
        f"{value:,.0f}" if value >= 1000 or value == 0 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"
    )


def milliseconds(value_us: float | None) -> str:
    """A latency given in microseconds."""
    return MISSING if value_us is None else f"{value_us / 1000.0:,.2f}"


def metric_value(metric: str, value: float | None, *, censored: bool = False) -> str:
    """A value of a comparison's metric with its unit; more than that where it is `censored`."""
    if value is None:
        return MISSING
    if censored:
        return f"> {metric_value(metric, value)}"
    return f"{rate(value)} /s" if metric == "throughput" else f"{milliseconds(value)} ms"


def percent(value: float, decimals: int = 1) -> str:
    """A change with its sign and without its unit; a true minus sign keeps columns of figures straight."""
    text = f"{value:+,.{decimals}f}"
    return text[1:] if float(text.replace(",", "")) == 0.0 else text.replace("-", MINUS)


def decimals_of(values: Iterable[float | None], delta_percent: float | None = None) -> int:
    """1, or 2 where rounding to one decimal moves a value to the other side of 0 or of ±delta."""
    limits = [0.0] if delta_percent is None else [0.0, delta_percent, -delta_percent]
    known = [value for value in values if value is not None]
    moved = any(_side(round(value, 1), limit) != _side(value, limit) for value in known for limit in limits)
    return 2 if moved else 1


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def _decimals(entry: Change) -> int:
    """A word depends on the ends of the interval: the estimate alone needs no second decimal."""
    ends = [end for end in entry.interval_percent or () if end is not None and end > -100.0]
    return decimals_of(ends, entry.delta_percent if isinstance(entry, JudgedEffect) else None)


def change(entry: Change) -> str:
    """The change of a point, a curve or a cost: "≥ +12.0 %" where only a bound of it is known."""
    value = entry.effect_percent
    if value is None or (value <= -100.0 and entry.bound == "at-least"):
        # No ratio is below 0, so "at least -100 %" says nothing.
        return MISSING
    sign = {"at-least": "≥ ", "at-most": "≤ "}.get(str(entry.bound), "")
    return f"{sign}{percent(value, _decimals(entry))} %"


def interval(entry: Change, usual: float | None = None) -> str:
    """The interval of a change in percent, with its confidence where that is not the `usual` one."""
    bounds = entry.interval_percent
    if bounds is None:
        return MISSING
    text = bounds_text(bounds, _decimals(entry))
    level = entry.confidence if isinstance(entry, Effect) else usual
    return text if level is None or usual is None or level == usual else f"{text} ({confidence(level)})"


def bounds_text(bounds: Sequence[float | None], decimals: int = 1) -> str:
    """Both ends of an interval, or the one that is known; null is an end of which nothing is known."""
    low, high = open_ends(bounds)
    if low is None and high is None:
        return "unknown"
    if high is None:
        assert low is not None
        return f"≥ {percent(low, decimals)}"
    if low is None:
        return f"≤ {percent(high, decimals)}"
    return f"[{percent(low, decimals)}, {percent(high, decimals)}]"


def open_ends(bounds: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The ends of an interval, None where it is open: nothing can fall by more than 100 %.

    Where both ends are -100 % the variant is known to have ended no transaction.
    """
    low, high = bounds
    if low is not None and low <= -100.0 and (high is None or high > -100.0):
        return None, high
    return low, high


def confidence(level: float) -> str:
    """A confidence level: "95 %"."""
    return f"{100.0 * level:.3g} %"


def ci(entries: Sequence[Effect]) -> str:
    """The heading of a column of intervals: "95 % CI"."""
    return f"{confidence(entries[0].confidence)} CI" if entries else "CI"


def factor_verdict(row: Factor) -> str:
    """The verdict on a factor; of two together, whether they interact."""
    code = row.verdict
    return MISSING if code is None else (VERDICTS if len(row.factors) == 1 else INTERACTIONS)[code]


def knee(entry: Scaling) -> str:
    """Where throughput is highest by the law: "128 [96, 180]", or on which side of the loads it lies."""
    if entry.knee is None:
        return MISSING
    low, high = entry.levels
    if entry.knee != "inside":
        return f"below {low:,.0f}" if entry.knee == "below" else f"not reached at {high:,.0f}"
    text = f"{entry.knee_connections:,.0f}"
    if entry.knee_interval is None:
        return text
    first, last = entry.knee_interval
    ends = (
        "< " + f"{low:,.0f}" if first is None else f"{first:,.0f}",
        "> " + f"{high:,.0f}" if last is None else f"{last:,.0f}",
    )
    return f"{text} [{ends[0]}, {ends[1]}]"


def plateau(entry: Scaling) -> str:
    """The connections whose throughput is near the highest: "from 8 to 64"."""
    ends = entry.plateau
    if ends is None:
        return MISSING
    low, high = ends
    return f"at {low:,.10g}" if low == high else f"from {low:,.10g} to {high:,.10g}"


def median(point: Point, arm: Literal["baseline", "variant"]) -> str:
    """The median of the baseline or the variant with its unit; "> x" where it is only a lower bound."""
    more = point.censored is not None and getattr(point.censored, arm)
    return metric_value(point.metric, getattr(point, arm), censored=more)


def latency(figures: Figures, name: str) -> str:
    """One latency of a trial in milliseconds: "> 1,234.00" where it is only known to be more than that."""
    return ("> " if name in figures.censored else "") + milliseconds(figures.metric(name))


def effect(entry: Change) -> str:
    """Change and interval of a point or a curve in one line: "+3.0 % [+1.0, +5.0]"."""
    size, ends = change(entry), interval(entry)
    if size == MISSING:
        return ends if ends in {MISSING, "unknown"} else f"{ends} %"
    return size if ends == MISSING else f"{size} {ends}" if ends.startswith("[") else f"{size} (CI {ends})"


def level(unit: str, value: float) -> str:
    """A load level: "10 connections" or "500 transactions/s"."""
    if unit == "connections":
        return f"{value:,.10g} connection{'' if value == 1 else 's'}"
    return f"{value:,.10g} transactions/s"


def order_effect(order: Order, baseline: str, variant: str) -> str:
    """The effect of running later in a block, and the variant's effect without it."""
    size = size_text(order.effect_percent, order.interval_percent)
    first = order.blocks
    without = size_text(order.crossover_percent, order.crossover_interval_percent)
    return (
        f"Order effect: the variant that ran later in a block had {size} "
        f"(blocks with {baseline} first: {first[0]}, with {variant} first: {first[1]}). "
        f"Change without the order effect: {without}."
    )


def size_text(value: float, bounds: tuple[float, float]) -> str:
    """A change with its interval in running text: "+1.2 % (+0.3 to +2.7)"."""
    decimals = decimals_of(bounds)
    text = f"{percent(value, decimals)} %"
    low, high = open_ends(bounds)
    if low is None or high is None:
        return f"{text} ({bounds_text(bounds, decimals)})"
    return f"{text} ({percent(low, decimals)} to {percent(high, decimals)})"
