"""Costs and their changes as text: "pool makes 3.1 context switches per query instead of 5.6"."""

from __future__ import annotations

from dbdyno.explain.measures import Measure

# Unit -> larger units with their factors.
_SCALES = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs")),
    "KiB": ((1024.0**2, "GiB"), (1024.0, "MiB"), (1.0, "KiB")),
}


def sentence(measure: Measure, variant: str, baseline: str, levels: tuple[float, float], per: str) -> str:
    """One difference. `levels` are the amounts of baseline and variant; `per` is "query" or "transaction"."""
    before, after = (amount(measure, level) for level in levels)
    if measure.phrase:
        return f"{variant} {measure.phrase.format(after)} per {per} instead of {before}"
    return f"{measure.title}: {after} per {per} with {variant}, {before} with {baseline}"


def amount(measure: Measure, value: float) -> str:
    """A cost with its unit and three significant digits: "512 µs", "3.1", "0.004"."""
    if value == 0.0:
        return "none" if not measure.unit else f"0 {_SCALES[measure.unit][-1][1]}"
    if not measure.unit:
        return figures(value)
    size, unit = next((one for one in _SCALES[measure.unit] if value >= one[0]), _SCALES[measure.unit][-1])
    return f"{figures(value / size)} {unit}"


def figures(value: float) -> str:
    """Three significant digits, without an exponent if possible."""
    if value == 0.0:
        return "0"
    if value >= 99.95:
        return f"{value:,.0f}"
    if value < 0.0001:
        return f"{value:.1e}"
    text = f"{value:.3g}"
    return text if "e" not in text else f"{value:.6f}".rstrip("0")
