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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dbdyno.experiment.metrics import THROUGHPUT
from dbdyno.experiment.model import Experiment
from dbdyno.stats import usl
from dbdyno.stats.joint import joint_intervals
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import hodges_lehmann, interval
from dbdyno.store.measured import MeasuredTrial
from dbdyno.store.verdict import HighestMedian, Scaling

# Number of values along the law's curve, for the chart.
CURVE_POINTS = 60
# The law fits if it deviates from no median by more than this share, or by more than this number of standard
# errors of the median, whichever is larger.
DEVIATION_MAX = 0.10
DEVIATION_ERRORS = 3.0
# Ratio of the standard error of a median to that of a mean, for normal values: sqrt(pi / 2).
MEDIAN_TO_MEAN_ERROR = math.sqrt(math.pi / 2.0)
# A load belongs to the plateau if its throughput may be at most this share below the highest.
PLATEAU_SHARE = 0.02


@dataclass(frozen=True)
class _Sweep:
    """Throughput of one variant on one workload: block -> connections -> transactions per second."""

    blocks: Mapping[int, Mapping[float, float]]
    # The median over the blocks, by connections in ascending order.
    medians: Mapping[float, float]

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and highest number of connections."""
        return min(self.medians), max(self.medians)

    @property
    def highest(self) -> float:
        """The connections with the highest median."""
        return max(self.medians, key=self.medians.__getitem__)

    def logs(self) -> NDArray[np.float64]:
        """Log throughput of the blocks with results at all loads: a row per block, a column per load."""
        complete = [block for block in self.blocks.values() if set(block) == set(self.medians)]
        return np.log([[block[load] for load in self.medians] for block in complete])


def scaling(trials: Sequence[MeasuredTrial], experiment: Experiment) -> list[Scaling]:
    """One entry per workload and variant; empty for open loops and for fewer than 4 loads."""
    loads = sorted({point.connections for point in experiment.load.points()})
    if experiment.load.has_set_rate or len(loads) < usl.LOADS_MIN:
        return []
    entries = []
    for workload in experiment.workloads:
        for variant in experiment.variants:
            names = (workload.title, variant.name)
            sweep = _sweep([t for t in trials if (t.workload, t.variant) == names], loads)
            # Otherwise fewer than 4 loads have results, or the throughput is 0 at every load.
            if len(sweep.medians) >= usl.LOADS_MIN and any(sweep.medians.values()):
                entries.append(_scaling(sweep, *names))
    return entries


def _scaling(sweep: _Sweep, workload: str, variant: str) -> Scaling:
    """How one variant scales on one workload."""
    has_failures = any(0.0 in block.values() for block in sweep.blocks.values())
    return Scaling(
        workload=workload,
        variant=variant,
        levels=sweep.range,
        highest=HighestMedian(connections=sweep.highest, throughput=sweep.medians[sweep.highest]),
        blocks=len(sweep.blocks),
        **({} if has_failures else _law(sweep)),
    )


def _law(sweep: _Sweep) -> dict[str, Any]:
    """The keys of verdict.json about the law, its peak and the plateau, for a sweep without failures."""
    law = usl.fit(list(sweep.medians), list(sweep.medians.values()))
    deviation = math.expm1(max(abs(math.log(law.throughput(n) / x)) for n, x in sweep.medians.items()))
    plateau = _plateau(sweep)
    fits = deviation < max(DEVIATION_MAX, DEVIATION_ERRORS * _median_error(sweep))
    measured = {"fit_error_percent": deviation * 100.0, "plateau": plateau}
    if not fits:
        return measured
    return {
        **measured,
        **_peak(sweep, law, plateau),
        "model": "usl",
        "rate": law.rate,
        "sigma": law.sigma,
        "kappa": law.kappa,
        "curve": _curve(law, *sweep.range),
    }


def _sweep(trials: Sequence[MeasuredTrial], loads: Sequence[int]) -> _Sweep:
    blocks: dict[int, dict[float, float]] = {}
    for trial in trials:
        if trial.is_result:
            blocks.setdefault(trial.block, {})[float(trial.point.value)] = trial.value(THROUGHPUT)
    medians = {
        load: median(block[load] for block in blocks.values() if load in block)
        for load in map(float, loads)
        if any(load in block for block in blocks.values())
    }
    return _Sweep(blocks, medians)


def _median_error(sweep: _Sweep) -> float:
    """Relative standard error of the median at one load.

    It comes from the residuals of log throughput after the means of blocks and loads are subtracted.
    """
    logs = sweep.logs()
    if len(logs) < 2:
        return 0.0
    residuals = logs - logs.mean(axis=0) - logs.mean(axis=1, keepdims=True) + logs.mean()
    blocks, loads = logs.shape
    deviation = math.sqrt(float(np.sum(residuals**2)) / ((blocks - 1) * (loads - 1)))
    return MEDIAN_TO_MEAN_ERROR * deviation / math.sqrt(blocks)


def _plateau(sweep: _Sweep) -> tuple[float, float] | None:
    """The range of connections whose throughput may be within 2 % of the highest; None if blocks
    are too few.
    """
    logs, loads = sweep.logs(), list(sweep.medians)
    best = loads.index(sweep.highest)
    if not len(logs):
        return None
    others = [column for column in range(len(loads)) if column != best]
    intervals = joint_intervals([list(logs[:, load] - logs[:, best]) for load in others], ALPHA)
    near = [sweep.highest]
    for load, joint in zip(others, intervals, strict=True):
        if joint is None:
            return None
        if joint.high >= math.log1p(-PLATEAU_SHARE):
            near.append(loads[load])
    return min(near), max(near)


def _peak(sweep: _Sweep, law: usl.Law, plateau: Sequence[float] | None) -> dict[str, Any]:
    """The keys of verdict.json about the peak. If the peak is outside the tested range, only its side is
    given.

    Empty if the measurements do not show significantly that throughput rises before the peak and falls after
    it.
    """
    if plateau is None:
        return {}
    of_blocks = usl.peaks(list(sweep.blocks.values()))
    logs = [math.log(max(peak, 1e-9)) for peak in of_blocks]
    peak = math.exp(hodges_lehmann(logs)) if logs else law.peak
    low, high = sweep.range
    side = "below" if peak < low else "above" if peak > high else "inside"
    rises, falls = plateau[0] > low, plateau[1] < high
    if (side != "below" and not rises) or (side != "above" and not falls):
        return {}
    ends = interval(logs, ALPHA) if logs else None
    # An end of the interval outside the tested range is unknown.
    bounds = ends and [n if low <= n <= high else None for n in map(math.exp, (ends.low, ends.high))]
    is_inside = side == "inside"
    return {
        "knee": side,
        "knee_connections": peak if is_inside else None,
        "knee_interval": bounds,
        # The law may give more than the highest measured median, so that median is the limit.
        "knee_throughput": min(law.throughput(peak), sweep.medians[sweep.highest]) if is_inside else None,
    }


def _curve(law: usl.Law, low: float, high: float) -> list[tuple[float, float]]:
    """Connections and throughput along the law, at equal distances on a logarithmic axis."""
    steps = [low * (high / low) ** (step / (CURVE_POINTS - 1)) for step in range(CURVE_POINTS)]
    return [(n, law.throughput(n)) for n in steps]
