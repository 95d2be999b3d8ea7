"""Costs and their changes as text: "pool makes 3.1 context switches per query instead of 5.6"."""

from __future__ import annotations

from dbdyno.explain.measures import Measure
from dbdyno.result_text import three_digits
from dbdyno.text import compose

# The unit of work to which costs refer -> its name.
PER = {"query": compose("query"), "transaction": compose("transaction")}
# Unit -> larger units with their factors.
_SCALES = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs")),
    "KiB": ((1024.0**2, "GiB"), (1024.0, "MiB"), (1.0, "KiB")),
}


def sentence(measure: Measure, variant: str, baseline: str, values: tuple[float, float], per: str) -> str:
    """A changed cost as a sentence. `values` are those of baseline and variant; `per` is "query" or
    "transaction".
    """
    of_baseline, of_variant = (amount(measure, value) for value in values)
    if measure.phrase:
        return compose(
            "{variant} {phrase} per {per} instead of {of_baseline}",
            variant=variant,
            phrase=compose(measure.phrase, amount=of_variant, title=measure.title),
            per=PER[per],
            of_baseline=of_baseline,
        )
    return compose(
        "{title}: {of_variant} per {per} with {variant}, {of_baseline} with {baseline}",
        title=measure.title,
        of_variant=of_variant,
        per=PER[per],
        variant=variant,
        of_baseline=of_baseline,
        baseline=baseline,
    )


def amount(measure: Measure, value: float) -> str:
    """A cost with its unit and three significant digits: "512 µs", "3.1", "0.004"."""
    if value == 0.0:
        return f"0 {_SCALES[measure.unit][-1][1]}" if measure.unit else "0"
    if not measure.unit:
        return three_digits(value)
    factor, unit = next((one for one in _SCALES[measure.unit] if value >= one[0]), _SCALES[measure.unit][-1])
    return f"{three_digits(value / factor)} {unit}"
