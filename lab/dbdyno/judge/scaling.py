"""How each variant scales with connections: the universal scalability law, and its knee with an interval.

The curve is fitted to the medians of the blocks. The knee's estimate and interval come from the blocks' own
knees by the signed-rank machinery of every other interval. Beyond the load levels that were measured the law
is a guess, so a knee there is only said to be there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from dbdyno.experiment.model import Experiment
from dbdyno.judge.findings import Finding, finding
from dbdyno.judge.measured import Measured
from dbdyno.stats import usl
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import hodges_lehmann, interval
from dbdyno.stats.words import BLOCKS_MIN

# Points of the drawn curve.
DRAWN = 60


def scaling(trials: Sequence[Measured], experiment: Experiment) -> list[dict[str, Any]]:
    """`scaling` in verdict.json: per workload and variant; [] for open loops and fewer than 4 levels."""
    levels = sorted({point.connections for point in experiment.load.points()})
    if experiment.load.rate or len(levels) < usl.LEVELS_MIN:
        return []
    found = []
    for workload in experiment.workloads:
        for variant in experiment.variants:
            of = [t for t in trials if (t.place.workload, t.place.variant) == (workload.title, variant.name)]
            entry = _scaling(of, levels)
            if entry is not None:
                found.append({"workload": workload.title, "variant": variant.name, **entry})
    return found


def _scaling(trials: Sequence[Measured], levels: Sequence[int]) -> dict[str, Any] | None:
    """One variant on one workload; None where fewer than 4 levels have results."""
    blocks: dict[int, dict[float, float]] = {}
    for trial in trials:
        if trial.figures is not None:
            at = float(trial.place.level[1])
            blocks.setdefault(trial.place.block, {})[at] = trial.figures.throughput
    by_level = {
        level: median(block[level] for block in blocks.values() if level in block)
        for level in map(float, levels)
        if any(level in block for block in blocks.values())
    }
    if len(by_level) < usl.LEVELS_MIN:
        return None
    law = usl.fit(list(by_level), list(by_level.values()))
    errors = [abs(math.log(law.throughput(level) / x)) for level, x in by_level.items()]
    return {
        "model": "usl",
        "lambda": law.rate,
        "sigma": law.sigma,
        "kappa": law.kappa,
        "fit_error_percent": math.expm1(max(errors)) * 100.0,
        "levels": [min(by_level), max(by_level)],
        **_knee(blocks, law, min(by_level), max(by_level)),
        "curve": _curve(law, min(by_level), max(by_level)),
    }


def _knee(
    blocks: Mapping[int, Mapping[float, float]], law: usl.Law, low: float, high: float
) -> dict[str, Any]:
    """The knee in connections, null where it lies outside what was measured, and where it lies."""
    single = usl.knees(list(blocks.values()))
    logs = [math.log(max(knee, 1e-9)) for knee in single]
    knee = math.exp(hodges_lehmann(logs)) if logs else law.knee
    place = "below" if knee < low else "above" if knee > high else "inside"
    ends = interval(logs, ALPHA) if len(logs) >= BLOCKS_MIN else None
    # An end beyond the measured levels is open: null.
    bounds = None if ends is None else [_within(math.exp(end), low, high) for end in (ends.low, ends.high)]
    return {
        "knee_connections": knee if place == "inside" else None,
        "knee_interval": bounds,
        "knee": place,
        "knee_throughput": law.throughput(knee) if place == "inside" else None,
        "blocks": len(single),
    }


def _within(knee: float, low: float, high: float) -> float | None:
    return knee if low <= knee <= high else None


def _curve(law: usl.Law, low: float, high: float) -> list[list[float]]:
    """Connections and throughput along the law, evenly on a logarithmic axis."""
    steps = [low * (high / low) ** (step / (DRAWN - 1)) for step in range(DRAWN)]
    return [[n, law.throughput(n)] for n in steps]


def knee_findings(entries: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    """R07: sweeps that do not hold the peak, where one set-up's best cannot be compared with another's."""
    for place, told in (
        (
            "above",
            "throughput had not fallen at {high:g} connections, the most there were: its peak lies beyond",
        ),
        (
            "below",
            "throughput fell from {low:g} connections on, the fewest there were: its peak lies before",
        ),
    ):
        for workload in dict.fromkeys(entry["workload"] for entry in entries):
            outside = [e for e in entries if e["workload"] == workload and e["knee"] == place]
            if outside:
                low, high = outside[0]["levels"]
                names = ", ".join(entry["variant"] for entry in outside)
                yield finding(
                    "R07",
                    "note",
                    f"{workload} on {names}: {told.format(low=low, high=high)}",
                    workload=workload,
                    variants=[entry["variant"] for entry in outside],
                    knee=place,
                )
