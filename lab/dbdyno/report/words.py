"""The text form of numbers and names, the same in page, charts and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from dbdyno.store.measured import Figures
from dbdyno.store.verdict import Change, Comparison, Effect, Factor, JudgedEffect, Point, Scaling

# An en dash and a true minus sign, by name because they look like a hyphen.
MISSING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

# Verdict codes of verdict.json, and their text.
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
# The same for an interaction: whether the effect of one factor depends on the other.
INTERACTIONS = VERDICTS | {
    "equivalent": "no interaction",
    "faster": "interact",
    "slower": "interact",
    "undecided": "inconclusive",
}
LEVELS = {"stop": "stop", "warn": "warning", "note": "note"}
METRICS = {"throughput": "throughput", "latency_p95_us": "p95 latency"}
# Title of the row that averages over all loads.
ALL_LOADS = "all loads combined"


def verdict(code: str | None) -> str:
    """The text of a verdict code; an en dash for a comparison without a verdict."""
    return MISSING if code is None else VERDICTS[code]


def css_class(code: str | None, factors: Sequence[str] = ()) -> str:
    """The CSS class of a verdict: its code if report.css has a colour for it, else "neutral".

    An interaction of two `factors` is neither good nor bad.
    """
    coloured = (
        {"not-comparable"} if len(factors) > 1 else {"faster", "slower", "equivalent", "not-comparable"}
    )
    return code if code in coloured else "neutral"


def heading(entry: Comparison | Factor) -> str:
    """The heading above a verdict sentence."""
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
    """A value of a comparison's metric with its unit; a `censored` value is a lower bound."""
    if value is None:
        return MISSING
    if censored:
        return f"> {metric_value(metric, value)}"
    return f"{rate(value)} /s" if metric == "throughput" else f"{milliseconds(value)} ms"


def percent(value: float, decimals: int = 1) -> str:
    """A change with its sign and without its unit; the minus sign is as wide as a plus, so columns align."""
    text = f"{value:+,.{decimals}f}"
    return text[1:] if float(text.replace(",", "")) == 0.0 else text.replace("-", MINUS)


def decimals_of(values: Iterable[float | None], delta_percent: float | None = None) -> int:
    """1, or 2 if rounding to one decimal moves a value across 0 or ±delta."""
    limits = [0.0] if delta_percent is None else [0.0, delta_percent, -delta_percent]
    known = [value for value in values if value is not None]
    moved = any(_side(round(value, 1), limit) != _side(value, limit) for value in known for limit in limits)
    return 2 if moved else 1


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def _decimals(entry: Change) -> int:
    """A verdict depends only on the ends of the interval, so the estimate needs no second decimal."""
    ends = [end for end in entry.interval_percent or () if end is not None and end > -100.0]
    return decimals_of(ends, entry.delta_percent if isinstance(entry, JudgedEffect) else None)


def change(entry: Change) -> str:
    """The change of a point, of all loads or of a cost: "≥ +12.0 %" if only a bound is known."""
    value = entry.effect_percent
    if value is None or (value <= -100.0 and entry.bound == "at-least"):
        # No ratio is below 0, so "at least -100 %" says nothing.
        return MISSING
    sign = {"at-least": "≥ ", "at-most": "≤ "}.get(str(entry.bound), "")
    return f"{sign}{percent(value, _decimals(entry))} %"


def interval(entry: Change, usual: float | None = None) -> str:
    """The interval of a change in percent, with its confidence if that is not the `usual` one."""
    bounds = entry.interval_percent
    if bounds is None:
        return MISSING
    text = bounds_text(bounds, _decimals(entry))
    level = entry.confidence if isinstance(entry, Effect) else usual
    return text if level is None or usual is None or level == usual else f"{text} ({confidence(level)})"


def bounds_text(bounds: Sequence[float | None], decimals: int = 1) -> str:
    """Both ends of an interval, or the known one; None is an unknown end."""
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
    """The ends of an interval, None for an unknown end.

    A lower end of -100 % counts as unknown, since no metric can decrease further. Both ends are -100 % if the
    variant completed no transaction.
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
    """The verdict on a factor, or on the interaction of two."""
    code = row.verdict
    return MISSING if code is None else (VERDICTS if len(row.factors) == 1 else INTERACTIONS)[code]


def knee(entry: Scaling) -> str:
    """The number of connections with the highest throughput by the scalability law: "128 [96, 180]".

    Without a number if it is outside the measured loads.
    """
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
    """The numbers of connections with nearly the highest throughput: "from 8 to 64"."""
    ends = entry.plateau
    if ends is None:
        return MISSING
    low, high = ends
    return f"at {low:,.10g}" if low == high else f"from {low:,.10g} to {high:,.10g}"


def median(point: Point, arm: Literal["baseline", "variant"]) -> str:
    """The median of the baseline or the variant with its unit; "> x" if it is only a lower bound."""
    more = point.censored is not None and getattr(point.censored, arm)
    return metric_value(point.metric, getattr(point, arm), censored=more)


def latency(figures: Figures, name: str) -> str:
    """One latency of a trial in milliseconds: "> 1,234.00" if that is only a lower bound."""
    return ("> " if name in figures.censored else "") + milliseconds(figures.metric(name))


def effect(entry: Change) -> str:
    """Change and interval in one line: "+3.0 % [+1.0, +5.0]"."""
    size, ends = change(entry), interval(entry)
    if size == MISSING:
        return ends if ends in {MISSING, "unknown"} else f"{ends} %"
    return size if ends == MISSING else f"{size} {ends}" if ends.startswith("[") else f"{size} (CI {ends})"


def level(unit: str, value: float) -> str:
    """A load level as text: "10 connections" or "500 transactions/s"."""
    if unit == "connections":
        return f"{value:,.10g} connection{'' if value == 1 else 's'}"
    return f"{value:,.10g} transactions/s"


def order_effect(comparison: Comparison, baseline: str) -> str:
    """The effect of running later in a block, and the variant's effect without it."""
    order, variant = comparison.order, comparison.variant
    assert order is not None, "the caller checked"
    size = size_text(order.effect_percent, order.interval_percent)
    without = size_text(order.crossover_percent, order.crossover_interval_percent)
    return (
        f"Order effect on {METRICS[comparison.curve.metric]}: {size} for the variant that ran later in a "
        f"block (blocks with {baseline} first: {order.blocks[0]}, with {variant} first: {order.blocks[1]}). "
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
