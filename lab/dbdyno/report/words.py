"""Numbers and names as a reader sees them: one form each, used by page, charts and tables alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# An en dash and a true minus sign, by name because they look like a hyphen.
MISSING, MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"

# Verdict codes of verdict.json in words.
VERDICTS = {
    "not-comparable": "not comparable",
    "exploratory": "exploratory",
    "equivalent": "equivalent",
    "faster": "faster",
    "slower": "slower",
    "not-distinguishable": "not distinguishable",
}
METRICS = {"throughput": "throughput", "latency_p95_us": "p95 latency"}


def rate(value: float | None) -> str:
    """Transactions per second with about four digits."""
    if value is None:
        return MISSING
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def milliseconds(value_us: float | None) -> str:
    """A latency given in microseconds."""
    return MISSING if value_us is None else f"{value_us / 1000.0:,.2f}"


def metric_value(metric: str, value: float | None) -> str:
    """A value of a comparison's metric with its unit."""
    if value is None:
        return MISSING
    return f"{rate(value)} /s" if metric == "throughput" else f"{milliseconds(value)} ms"


def change(value: float | None, decimals: int = 1) -> str:
    """A change in percent with its sign; a true minus sign keeps columns of figures straight."""
    if value is None:
        return MISSING
    text = f"{value:+.{decimals}f}"
    return f"{text[1:] if float(text) == 0.0 else text.replace('-', MINUS)} %"


def interval(bounds: Sequence[float] | None) -> str:
    """The interval of a change, in percent."""
    if bounds is None:
        return MISSING
    low, high = (change(bound).removesuffix(" %") for bound in bounds)
    return f"[{low}, {high}]"


def effect(entry: Mapping[str, Any]) -> str:
    """Change and interval of a point or a curve of verdict.json."""
    return f"{change(entry['effect_percent'])} {interval(entry['interval_percent'])}"


def level(unit: str, value: float) -> str:
    """A load level: "10 connections" or "500 per second"."""
    if unit == "connections":
        return f"{value:g} connection{'' if value == 1 else 's'}"
    return f"{value:g} per second"
