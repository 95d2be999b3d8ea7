"""R01: tests whether the servers were warm during the measurement.

Every trial gives three log ratios of throughput (`measure/figures.py`): the second half of the window over
its first half ("within"), the window over the second half of the warm-up ("late"), and the window over the
first half of the warm-up ("early"). Averaged over the loads, each ratio gives one value per block: for the
baseline, for each variant, and for their difference. All these rows of a run are tested together by the joint
sign-flip test at a level of 1 %, which limits the chance of even one false finding in the run. A significant
change is reported in these cases:

- within the window: if it is above 1 % (or half of the declared delta);
- from the warm-up to the window: if the window is also still that far from steady state, which is
  extrapolated from how fast the changes become smaller (`stats.steady.remaining`). A change during a
  sufficient warm-up is not reported.

The early ratio shows the largest change, so it detects a slow warm-up in short trials.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from dbdyno.experiment.model import Experiment
from dbdyno.finding import Finding
from dbdyno.result_text import is_ratio, times
from dbdyno.rules.register import rule
from dbdyno.say.wording import join_words
from dbdyno.stats.family import ADVISORY_ALPHA
from dbdyno.stats.joint import JointInterval, joint_intervals
from dbdyno.stats.signed_rank import blocks_needed, hodges_lehmann, percent
from dbdyno.stats.steady import remaining
from dbdyno.store.measured import MeasuredTrial
from dbdyno.text import compose, join

# Smaller changes, in percent, are not reported unless a delta is declared.
CHANGE_MIN_PERCENT = 1.0
# If warm-up and measurement together are shorter, in seconds, they cannot show a warm-up of some tens of
# seconds.
RECORDED_MIN_S = 30.0
# A note says so if more than this share of the trials (SHORT_TRIALS) have windows shorter than this share of
# the measurement (SHORT_WINDOW). It is not a warning: by chance alone the MSER-5 cut is inside the
# measurement in 13 to 20 % of trials of 3 to 5 s, and all variants of a block get the latest cut among them.
SHORT_WINDOW = 0.95
SHORT_TRIALS = 0.75
# In the order in which changes are reported: the strongest evidence first.
WITHIN, LATE, EARLY = "within", "late", "early"
PARTS = (WITHIN, LATE, EARLY)
_FROM_TO = {
    WITHIN: compose("from the first to the second half of the measurement"),
    LATE: compose("from the second half of the warm-up to the measurement"),
    EARLY: compose("from the first half of the warm-up to the measurement, without levelling off"),
}

Row = list[float]


@dataclass(frozen=True)
class Change:
    """A change of throughput during the trials of one variant."""

    variant: str
    part: str
    log_ratio: float
    # Simultaneous interval of the log ratio; an end that the blocks cannot determine is infinite.
    interval: tuple[float, float]
    # Name of the baseline if the change is significant only relative to the baseline's change; else "".
    baseline: str = ""


def _caveat_of_warm_state(finding: Finding) -> str:
    evidence = finding.evidence
    if evidence["what"] == "warmup-trial":
        return compose(
            "{variant} had not settled after {length_s:g} s",
            variant=evidence["variant"],
            length_s=evidence["length_s"],
        )
    if evidence["what"] == "no-warmup-trial":
        return compose(
            "the warm-up trial of {variant} failed",
            variant=evidence["variant"],
        )
    percent = evidence["change_percent"]
    return compose(
        "throughput of {variant} still {change}{more}",
        variant=evidence["variant"],
        change=_movement(percent),
        more=_more_than(evidence.get("baseline")),
    )


def _movement(percent: float) -> str:
    if percent > 0:
        return compose("rose by {percent:.1f} %", percent=percent)
    return compose("fell by {percent:.1f} %", percent=-percent)


def _more_than(baseline: str | None) -> str:
    return compose(" more than that of {baseline}", baseline=baseline) if baseline else ""


@rule("R01", caveat=_caveat_of_warm_state)
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
    """A note if the warm-up cut shortened most windows, so that less was measured than planned."""
    planned_s = experiment.load.duration_s
    lengths_s = {
        trial.index: trial.window.length_us / 1e6
        for trial in trials
        if trial.window is not None and trial.window.counted_us is None
    }
    short = {index: length for index, length in lengths_s.items() if length < SHORT_WINDOW * planned_s}
    if len(short) > SHORT_TRIALS * len(lengths_s):
        yield Finding(
            "R01",
            "note",
            compose(
                "the warm-up cut shortened the measurement in {number} of {number_2} trials: "
                "{values:.1f} of {planned_s:.1f} s count in the shortest",
                number=len(short),
                number_2=len(lengths_s),
                values=min(short.values()),
                planned_s=planned_s,
            ),
            {"what": "cut", "window_s": {str(index): length for index, length in short.items()}},
            fix=compose(
                "To measure for the whole duration, set warmup in [load] to more than {edges:g} s",
                edges=_edges(trials)[2],
            ),
        )


def _drifts(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """The warnings about variants whose throughput still changed: at most one per variant and workload."""
    rows = _rows(trials, experiment)
    intervals = dict(zip(rows, joint_intervals(list(rows.values()), ADVISORY_ALPHA), strict=True))
    baseline = experiment.variants[0].name
    for workload in experiment.workloads:
        of_workload = [trial for trial in trials if trial.workload == workload.title]
        changes = _changes(
            {key: row for key, row in rows.items() if key.workload == workload.title},
            intervals,
            of_workload,
            experiment,
        )
        reported: set[str] = set()
        for variant in experiment.variants[1:]:
            changes_here = [
                change_of_variant
                for name in (baseline, variant.name)
                if (change_of_variant := changes.get((name, "")))
            ]
            differing = changes.get((variant.name, baseline))
            for change in changes_here or filter(None, [differing]):
                if change.variant not in reported:
                    reported.add(change.variant)
                    yield _drift(change, workload.title, experiment, _longer_warmup(of_workload, experiment))


@dataclass(frozen=True)
class _Key:
    """What a row is about: a part of the trials of one variant."""

    workload: str
    variant: str
    # Name of the baseline if the row is the difference to its change; else "".
    baseline: str
    part: str


def _rows(trials: Sequence[MeasuredTrial], experiment: Experiment) -> dict[_Key, Row]:
    """The rows that are tested together, which have the same blocks."""
    blocks = sorted({trial.block for trial in trials})
    first, *others = (variant.name for variant in experiment.variants)
    rows: dict[_Key, Row] = {}
    for workload, part in itertools.product(experiment.workloads, PARTS):
        title = workload.title
        of_workload = [trial for trial in trials if trial.workload == title]
        of_first = _row(of_workload, first, part, experiment, blocks)
        rows[_Key(title, first, "", part)] = of_first
        for name in others:
            row = _row(of_workload, name, part, experiment, blocks)
            rows[_Key(title, name, "", part)] = row
            rows[_Key(title, name, first, part)] = [
                entry - base for entry, base in zip(row, of_first, strict=True)
            ]
    return rows


def _changes(
    rows: Mapping[_Key, Row],
    intervals: Mapping[_Key, JointInterval | None],
    trials: Sequence[MeasuredTrial],
    experiment: Experiment,
) -> dict[tuple[str, str], Change]:
    """Variant, baseline -> the first significant change by `PARTS`, from the rows of one workload."""
    smallest = math.log1p((experiment.design.delta_percent or 2.0 * CHANGE_MIN_PERCENT) / 200.0)
    edges = _edges(trials)
    changes: dict[tuple[str, str], Change] = {}
    for key, row in rows.items():
        change = _change(key, row, intervals[key])
        if change is None or abs(change.log_ratio) <= smallest:
            continue
        if key.part == WITHIN or _distance(rows, key, edges) > smallest:
            changes.setdefault((key.variant, key.baseline), change)
    return changes


def _change(key: _Key, row: Row, interval: JointInterval | None) -> Change | None:
    """The change of a row; None if it is not significant."""
    if interval is None or interval.p_value > ADVISORY_ALPHA:
        return None
    centre = min(max(hodges_lehmann(_known(row)), interval.low), interval.high)
    return Change(key.variant, key.part, centre, (interval.low, interval.high), key.baseline)


def _distance(rows: Mapping[_Key, Row], key: _Key, edges: tuple[float, float, float, float]) -> float:
    """How far the window still is from steady state, as a log ratio, extrapolated from the early and late
    changes.
    """
    early, late = (hodges_lehmann(_known(rows[replace(key, part=entry)])) for entry in (EARLY, LATE))
    if key.part == EARLY and early * late <= 0.0:
        # The changes have opposite signs, so they cannot be extrapolated.
        return 0.0
    return remaining(early, late, edges)


def _known(row: Row) -> Row:
    """The values of a row that are known; a 0 if there are none."""
    return [value for value in row if not math.isnan(value)] or [0.0]


def _row(
    trials: Sequence[MeasuredTrial], variant: str, part: str, experiment: Experiment, blocks: Sequence[int]
) -> Row:
    """One log ratio per block, averaged over the loads; NaN if the ratio at some load is unknown."""
    by_block: dict[int, dict[tuple[str, float], float]] = {}
    for trial in trials:
        drift = trial.drift
        ratio = getattr(drift, part) if drift is not None and trial.variant == variant else None
        if ratio is not None:
            by_block.setdefault(trial.block, {})[trial.point] = ratio
    loads = len(experiment.load.points())
    return [
        fmean(by_block[block].values()) if len(by_block.get(block, ())) == loads else math.nan
        for block in blocks
    ]


def _edges(trials: Sequence[MeasuredTrial]) -> tuple[float, float, float, float]:
    """Bounds of the first and second half of the warm-up and of the measurement, in seconds."""
    measured = [trial for trial in trials if trial.window is not None]
    warmup = median([trial.warmup_end_us for trial in measured]) / 1e6 if measured else 0.0
    end = median([trial.window.end_us for trial in measured if trial.window]) / 1e6 if measured else 0.0
    return 0.0, warmup / 2.0, warmup, end


def _drift(change: Change, workload: str, experiment: Experiment, fix: str) -> Finding:
    """The warning about one change."""
    change_percent = percent(change.log_ratio)
    # JSON has no infinite numbers.
    interval = [percent(end) if math.isfinite(end) else None for end in change.interval]
    on = compose(" on {workload}", workload=workload) if len(experiment.workloads) > 1 else ""
    confidence = round(100.0 * (1.0 - ADVISORY_ALPHA), 1)
    if is_ratio(change_percent):
        change_text = (
            compose("rose to {times} times", times=times(change_percent))
            if change_percent > 0
            else compose("fell to {times} times", times=times(change_percent))
        )
        low, high = ("unknown" if end is None else times(end) for end in interval)
    else:
        change_text = join("", (_movement(change_percent), _more_than(change.baseline)))
        # The end nearer to zero comes first.
        nearest_first = interval if change_percent > 0.0 else interval[::-1]
        low, high = ("unknown" if end is None else f"{abs(end):.1f}" for end in nearest_first)
    return Finding(
        "R01",
        "warn",
        compose(
            "throughput of {variant}{on} still {change_text} {from_to} ({confidence:g} % CI {low} to "
            "{high}): its figures are not those of a warm server",
            variant=change.variant,
            on=on,
            change_text=change_text,
            from_to=_FROM_TO[change.part],
            confidence=confidence,
            low=low,
            high=high,
        ),
        {
            "variant": change.variant,
            "workload": workload,
            "change_percent": change_percent,
            "interval_percent": interval,
            "confidence": 1.0 - ADVISORY_ALPHA,
            "what": "within" if change.part == WITHIN else "before",
            "part": change.part,
            **({"baseline": change.baseline} if change.baseline else {}),
        },
        change.variant,
        fix=fix,
    )


def _longer_warmup(trials: Sequence[MeasuredTrial], experiment: Experiment) -> str:
    """The fix of the warning: a longer warm-up."""
    warmup_s = _edges(trials)[2]
    automatic = "" if experiment.load.warmup_s is None else compose(', or warmup = "auto"')
    return compose(
        "Set warmup in [load] to more than {warmup_s:.3g} s{automatic}",
        warmup_s=warmup_s,
        automatic=automatic,
    )


def _unchecked(trials: Sequence[MeasuredTrial], experiment: Experiment) -> Iterator[Finding]:
    """A note where neither a warm-up trial nor the blocks could show a server that was still warming up."""
    load = experiment.load
    warmup_s = load.warmup_allowance_s()
    recorded_s = warmup_s + load.duration_s
    blocks = _blocks_tested(trials, experiment)
    needed = blocks_needed(ADVISORY_ALPHA)
    is_short = load.warmup_s is not None and recorded_s < RECORDED_MIN_S
    # `dbdyno run` has one block, whatever the file says.
    may_add_blocks = len(experiment.variants) > 1
    has_few = blocks < needed
    missing = [compose("{needed} blocks or more", needed=needed)] if has_few and may_add_blocks else []
    missing += (
        [compose("trials of {recorded_min_s:g} s or more", recorded_min_s=RECORDED_MIN_S)] if is_short else []
    )
    if load.has_set_rate:
        missing, why = [], compose("at a fixed rate throughput does not show whether a server is warm")
    elif is_short:
        why = compose(
            "a warm-up of {warmup_s:.3g} s and a measurement of {duration_s:g} s are too short to show "
            "whether the server was warm",
            warmup_s=warmup_s,
            duration_s=load.duration_s,
        )
    elif has_few and not may_add_blocks:
        why = compose("the trials of one variant do not show whether the server was warm")
    elif has_few:
        why = compose(
            "the test for drift needs {needed} blocks and has {blocks}", needed=needed, blocks=blocks
        )
    else:
        return
    yield Finding(
        "R01",
        "note",
        compose("warm state not checked: {why}", why=why),
        {
            "what": "unchecked",
            "warmup_s": warmup_s,
            "duration_s": load.duration_s,
            "blocks": blocks,
            "blocks_needed": needed,
        },
        fix=_fix(experiment, missing),
    )


def _blocks_tested(trials: Sequence[MeasuredTrial], experiment: Experiment) -> int:
    """Number of blocks that the test for drift can use; the minimum over variants and workloads."""
    counts = []
    for workload in experiment.workloads:
        of_workload = [trial for trial in trials if trial.workload == workload.title]
        blocks = sorted({trial.block for trial in of_workload})
        for variant in experiment.variants:
            row = _row(of_workload, variant.name, WITHIN, experiment, blocks)
            counts.append(sum(not math.isnan(ratio) for ratio in row))
    return min(counts)


def _fix(experiment: Experiment, missing: Sequence[str]) -> str:
    """The fix of that note: how to make the check possible; `missing` is what the blocks lack for it."""
    if experiment.load.warmup_s is not None and experiment.design.renews_data:
        return compose(
            'Set warmup = "auto" in [load]: dbdyno then measures in one extra trial per variant how '
            "long the warm-up must be"
        )
    return compose("Use {listed}", listed=join_words(missing)) if missing else ""
