"""Numbers, verdicts and names as text, for the page, the charts and the tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Literal

from dbdyno.experiment.metrics import CPU, THROUGHPUT, metric_text
from dbdyno.finding import Finding
from dbdyno.result_text import (
    MISSING,
    VERDICTS,
    decimals_for,
    is_ratio,
    milliseconds,
    percent,
    rate,
    ratio_decimals,
    times,
)
from dbdyno.store import measured
from dbdyno.store.measured import Figures
from dbdyno.store.verdict import (
    Change,
    Comparison,
    Effect,
    EffectInZone,
    FactorEffect,
    Point,
    Scaling,
    SecondaryMetric,
    VerdictFile,
)
from dbdyno.text import Text, compose, join

# An interval of which neither end is known.
UNKNOWN = compose("unknown")

# Code of the verdict on the interaction of two factors -> text.
INTERACTIONS = VERDICTS | {
    "equivalent": compose("no interaction"),
    "faster": compose("interact"),
    "slower": compose("interact"),
    "undecided": compose("inconclusive"),
}
# Direction of a secondary metric -> text.
_DIRECTIONS = {"better": compose("better"), "worse": compose("worse")}
# Second line that is no metric of verdicts -> text.
_SECOND_LINES = {
    "errors_per_1000": compose("errors per 1,000 transactions"),
    "variation_percent": compose("variation between seconds"),
}
# A report has this sentence once if it compares latencies that throughput determines
# (`Experiment.ties_latency`).
TIED = compose(
    "In a closed loop without think time, throughput determines the mean latency: it is the "
    "number of connections divided by the throughput. To compare latencies at equal "
    "throughput, set a rate."
)
# Title of the row with the mean effect over all loads.
ALL_LOADS = compose("all loads combined")
# Explains the column "change" of a table with medians.
CHANGE_NOTE = compose(
    "change: estimated from the ratio of variant to baseline in each block, not from the medians"
)
# Explains the row `ALL_LOADS`: its estimate is a median of averages, so it is no mean of the rows above.
COMBINED_NOTE = compose(
    "all loads combined: estimated from the geometric mean of each block over the loads, which one slow "
    "trial moves, so it may lie outside the changes of single loads"
)


def table_notes(verdict: VerdictFile) -> list[str]:
    """What the columns of the tables of comparisons mean."""
    notes: list[str] = [CHANGE_NOTE]
    if any(len(entry.points) > 1 and entry.capacity is None for entry in verdict.comparisons):
        notes.append(COMBINED_NOTE)
    if verdict.factors and verdict.comparisons:
        notes.append(
            compose(
                "intervals of variants: {variants}, of each variant by itself; intervals of factors: "
                "{factors}, so that all verdicts hold together",
                variants=confidence(verdict.comparisons[0].curve.confidence),
                factors=confidence(verdict.factors[0].confidence),
            )
        )
    return notes


def verdict(code: str | None, checks: Sequence[Finding] = ()) -> str:
    """A verdict; an en dash for None, because a comparison of a factorial run has no verdict.

    With the run's `checks`, an undecided verdict names D06 if other processes are its reason.
    """
    return MISSING if code is None else VERDICTS[code] + _reason(code, checks)


def _reason(code: str, checks: Sequence[Finding]) -> str:
    is_disturbed = any(
        check.code == "D06" and check.level == "warn" and not check.override for check in checks
    )
    return " (D06)" if code == "undecided" and is_disturbed else ""


def css_class(code: str | None, factors: Sequence[str] = ()) -> str:
    """The CSS class of a verdict: its code if report.css has a colour for it, else "neutral".

    `factors` are the factors of the effect. An interaction (two factors) is neither good nor bad, so it has
    no colour.
    """
    coloured = (
        {"not-comparable"} if len(factors) > 1 else {"faster", "slower", "equivalent", "not-comparable"}
    )
    return code if code in coloured else "neutral"


def heading(result: Comparison | FactorEffect) -> str:
    """The heading above a verdict sentence."""
    if isinstance(result, FactorEffect):
        return factor_verdict(result)
    return compose("identical variants") if result.identical else verdict(result.curve.verdict)


def metric_value(metric: str, value: float | None, *, censored: bool = False) -> str:
    """A value with its unit; "> x" if the value is `censored`, that is, only a lower bound."""
    if value is None:
        return MISSING
    if metric in ("errors_per_1000", "variation_percent"):
        return f"{value:,.1f}{' %' if metric == 'variation_percent' else ''}"
    if censored:
        return f"> {metric_value(metric, value)}"
    if metric == CPU:
        return f"{value:,.1f} µs"
    return f"{rate(value)} /s" if metric == THROUGHPUT else f"{milliseconds(value)} ms"


def metric_name(metric: str) -> str:
    """A metric of verdicts or of secondary metrics as text."""
    return _SECOND_LINES.get(metric) or metric_text(metric)


def _decimals(effect: Change) -> int:
    """Decimals of an effect's estimate and interval. Only the ends of the interval decide the verdict, so
    only they may require a second decimal.
    """
    ends = [end for end in effect.interval_percent or () if end is not None and end > -100.0]
    return decimals_for(ends, effect.delta_percent if isinstance(effect, EffectInZone) else None)


def estimate(effect: Change) -> str:
    """The estimate of an effect: "+12.0 %", "8.0 times"; "≥ +12.0 %" if only a lower bound is known."""
    value = effect.effect_percent
    if value is None or (value <= -100.0 and effect.bound == "at-least"):
        # Every change is at least -100 %, so this bound says nothing.
        return MISSING
    sign = {"at-least": "≥ ", "at-most": "≤ "}.get(str(effect.bound), "")
    return (
        compose("{sign}{times} times", sign=sign, times=times(value))
        if is_ratio(value)
        else f"{sign}{percent(value, _decimals(effect))} %"
    )


def interval(effect: Change, column_confidence: float | None = None) -> str:
    """The interval of an effect in percent, or as a ratio if the estimate is one, with its confidence if that
    differs from the one in the column's heading.
    """
    ends = effect.interval_percent
    if ends is None:
        return MISSING
    known_bounds = [end for end in known_ends(ends) if end is not None]
    if known_bounds and effect.effect_percent is not None and is_ratio(effect.effect_percent):
        text: str = compose(
            "{interval_text} times",
            interval_text=interval_text(ends, partial(times, decimals=ratio_decimals(known_bounds))),
        )
    else:
        text = interval_text(ends, partial(percent, decimals=_decimals(effect)))
    if not isinstance(effect, Effect) or column_confidence in (None, effect.confidence):
        return text
    return join("", (text, f" ({confidence(effect.confidence)})"))


def interval_text(ends: Sequence[float | None], shown: Callable[[float], str] = percent) -> str:
    """Both ends of an interval, or the known one; None is an unknown end."""
    low, high = known_ends(ends)
    if low is None and high is None:
        return UNKNOWN
    if high is None:
        assert low is not None
        return f"≥ {shown(low)}"
    if low is None:
        return f"≤ {shown(high)}"
    return f"[{shown(low)}, {shown(high)}]"


def known_ends(ends: Sequence[float | None]) -> tuple[float | None, float | None]:
    """The ends of an interval; None for an end that carries no information.

    A lower end of -100 % carries none, because no metric can fall further. Only if both ends are -100 %,
    because the variant completed no transaction, they are the result.
    """
    low, high = ends
    if low is not None and low <= -100.0 and (high is None or high > -100.0):
        return None, high
    return low, high


def confidence(share: float) -> str:
    """A confidence level, given as a share: "95 %"."""
    return f"{100.0 * share:.3g} %"


def ci_heading(effects: Sequence[Effect | SecondaryMetric]) -> str:
    """The heading of the column with the intervals of these effects: "95 % CI"."""
    return (
        compose("{confidence} CI", confidence=confidence(effects[0].confidence)) if effects else compose("CI")
    )


# Headings of the tables that have a column for each of two variants.
_HEADINGS = ("load", "metric", "change", "blocks", "verdict")


def variant_heading(name: str) -> str:
    """The heading of a variant's column; one that has the name of another column says what it is."""
    return compose("variant {name}", name=name) if name in _HEADINGS else name


def factor_verdict(factor: FactorEffect, checks: Sequence[Finding] = ()) -> str:
    """The verdict on a factor, or on the interaction of two factors."""
    if factor.verdict is None:
        return MISSING
    words = VERDICTS if len(factor.factors) == 1 else INTERACTIONS
    return words[factor.verdict] + _reason(factor.verdict, checks)


def factor_ranking(factors: Sequence[FactorEffect]) -> str:
    """What each factor does, in one line: those with an effect first, the largest first. Of several workloads
    each factor has the largest of its effects.
    """
    has_several = len({entry.workload for entry in factors}) > 1
    effects = ranked_effects(factors)
    interactions = [entry for entry in factors if len(entry.factors) == 2]
    parts = [_factor_text(entries[0], with_workload=has_several) for entries in effects]
    of_interactions: dict[tuple[str, ...], list[str]] = {}
    for entry in interactions:
        if entry.verdict in _DIRECTED:
            of_interactions.setdefault(tuple(entry.factors), []).append(entry.workload)
    for (factor, other), workloads in of_interactions.items():
        text = compose("{factor} and {other} interact", factor=factor, other=other)
        parts.append(_on(text, dict.fromkeys(workloads)) if has_several else text)
    if not of_interactions and interactions:
        if all(entry.verdict == "equivalent" for entry in interactions):
            parts.append(compose("no interaction"))
        elif all(entry.verdict in ("undecided", "equivalent") for entry in interactions):
            parts.append(compose("no sign of an interaction"))
    text = join("; ", parts)
    name = compose("Largest effects: {text}", text=text) if has_several else text
    if not any(entry.interval_percent for entry in factors):
        return join("", (name, "."))
    return compose(
        "{name} ({confidence} intervals).", name=name, confidence=confidence(factors[0].confidence)
    )


def ranked_effects(factors: Sequence[FactorEffect]) -> list[list[FactorEffect]]:
    """The main effects of each level on all workloads: those with a size first, the largest first, in each
    list and of the lists.
    """
    by_level: dict[tuple[str, str], list[FactorEffect]] = {}
    for entry in factors:
        if len(entry.factors) == 1:
            by_level.setdefault((entry.factors[0], entry.levels[0]), []).append(entry)
    return sorted((sorted(entries, key=_rank) for entries in by_level.values()), key=lambda of: _rank(of[0]))


def _rank(entry: FactorEffect) -> tuple[bool, bool, float]:
    without_size = entry.verdict not in WITH_SIZE
    return without_size, entry.verdict != "mixed", 0.0 if without_size else -abs(entry.effect_percent or 0.0)


def _on(text: str, workloads: Iterable[str]) -> Text:
    return compose("{text} on {workloads}", text=text, workloads=join(", ", workloads))


_DIRECTED = ("faster", "slower")
# Verdicts on a factor with a size.
WITH_SIZE = (*_DIRECTED, "equivalent")


def _factor_text(entry: FactorEffect, *, with_workload: bool) -> str:
    """A main effect in a few words: "buffer_pool 1G +31.0 % [+24.0, +39.0]", "flush O_DIRECT undecided"."""
    names = {"factor": entry.factors[0], "level": entry.levels[0]}
    if entry.verdict in WITH_SIZE or entry.verdict == "mixed":
        text = (
            compose("{factor} {level} depends on the load or on another factor", **names)
            if entry.verdict == "mixed"
            else compose("{factor} {level} {effect}", **names, effect=estimate_and_interval(entry))
        )
        return _on(text, [entry.workload]) if with_workload else text
    return compose("{factor} {level}: {verdict}", **names, verdict=factor_verdict(entry))


def peak(scaling: Scaling) -> str:
    """The number of connections at which throughput is highest by the scalability law, with its interval:
    "128 [96, 180]". Outside the measured loads only the direction is known.
    """
    if scaling.knee is None:
        return MISSING
    low, high = scaling.levels
    if scaling.knee != "inside":
        return (
            compose("below {low:,.0f}", low=low)
            if scaling.knee == "below"
            else compose("not reached at {high:,.0f}", high=high)
        )
    text = f"{scaling.knee_connections:,.0f}"
    if scaling.knee_interval is None:
        return text
    first, last = scaling.knee_interval
    ends = (
        "< " + f"{low:,.0f}" if first is None else f"{first:,.0f}",
        "> " + f"{high:,.0f}" if last is None else f"{last:,.0f}",
    )
    return f"{text} [{ends[0]}, {ends[1]}]"


def plateau(scaling: Scaling) -> str:
    """The range of connections with nearly the highest throughput: "from 8 to 64"."""
    ends = scaling.plateau
    if ends is None:
        return MISSING
    low, high = ends
    return (
        compose("at {low:,.10g}", low=low)
        if low == high
        else compose("from {low:,.10g} to {high:,.10g}", low=low, high=high)
    )


def median(point: Point, variant: Literal["baseline", "variant"]) -> str:
    """The median of one of the two variants at a load, with its unit; "> x" if it is only a lower bound."""
    is_lower_bound = point.censored is not None and getattr(point.censored, variant)
    return metric_value(point.metric, getattr(point, variant), censored=is_lower_bound)


def point_cells(point: Point) -> tuple[str, str, str]:
    """The load and the medians of baseline and variant: the first cells of a row."""
    return load(*measured.Point.of(point.at)), median(point, "baseline"), median(point, "variant")


def combined(comparison: Comparison) -> tuple[str, str, str]:
    """The row of the effect over all loads: its title and, with a latency objective, the capacities of
    baseline and variant.
    """
    if comparison.capacity is None:
        return ALL_LOADS, "", ""
    return (
        metric_name("capacity"),
        _capacity(comparison.capacity.baseline),
        _capacity(comparison.capacity.variant),
    )


def _capacity(ends: tuple[float | None, float | None]) -> str:
    """A capacity with its unit: "801 /s", "> 900 /s", "< 500 /s"."""
    low, high = ends
    if low is not None:
        return f"{'> ' if high is None else ''}{metric_value('throughput', low)}"
    return MISSING if high is None else f"{'< ' if high else ''}{metric_value('throughput', high)}"


def latency(figures: Figures, name: str) -> str:
    """One of a trial's latencies in milliseconds, without the unit: "> 1,234.00" if it is only a
    lower bound.
    """
    return ("> " if name in figures.censored else "") + milliseconds(figures.metric(name))


def estimate_and_interval(effect: Change) -> str:
    """An effect in one line: "+3.0 % [+1.0, +5.0]"."""
    value, ends = estimate(effect), interval(effect)
    if value == MISSING:
        return ends if ends in {MISSING, UNKNOWN} else join("", (ends, " %"))
    if ends.startswith("["):
        # The estimate has the unit.
        ends = str(ends).removesuffix(" times")
    if ends == MISSING:
        return value
    if ends.startswith("["):
        return join(" ", (value, ends))
    return compose("{estimate} (CI {ends})", estimate=value, ends=ends)


def load(unit: str, value: float) -> str:
    """A load: "10 connections" or "500 transactions/s"."""
    if unit == "connections":
        return (
            compose("{value:,.10g} connection", value=value)
            if value == 1
            else compose("{value:,.10g} connections", value=value)
        )
    return compose("{value:,.10g} transactions/s", value=value)


def order_effect(comparison: Comparison, baseline: str) -> str:
    """How much running later in a block changes the metric, and the variant's effect without this order
    effect.
    """
    order, variant = comparison.order, comparison.variant
    assert order is not None, "the caller checked"
    effect = effect_text(order.effect_percent, order.interval_percent)
    without = effect_text(order.crossover_percent, order.crossover_interval_percent)
    metric = metric_name(comparison.curve.metric)
    return compose(
        "Order effect on {metric}: {effect} for the variant that ran later in a block (blocks "
        "with {baseline} first: {blocks}, with {variant} first: {blocks_2}). Effect of {variant} "
        "without the order effect: {without}. The intervals have 95 % confidence.",
        metric=metric,
        effect=effect,
        baseline=baseline,
        blocks=order.blocks[0],
        variant=variant,
        blocks_2=order.blocks[1],
        without=without,
    )


def further_sentences(result: Comparison | FactorEffect) -> list[str]:
    """The sentences after that of the verdict: the highest throughput, and the further metrics."""
    if isinstance(result, FactorEffect):
        return []
    highest = [result.highest_throughput.sentence] if result.highest_throughput else []
    return highest + [metric.curve.sentence for metric in result.metrics or ()]


def metric_rows(
    comparison: Comparison, checks: Sequence[Finding]
) -> list[tuple[tuple[str, ...], str | None]]:
    """The rows of the table of further metrics, each with the code of its verdict."""
    rows: list[tuple[tuple[str, ...], str | None]] = []
    for entry in comparison.metrics or ():
        name, column = metric_name(entry.curve.metric), entry.curve.confidence
        effects: list[tuple[str, str, str, Effect]] = [(*point_cells(point), point) for point in entry.points]
        if len(entry.points) > 1:
            effects.append((ALL_LOADS, "", "", entry.curve))
        for at, baseline, variant, effect in effects:
            cells = (name, at, baseline, variant, estimate(effect), interval(effect, column))
            word = verdict(effect.verdict, checks)
            rows.append(((*cells, str(effect.blocks), word), effect.verdict))
    return rows


def secondary_metrics(comparison: Comparison) -> list[tuple[str, ...]]:
    """The rows of the table of secondary metrics."""
    return [
        (
            load(*measured.Point.of(line.at)),
            metric_name(line.metric),
            metric_value(line.metric, line.baseline),
            metric_value(line.metric, line.variant),
            estimate(line),
            interval(line),
            _DIRECTIONS[line.direction] if line.direction else MISSING,
        )
        for line in comparison.secondary_metrics or ()
    ]


def effect_text(estimate_percent: float, ends: tuple[float, float]) -> str:
    """An effect for use in a sentence: "+1.2 % (+0.3 to +2.7)"."""
    decimals = decimals_for(ends)
    text = f"{percent(estimate_percent, decimals)} %"
    low, high = known_ends(ends)
    if low is None or high is None:
        return compose(
            "{text} ({interval})",
            text=text,
            interval=interval_text(ends, partial(percent, decimals=decimals)),
        )
    return compose(
        "{text} ({low} to {high})",
        text=text,
        low=percent(low, decimals),
        high=percent(high, decimals),
    )
