"""R01: whether the variants were warm during the measurement.

Every trial gives three log ratios of throughput (`judge/window.py`): the second half of the window over its
first half, the window over the second half of the warm-up, and the window over the first half of it. For a
comparison each is looked at for both variants and for their difference, averaged over the points, one value
per block: nine rows, tested together by the joint sign-flip test. The comparisons of a run share 5 % evenly:
that is the chance of even one false finding among all of them. A significant change is a finding where it
matters:

- within the window: above 1 % (or half of the declared delta);
- from the warm-up to the window: where in addition more than that is still missing in the window, judged by
  how fast the changes become smaller (`stats.steady.remaining`). A warm-up that did its work is no finding.

The first half of the warm-up is what shows a slow warm-up in short trials: its change is the largest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.judge.wording import is_ratio, times
from dbdyno.stats.joint import JointInterval, joint_intervals
from dbdyno.stats.paired import ALPHA
from dbdyno.stats.signed_rank import blocks_needed, hodges_lehmann, percent
from dbdyno.stats.steady import remaining
from dbdyno.store.measured import MeasuredTrial

# Smaller changes are not reported if no delta is declared.
CHANGE_MIN_PERCENT = 1.0
# Warm-up and measurement together: shorter trials cannot show a warm-up of some tens of seconds.
RECORDED_MIN_S = 30.0
# Share of the planned window that must be left, and share of the trials in which less is a note. No warning:
# by chance alone the MSER-5 cut reaches into the measurement in 13 to 20 % of trials of 3 to 5 s, and the
# variants of a block, however many, share the largest cut.
SHORT_WINDOW = 0.95
SHORT_TRIALS = 0.75
# In the order in which changes are reported: the strongest evidence first.
WITHIN, LATE, EARLY = "within", "late", "early"
PARTS = (WITHIN, LATE, EARLY)
_FROM_TO = {
    WITHIN: "from the first to the second half of the measurement",
    LATE: "from the second half of the warm-up to the measurement",
    EARLY: "from the first half of the warm-up to the measurement, without levelling off",
}

Row = list[float]


@dataclass(frozen=True)
class Change:
    """A change of throughput over the blocks of a comparison."""

    variant: str
    part: str
    log_ratio: float
    # Confidence interval at 1 - alpha; an end that the blocks cannot determine is infinite.
    interval: tuple[float, float]
    alpha: float
    # If only the difference is significant, the name of the baseline, which changed by less.
    baseline: str = ""


def warm_state(
    trials: Sequence[MeasuredTrial], experiment: Experiment, *, has_warmup_trials: bool
) -> list[Finding]:
    """The findings R01. `has_warmup_trials`: a warm-up trial of every variant has completed.

    None if the load changes during the measurement, because no steady state is expected.
    """
    if experiment.load.is_changing:
        return []
    findings = list(_drifts(trials, experiment))
    if not findings and not has_warmup_trials:
        findings += _unchecked(trials, experiment)
    return [*findings, *_shortened(trials, experiment)]


def _shortened(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note if the cut has shortened most windows: less was measured than planned. This says nothing about
    the servers.
    """
    planned_s = experiment.load.duration_s
    lengths_s = {trial.index: trial.window.length_us / 1e6 for trial in trials if trial.window is not None}
    short = {index: length for index, length in lengths_s.items() if length < SHORT_WINDOW * planned_s}
    if len(short) > SHORT_TRIALS * len(lengths_s):
        yield Finding(
            "R01",
            "note",
            f"the warm-up cut shortened the measurement in {len(short)} of {len(lengths_s)} trials: "
            f"{min(short.values()):.1f} of {planned_s:.1f} s count in the shortest",
            {"what": "cut", "window_s": {str(index): length for index, length in short.items()}},
            fix="To measure for the whole duration, set warmup in [load] to more than "
            f"{_edges(trials)[2]:g} s",
        )


def _drifts(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """Variants whose throughput still changed: each at most once per workload, with its strongest change."""
    baseline = experiment.variants[0].name
    for workload in experiment.workloads:
        of = [trial for trial in trials if trial.workload == workload.title]
        reported: set[str] = set()
        for variant in experiment.variants[1:]:
            for change in drift_changes(of, experiment, baseline, variant.name):
                if change.variant not in reported:
                    reported.add(change.variant)
                    yield _drift(change, workload.title, experiment, _longer_warmup(of, experiment))


def drift_changes(
    trials: Sequence[MeasuredTrial], experiment: Experiment, baseline: str, variant: str
) -> list[Change]:
    """The strongest significant change of either variant; without one, that of their difference.

    `trials` are the trials of one workload.
    """
    # Key of the difference: no variant has an empty name.
    difference = ""
    blocks = sorted({trial.block for trial in trials})
    alpha = ALPHA / _comparisons(experiment)
    if len(blocks) < blocks_needed(alpha):
        return []
    rows: dict[tuple[str, str], Row] = {}
    for part in PARTS:
        below, above = (_row(trials, name, part, experiment, blocks) for name in (baseline, variant))
        rows |= {
            (baseline, part): below,
            (variant, part): above,
            (difference, part): [one - other for one, other in zip(above, below, strict=True)],
        }
    least = math.log1p((experiment.design.delta_percent or 2.0 * CHANGE_MIN_PERCENT) / 200.0)
    edges = _edges(trials)
    intervals = dict(zip(rows, joint_intervals(list(rows.values()), alpha), strict=True))
    changes: dict[str, Change] = {}
    for (name, part), row in rows.items():
        change = _change(name, part, row, intervals[name, part], alpha)
        if change is None or abs(change.log_ratio) <= least:
            continue
        if part == WITHIN or _missing(rows, name, part, edges) > least:
            changes.setdefault(name, change)
    if differing := changes.pop(difference, None):
        return list(changes.values()) or [replace(differing, variant=variant, baseline=baseline)]
    return list(changes.values())


def _comparisons(experiment: Experiment) -> int:
    """Number of comparisons in a run, which share the chance of a false finding."""
    return max(1, len(experiment.variants) - 1) * len(experiment.workloads)


def _change(name: str, part: str, row: Row, interval: JointInterval | None, alpha: float) -> Change | None:
    """The change of a row; None if it is not significant."""
    if interval is None or interval.p_value > alpha:
        return None
    centre = min(max(hodges_lehmann(_known(row)), interval.low), interval.high)
    return Change(name, part, centre, (interval.low, interval.high), alpha)


def _missing(
    rows: Mapping[tuple[str, str], Row], name: str, part: str, edges: tuple[float, float, float, float]
) -> float:
    """How far the window still is from steady state, estimated from the changes since either half of the
    warm-up.
    """
    early, late = (hodges_lehmann(_known(rows[name, one])) for one in (EARLY, LATE))
    if part == EARLY and early * late <= 0.0:
        # The changes have opposite signs: the first half says nothing about the end.
        return 0.0
    return remaining(early, late, edges)


def _known(row: Row) -> Row:
    return [value for value in row if not math.isnan(value)] or [0.0]


def _row(
    trials: Sequence[MeasuredTrial], variant: str, part: str, experiment: Experiment, blocks: Sequence[int]
) -> Row:
    """One log ratio per block, the mean over the points; NaN if the value of a point is unknown."""
    by_block: dict[int, dict[tuple[str, float], float]] = {}
    for trial in trials:
        drift = trial.drift
        ratio = getattr(drift, part) if drift is not None and trial.variant == variant else None
        if ratio is not None:
            by_block.setdefault(trial.block, {})[trial.point] = ratio
    points = len(experiment.load.points())
    return [
        fmean(by_block[block].values()) if len(by_block.get(block, ())) == points else math.nan
        for block in blocks
    ]


def _edges(trials: Sequence[MeasuredTrial]) -> tuple[float, float, float, float]:
    """Bounds of the first and second half of the warm-up and of the measurement, in seconds."""
    measured = [trial for trial in trials if trial.window is not None]
    warmup = median([trial.warmup_end_us for trial in measured]) / 1e6 if measured else 0.0
    end = median([trial.window.end_us for trial in measured if trial.window]) / 1e6 if measured else 0.0
    return 0.0, warmup / 2.0, warmup, end


def _drift(change: Change, workload: str, experiment: Experiment, fix: str) -> Finding:
    size = percent(change.log_ratio)
    # JSON has no infinite numbers.
    interval = [percent(end) if math.isfinite(end) else None for end in change.interval]
    on = f" on {workload}" if len(experiment.workloads) > 1 else ""
    more = f" more than that of {change.baseline}" if change.baseline else ""
    confidence = round(100.0 * (1.0 - change.alpha), 1)
    verb = "rose" if size > 0.0 else "fell"
    if is_ratio(size):
        moved = f"{verb} to {times(size)} times"
        low, high = ("unknown" if end is None else times(end) for end in interval)
    else:
        moved = f"{verb} by {abs(size):.1f} %{more}"
        nearest_first = interval if size > 0.0 else interval[::-1]
        low, high = ("unknown" if end is None else f"{abs(end):.1f}" for end in nearest_first)
    return Finding(
        "R01",
        "warn",
        f"throughput of {change.variant}{on} still {moved} {_FROM_TO[change.part]} "
        f"({confidence:g} % CI {low} to {high}): its figures are not those of a warm server",
        {
            "variant": change.variant,
            "workload": workload,
            "change_percent": size,
            "interval_percent": interval,
            "confidence": 1.0 - change.alpha,
            "what": "within" if change.part == WITHIN else "before",
            "part": change.part,
            **({"baseline": change.baseline} if change.baseline else {}),
        },
        change.variant,
        fix=fix,
    )


def _longer_warmup(trials: Sequence[MeasuredTrial], experiment: Experiment) -> str:
    """The fix: a longer warm-up, and the key for it."""
    warmup_s = _edges(trials)[2]
    automatic = "" if experiment.load.warmup_s is None else ', or warmup = "auto"'
    return f"Set warmup in [load] to more than {warmup_s:g} s{automatic}"


def _unchecked(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note where neither a warm-up trial nor the blocks could show a server that was still warming up."""
    load = experiment.load
    warmup_s = load.warmup_allowance_s()
    recorded_s = warmup_s + load.duration_s
    blocks = _blocks_tested(trials, experiment)
    comparisons = _comparisons(experiment)
    needed = blocks_needed(ALPHA / comparisons)
    if load.rate:
        why = "at a fixed rate throughput does not show whether a server is warm"
    elif load.warmup_s is not None and recorded_s < RECORDED_MIN_S:
        why = (
            f"a warm-up of {warmup_s:g} s and a measurement of {load.duration_s:g} s cannot show that a "
            "server needs much longer to become warm"
        )
    elif blocks < needed:
        several = f" for {comparisons} comparisons" if comparisons > 1 else ""
        why = f"the test for drift needs {needed} blocks{several} and has {blocks}"
    else:
        return
    yield Finding(
        "R01",
        "note",
        f"warm state not checked: {why}",
        {
            "what": "unchecked",
            "warmup_s": warmup_s,
            "duration_s": load.duration_s,
            "blocks": blocks,
            "blocks_needed": needed,
        },
        fix=_fix(experiment, needed),
    )


def _blocks_tested(trials: Sequence[MeasuredTrial], experiment: Experiment) -> int:
    """Number of blocks that the test for drift can use, for the variant and workload with the fewest."""
    counts = []
    for workload in experiment.workloads:
        of = [trial for trial in trials if trial.workload == workload.title]
        blocks = sorted({trial.block for trial in of})
        for variant in experiment.variants:
            row = _row(of, variant.name, WITHIN, experiment, blocks)
            counts.append(sum(not math.isnan(ratio) for ratio in row))
    return min(counts)


def _fix(experiment: Experiment, blocks: int) -> str:
    """How to make the check of the warm state possible."""
    if experiment.load.warmup_s is not None and experiment.design.renews_data:
        return 'Set warmup = "auto" in [load]: one warm-up trial per variant then finds the warm-up'
    return f"Use {blocks} blocks or more, and trials of {RECORDED_MIN_S:g} s or more"
