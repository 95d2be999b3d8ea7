"""The verdict as one English sentence, generated from the numbers (checks Q01 to Q03).

It names the two set-ups, the direction, the size with its interval, the range of loads, the workload, the
blocks, and whatever a reader must know before believing it. Nobody's prose comes in, save the reason of an
override, which is quoted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.judge.comparison import Comparison
from dbdyno.stats.paired import Bound, Effect
from dbdyno.stats.words import EXPLORATORY_BELOW, Verdict

# Load levels that are listed one by one; more are given as a range.
LISTED_LEVELS = 6
# What the warning of a check means for the whole result, in a few words. Others are named by their code.
_CAVEATS = {
    "D01": "the load generator was near its limit",
    "D03": "errors, see D03",
    "R01": "steady state not reached in every trial",
    "R07": "not every offered transaction was served",
}
# Where one check warns of different things, what its evidence holds tells them apart.
_EVIDENT = {
    "some trials are missing": ("R04", "left_out"),
    "client and server share CPUs": ("P11", "cpus"),
    "another database server was busy": ("P11", "busy"),
}
_BOUNDS = {Bound.EXACT: "", Bound.AT_LEAST: "more than ", Bound.AT_MOST: "less than "}
_METRICS = {"throughput": "throughput", "latency_p95_us": "p95 latency"}


def sentence(comparison: Comparison, findings: Sequence[Mapping[str, Any]], planned_blocks: int) -> str:
    """The sentence of one comparison. `findings` are those that bear on it, in stored form."""
    variant, baseline = comparison.variant, comparison.baseline
    if comparison.verdict == Verdict.NOT_COMPARABLE or comparison.curve is None:
        return f"{variant} and {baseline} are not comparable {_range(comparison)}: {_why_not(comparison)}."
    effect = comparison.curve
    size = f"{_METRICS[comparison.scale.metric]} {_size(comparison, effect)} {_range(comparison)}"
    told = "; ".join([_evidence(comparison, effect, planned_blocks), *caveats(findings)])
    match comparison.verdict:
        case Verdict.EXPLORATORY:
            text = f"Exploratory only, {variant} against {baseline}: {size}"
        case Verdict.EQUIVALENT:
            zone = f"within ±{comparison.scale.delta_percent:g} %"
            text = f"{variant} and {baseline} are equivalent {zone}: {size}"
        case Verdict.NOT_DISTINGUISHABLE:
            text = f"{variant} is not distinguishable from {baseline}: {size}"
        case word:
            text = f"{variant} is {word} than {baseline}: {size}"
    return f"{text} ({told})."


def caveats(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """What must be said beside the result: overrides with their reason, then warnings by code."""
    overridden = {
        f"check {finding['code']} overridden: “{finding['override']}”"
        for finding in findings
        if finding["level"] == "stop" and finding.get("override")
    }
    codes = sorted({str(finding["code"]) for finding in findings if finding["level"] == "warn"})
    known = [caveat for caveat, key in _EVIDENT.items() if any(_shows(finding, *key) for finding in findings)]
    known += [_CAVEATS[code] for code in codes if code in _CAVEATS]
    said = {code for code, _ in _EVIDENT.values()} | _CAVEATS.keys()
    others = [code for code in codes if code not in said]
    if others:
        known.append(f"{'warning' if len(others) == 1 else 'warnings'} {_and(others)}")
    return [*sorted(overridden), *known]


def _shows(finding: Mapping[str, Any], code: str, evidence: str) -> bool:
    return finding["level"] == "warn" and finding["code"] == code and evidence in finding["evidence"]


def _why_not(comparison: Comparison) -> str:
    if comparison.stops:
        first = comparison.stops[0]
        more = sorted({str(stop["code"]) for stop in comparison.stops[1:]} - {str(first["code"])})
        text = str(first["text"]).strip().rstrip(".")
        return f"check {first['code']} failed ({text})" + (f", and so did {_and(more)}" if more else "")
    return "check R04 failed (no block holds both of them at every point)"


def _evidence(comparison: Comparison, effect: Effect, planned_blocks: int) -> str:
    """How much stands behind the size: blocks, confidence, floor."""
    blocks = f"{effect.blocks} block" + ("" if effect.blocks == 1 else "s")
    if effect.blocks < planned_blocks:
        blocks = f"{effect.blocks} of {planned_blocks} blocks"
    if effect.blocks < EXPLORATORY_BELOW:
        return f"{blocks}; an interval needs at least {EXPLORATORY_BELOW}"
    told = f"{blocks}, {comparison.scale.confidence * 100:g} % interval"
    if comparison.verdict == Verdict.NOT_DISTINGUISHABLE:
        floor = comparison.scale.floor_percent
        told += "; floor not measured" if floor is None else f"; floor {floor:.1f} %"
    return told


def _range(comparison: Comparison) -> str:
    """The loads and the workload: over 10, 20 and 40 connections of oltp_read_write."""
    levels = [next(iter(point.pairs.at.items())) for point in comparison.points]
    values = [f"{value:g}" for _, value in levels]
    if levels[0][0] == "connections":
        unit = "connection" if values == ["1"] else "connections"
    else:
        unit = "transactions per second"
    if len(values) > LISTED_LEVELS:
        low, high = min(value for _, value in levels), max(value for _, value in levels)
        return f"over {len(values)} loads from {low:g} to {high:g} {unit} of {comparison.workload}"
    return f"{'at' if len(values) == 1 else 'over'} {_and(values)} {unit} of {comparison.workload}"


def _size(comparison: Comparison, effect: Effect) -> str:
    """Effect and interval: -9.2 % [-10.4, -8.1], with the decimals that its word needs to be seen."""
    values = (effect.effect_percent, *(effect.interval_percent or ()))
    return size_words(effect, decimals_for(values, comparison.scale.delta_percent))


def size_words(effect: Effect, decimals: int) -> str:
    """Effect and, where the blocks allow one, interval, with so many decimals."""
    interval = effect.interval_percent
    size = f"{_BOUNDS[effect.bound]}{signed(effect.effect_percent, decimals)} %"
    if interval is None or effect.blocks < EXPLORATORY_BELOW:
        return size
    return f"{size} [{signed(interval[0], decimals)}, {signed(interval[1], decimals)}]"


def decimals_for(values: Sequence[float], delta_percent: float) -> int:
    """The fewest decimals, from 1 to 4, at which no value changes sides of 0 or of ±delta by rounding."""
    limits = (0.0, delta_percent, -delta_percent)
    for decimals in range(1, 4):
        if all(
            _side(round(value, decimals), limit) == _side(value, limit)
            for value in values
            for limit in limits
        ):
            return decimals
    return 4


def _side(value: float, limit: float) -> int:
    return (value > limit) - (value < limit)


def signed(value: float, decimals: int = 1) -> str:
    """A change with its sign; a plain 0 has none."""
    if math.isinf(value):
        return "∞"
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0.0 else text


def _and(items: Sequence[str]) -> str:
    """Items in a row: a, b and c."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
