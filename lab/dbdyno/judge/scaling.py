"""How each variant scales with connections: its highest throughput, and the scalability law if it fits.

The law is fitted to the medians of the blocks. The estimate and interval of its peak come from the peaks of
single blocks, by the signed-rank method. A law can be fitted to any curve: on a plateau its peak would be
precise and wrong. So the law is used only if it deviates from every median by at most 10 %, or by no more
than noise explains. And a peak inside the tested range is given only if throughput is significantly lower at
both ends of the range: no law can show a peak that the measurements do not show. With fewer than six blocks
neither can be significant, so there is no peak.

Two results need no law: the highest median, and the loads whose throughput could be within 2 % of it, by
simultaneous intervals of all loads against the highest. A trial that its server failed has throughput 0,
which neither the law nor the intervals can represent: a variant with a failure has only its highest median.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.measured import THROUGHPUT
from dbdyno.stats import usl
from dbdyno.stats.joint import joint_intervals
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import hodges_lehmann, interval
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import Highest, Scaling

# Number of points of the law's curve in a chart.
CURVE_POINTS = 60
# Maximum deviation of a law from a median: as a share, and in standard errors of the median.
MISFIT = 0.10
MISFIT_ERRORS = 3.0
# Ratio of the standard error of a median to that of a mean, for normal values: sqrt(pi / 2).
MEDIAN_ERROR = math.sqrt(math.pi / 2.0)
# Relative distance from the highest throughput within which loads belong to the plateau.
PLATEAU = 0.02


@dataclass(frozen=True)
class _Sweep:
    """Throughput of one variant on one workload: block -> connections -> transactions per second."""

    blocks: Mapping[int, Mapping[float, float]]
    # The median over the blocks, by connections in ascending order.
    medians: Mapping[float, float]

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest number of connections."""
        return min(self.medians), max(self.medians)

    @property
    def highest(self) -> float:
        """The connections with the highest median."""
        return max(self.medians, key=self.medians.__getitem__)

    def logs(self) -> NDArray[np.float64]:
        """Log throughput of the blocks with results at all loads: a row per block, a column per load."""
        complete = [block for block in self.blocks.values() if set(block) == set(self.medians)]
        return np.log([[block[level] for level in self.medians] for block in complete])


def scaling(trials: Sequence[MeasuredTrial], experiment: Experiment) -> list[Scaling]:
    """One entry per workload and variant; empty for open loops and for fewer than 4 loads."""
    levels = sorted({point.connections for point in experiment.load.points()})
    if experiment.load.rate or len(levels) < usl.LEVELS_MIN:
        return []
    entries = []
    for workload in experiment.workloads:
        for variant in experiment.variants:
            names = (workload.title, variant.name)
            sweep = _sweep([t for t in trials if (t.place.workload, t.place.variant) == names], levels)
            # Fewer than 4 loads have results, or none has throughput.
            if len(sweep.medians) >= usl.LEVELS_MIN and any(sweep.medians.values()):
                entries.append(_scaling(sweep, *names))
    return entries


def _scaling(sweep: _Sweep, workload: str, variant: str) -> Scaling:
    """The entry of one variant on one workload. A trial that its server failed has no throughput."""
    has_failures = any(0.0 in block.values() for block in sweep.blocks.values())
    return Scaling(
        workload=workload,
        variant=variant,
        levels=sweep.range,
        highest=Highest(connections=sweep.highest, throughput=sweep.medians[sweep.highest]),
        blocks=len(sweep.blocks),
        **({} if has_failures else _law(sweep)),
    )


def _law(sweep: _Sweep) -> dict[str, Any]:
    """The law, its peak, and the plateau of a sweep without failures."""
    law = usl.fit(list(sweep.medians), list(sweep.medians.values()))
    misfit = math.expm1(max(abs(math.log(law.throughput(n) / x)) for n, x in sweep.medians.items()))
    plateau = _plateau(sweep)
    fits = misfit < max(MISFIT, MISFIT_ERRORS * _median_error(sweep))
    measured = {"fit_error_percent": misfit * 100.0, "plateau": plateau}
    if not fits:
        return measured
    return {
        **measured,
        **_knee(sweep, law, plateau),
        "model": "usl",
        "rate": law.rate,
        "sigma": law.sigma,
        "kappa": law.kappa,
        "curve": _curve(law, *sweep.range),
    }


def _sweep(trials: Sequence[MeasuredTrial], levels: Sequence[int]) -> _Sweep:
    blocks: dict[int, dict[float, float]] = {}
    for trial in trials:
        if trial.is_result:
            at = float(trial.place.level[1])
            blocks.setdefault(trial.place.block, {})[at] = trial.value(THROUGHPUT)
    medians = {
        level: median(block[level] for block in blocks.values() if level in block)
        for level in map(float, levels)
        if any(level in block for block in blocks.values())
    }
    return _Sweep(blocks, medians)


def _median_error(sweep: _Sweep) -> float:
    """Standard error of a load's median, as a share, from the variation that blocks and loads
    do not explain.
    """
    logs = sweep.logs()
    if len(logs) < 2:
        return 0.0
    rest = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    blocks, loads = logs.shape
    deviation = math.sqrt(float(np.sum(rest**2)) / ((blocks - 1) * (loads - 1)))
    return MEDIAN_ERROR * deviation / math.sqrt(blocks)


def _plateau(sweep: _Sweep) -> tuple[float, float] | None:
    """The range of connections whose throughput could be within 2 % of the highest; None for few blocks."""
    logs, levels = sweep.logs(), list(sweep.medians)
    best = levels.index(sweep.highest)
    if not len(logs):
        return None
    others = [column for column in range(len(levels)) if column != best]
    intervals = joint_intervals([list(logs[:, other] - logs[:, best]) for other in others], ALPHA)
    near = [sweep.highest]
    for other, joint in zip(others, intervals, strict=True):
        if joint is None:
            return None
        if joint.high >= math.log1p(-PLATEAU):
            near.append(levels[other])
    return min(near), max(near)


def _knee(sweep: _Sweep, law: usl.Law, plateau: Sequence[float] | None) -> dict[str, Any]:
    """The peak in connections if it is inside the tested range, else on which side of the range it is.

    Empty if the measurements do not show the law's rise or fall significantly, as with too few blocks.
    """
    if plateau is None:
        return {}
    single = usl.knees(list(sweep.blocks.values()))
    logs = [math.log(max(knee, 1e-9)) for knee in single]
    knee = math.exp(hodges_lehmann(logs)) if logs else law.knee
    low, high = sweep.range
    place = "below" if knee < low else "above" if knee > high else "inside"
    rises, falls = plateau[0] > low, plateau[1] < high
    if (place != "below" and not rises) or (place != "above" and not falls):
        return {}
    ends = interval(logs, ALPHA) if logs else None
    # An end of the interval outside the tested range is unknown.
    bounds = ends and [n if low <= n <= high else None for n in map(math.exp, (ends.low, ends.high))]
    inside = place == "inside"
    return {
        "knee": place,
        "knee_connections": knee if inside else None,
        "knee_interval": bounds,
        # The law's throughput may exceed the measured one, which the server reached.
        "knee_throughput": min(law.throughput(knee), sweep.medians[sweep.highest]) if inside else None,
    }


def _curve(law: usl.Law, low: float, high: float) -> list[tuple[float, float]]:
    """Connections and throughput along the law, evenly on a logarithmic axis."""
    steps = [low * (high / low) ** (step / (CURVE_POINTS - 1)) for step in range(CURVE_POINTS)]
    return [(n, law.throughput(n)) for n in steps]


def knee_findings(entries: Sequence[Scaling]) -> Iterator[Finding]:
    """R07: sweeps whose loads do not include the peak, so that the variants' highest throughputs cannot be
    compared.
    """
    for place, text, loads in (
        (
            "above",
            "throughput had not fallen at {high:g} connections, the highest load: its peak is at least there",
            "higher",
        ),
        (
            "below",
            "throughput fell from {low:g} connections on, the lowest load: its peak is at most there",
            "lower",
        ),
    ):
        for workload in dict.fromkeys(entry.workload for entry in entries):
            outside = [e for e in entries if e.workload == workload and e.knee == place]
            if outside:
                low, high = outside[0].levels
                names = ", ".join(entry.variant for entry in outside)
                yield Finding(
                    "R07",
                    "note",
                    f"{workload} on {names}: {text.format(low=low, high=high)}",
                    {"workload": workload, "variants": [e.variant for e in outside], "knee": place},
                    fix=f"Add {loads} loads to connections in [load]",
                )
