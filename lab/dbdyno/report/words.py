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


def metric_value(metric: str, value: float | None, *, censored: bool = False) -> str:
    """A value of a comparison's metric with its unit; more than that where it is `censored`."""
    if value is None:
        return MISSING
    if censored:
        return f"> {metric_value(metric, value)}"
    return f"{rate(value)} /s" if metric == "throughput" else f"{milliseconds(value)} ms"


def change(value: float | None, decimals: int = 1) -> str:
    """A change in percent with its sign; a true minus sign keeps columns of figures straight."""
    if value is None:
        return MISSING
    text = f"{value:+.{decimals}f}"
    return f"{text[1:] if float(text) == 0.0 else text.replace('-', MINUS)} %"


def interval(bounds: Sequence[float | None] | None) -> str:
    """The interval of a change, in percent."""
    if bounds is None:
        return MISSING
    # null is an end of which nothing is known; a ratio is never below 0.
    low, high = ("∞" if bound is None else change(bound).removesuffix(" %") for bound in bounds)
    return f"[{low}, {high}]"


def bounded_change(entry: Mapping[str, Any]) -> str:
    """The change of a point or a curve; more or less than that where latencies were cut off."""
    sign = {"at-least": "> ", "at-most": "< "}.get(str(entry.get("bound")), "")
    return sign + change(entry["effect_percent"])


def factor_word(row: Mapping[str, Any]) -> str:
    """The verdict on a factor; of two together, whether they act alone."""
    verdict = str(row["verdict"])
    if len(row["factors"]) == 1 or verdict in {"not-comparable", "exploratory"}:
        return VERDICTS[verdict]
    return {"equivalent": "act alone", "not-distinguishable": "open"}.get(verdict, "do not act alone")


def knee(entry: Mapping[str, Any]) -> str:
    """Where throughput is highest: "128 [96, 180] connections", or on which side of the loads it lies."""
    low, high = entry["levels"]
    if entry["knee"] != "inside":
        return f"below {low:,.0f}" if entry["knee"] == "below" else f"not reached at {high:,.0f}"
    text = f"{entry['knee_connections']:,.0f}"
    if entry["knee_interval"] is None:
        return text
    first, last = entry["knee_interval"]
    ends = (
        "< " + f"{low:,.0f}" if first is None else f"{first:,.0f}",
        "> " + f"{high:,.0f}" if last is None else f"{last:,.0f}",
    )
    return f"{text} [{ends[0]}, {ends[1]}]"


def censored(point: Mapping[str, Any], arm: str) -> bool:
    """Whether the level of one arm ("baseline" or "variant") is only a lower bound."""
    return bool(point.get("censored", {}).get(arm))


def latency(figures: Mapping[str, Any], name: str) -> str:
    """One latency of a trial in milliseconds: "> 1,234.00" where it is only known to be more than that."""
    return ("> " if name in figures.get("censored", ()) else "") + milliseconds(figures.get(name))


def effect(entry: Mapping[str, Any]) -> str:
    """Change and interval of a point or a curve of verdict.json."""
    return f"{bounded_change(entry)} {interval(entry['interval_percent'])}"


def level(unit: str, value: float) -> str:
    """A load level: "10 connections" or "500 per second"."""
    if unit == "connections":
        return f"{value:g} connection{'' if value == 1 else 's'}"
    return f"{value:g} per second"
