"""Determines the window of a trial (the part that counts), and how much throughput changed during the trial,
and computes the figures of the window: throughput, latency, errors; for display, times without a transaction,
throughput in short spans, and the distribution of latencies.

With a declared warm-up the window is the measuring phase. With ``warmup = "auto"`` the window may start
later: the MSER-5 method determines from the engine's ticks when the warm-up ended, at the latest in the
middle of the measurement. That time is the cut. All trials that are compared with each other (same block,
workload and load) get the latest of their cuts, so a server in steady state is never compared with one that
is still warming up. In a trial in slices the declared number of slices is the warm-up.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from dbdyno.experiment.metrics import FEW_PERCENTILES, LATENCY_MEAN, PERCENTILES, percentile_of
from dbdyno.measure import slices
from dbdyno.measure.recording import Recording, failure, read
from dbdyno.stats.histogram import Histogram, Percentile, merge, percentile
from dbdyno.stats.steady import mser5
from dbdyno.store import StoredTrial
from dbdyno.store.live import Part
from dbdyno.store.measured import (
    BACKLOG_SHARE,
    DISTRIBUTION_PERCENTS,
    Drift,
    Figures,
    MeasuredTrial,
    StatementFigures,
    Ticks,
    Window,
)
from dbdyno.store.records import Interval, Slice, Span

MICROSECONDS = 1_000_000.0
# The mean latency is known if the time that unfinished transactions have waited raises it by at most this
# share.
RAISED_SHARE = 0.01
# What `figures` raises for incomplete records, as without an ended transaction or without the last record.
INCOMPLETE = (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError)
# Error classes of an outage: a connection was lost, or a new one was refused.
OUTAGE_CLASSES = ("lost", "refused")


def windows(recordings: Sequence[Recording], *, automatic: bool) -> list[Window]:
    """The windows of trials of the same block, workload and load, in the order of `recordings`."""
    if any(recording.is_sliced for recording in recordings):
        return [slices.window(recording) for recording in recordings]
    cuts_us = [cut for cut in map(_cut_us, recordings) if cut is not None] if automatic else []
    common_us = max(cuts_us, default=None)
    return [_window(recording, common_us) for recording in recordings]


def _window(recording: Recording, cut_us: int | None) -> Window:
    start_us, end_us = recording.measure["start_us"], recording.measure["end_us"]
    if cut_us is not None and cut_us > start_us:
        # Latencies are recorded per interval, so the window starts with the next interval.
        later_us = [edge for edge in _edges_us(recording) if edge >= cut_us]
        start_us = min(later_us) if later_us else max(_edges_us(recording))
    return Window(start_us, end_us, cut_us)


def _cut_us(recording: Recording) -> int | None:
    """The time at which the warm-up of one trial ended; None if the trial is too short for MSER-5."""
    latest_us = max(_edges_us(recording))
    within = sum(at_us <= latest_us for at_us, _ in recording.ticks)
    cut = mser5([events for _, events in recording.ticks], within)
    if cut is None:
        return None
    return recording.ticks[cut - 1][0] if cut else 0


def _edges_us(recording: Recording) -> list[int]:
    """The possible starts of a window: starts of intervals in the first half of the measurement."""
    start_us, end_us = recording.measure["start_us"], recording.measure["end_us"]
    middle_us = (start_us + end_us) // 2
    starts = [i["start_us"] for i in recording.intervals if i["phase"] == "measure"]
    return [start_us, *(start for start in starts if start_us < start <= middle_us)]


def drift(recording: Recording, window: Window) -> Drift:
    """How throughput changed between parts of a trial."""
    if recording.is_sliced:
        return slices.drift(recording)
    warmup_us = recording.measure["start_us"]
    middle_us = (window.start_us + window.end_us) // 2
    whole = _rate(recording, window.start_us, window.end_us)
    return Drift(
        within=_log_ratio(
            _rate(recording, middle_us, window.end_us), _rate(recording, window.start_us, middle_us)
        ),
        late=_log_ratio(whole, _rate(recording, warmup_us // 2, warmup_us)),
        early=_log_ratio(whole, _rate(recording, 0, warmup_us // 2)),
    )


def _rate(recording: Recording, start_us: int, end_us: int) -> float:
    """Mean transactions per tick in a part of a trial; 0 if it contains no tick."""
    events = [count for at_us, count in recording.ticks if start_us < at_us <= end_us]
    return sum(events) / len(events) if events else 0.0


def _log_ratio(later: float, earlier: float) -> float | None:
    return math.log(later / earlier) if later > 0.0 and earlier > 0.0 else None


def figures(recording: Recording, window: Window, further: Mapping[str, float] | None = None) -> Figures:
    """The figures of a window; `further` are percentiles besides `PERCENTILES`.

    Raises an error of `INCOMPLETE` if the records are.
    """
    counted = parts(recording, window)
    events = sum(part["events"] for part in counted)
    errors, classes = _errors(recording, counted)
    low_us = min(low for part in counted if (low := part["latency_min_us"]) is not None)
    high_us = max(high for part in counted if (high := part["latency_max_us"]) is not None)
    further = further or {}
    weighted = slices.latencies(recording)
    latencies_us = weighted or merge(part["latency_us"] for part in counted)
    latencies = _latencies(recording, counted, latencies_us, (low_us, high_us), PERCENTILES | dict(further))
    mean_us = (
        slices.mean_us(weighted) if weighted else sum(part["latency_sum_us"] for part in counted) / events
    )
    dropped = sum(part["dropped"] for part in counted)
    censored = [name for name, latency in latencies.items() if latency.censored]
    if dropped or _raises_mean(_censored(recording, counted), events, mean_us):
        censored.insert(0, LATENCY_MEAN)
    intervals = _intervals(recording, window)
    generators: Sequence[Interval | Slice] = recording.counted or intervals
    gap_start_us, gap_us = longest_gap(counted, consecutive=not recording.is_sliced) or (None, None)
    return Figures(
        events=events,
        throughput=events / (window.length_us / MICROSECONDS),
        latency_mean_us=mean_us,
        latency_min_us=low_us,
        **{name: latency.value_us for name, latency in latencies.items() if name not in further},
        percentiles={name: latency.value_us for name, latency in latencies.items() if name in further},
        censored=tuple(censored),
        at_most={
            name: latency.at_most_us
            for name, latency in latencies.items()
            if math.isfinite(latency.at_most_us)
        },
        errors=dict(sorted(errors.items())),
        error_classes=classes,
        errors_per_1000=sum(errors.values()) / events * 1000.0,
        dropped=dropped,
        backlog=intervals[-1].get("backlog", 0) if intervals else 0,
        row_count_mismatches=sum(part["row_count_mismatches"] for part in counted),
        rate_limit_wait=sum(part.get("rate_limit_wait_us", 0) for part in counted)
        / (window.length_us * recording.plan["load"]["connections"]),
        statements=sum(part["reads"] + part["writes"] + part["other"] for part in counted),
        longest_gap_us=gap_us,
        longest_gap_start_us=gap_start_us if gap_us else None,
        generator_cpu=_generator_mean(generators, "cpu"),
        generator_lag_us=max((float(i["generator"].get("lag_us_p99", 0)) for i in generators), default=0.0),
        generator_delay_us=float(recording.measure.get("generator", {}).get("client_delay_us_p99") or 0.0),
        generator_steal=_generator_mean(generators, "steal"),
    )


def _errors(recording: Recording, parts: Sequence[Span]) -> tuple[dict[str, int], dict[str, str]]:
    """Number and class of each error code.

    In slices, those of an outage are counted over the whole trial: a connection that was closed while the
    load was paused is lost in the guard time, which belongs to no part.
    """
    errors: Counter[str] = Counter()
    for part in parts:
        errors.update(part["errors"])
    classes = merge_classes(part.get("error_classes", {}) for part in parts)
    if not recording.is_sliced:
        return errors, classes
    of_trial = recording.measure.get("error_classes", {})
    outage = {code: entry for code, entry in of_trial.items() if entry in OUTAGE_CLASSES}
    return {**errors, **{code: recording.measure["errors"][code] for code in outage}}, {**classes, **outage}


def merge_classes(parts: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Error code -> class. A code that has different classes gets "lost" if that is one of them."""
    classes: dict[str, str] = {}
    for part in parts:
        for code, error_class in part.items():
            if classes.get(code) != "lost":
                classes[code] = error_class
    return dict(sorted(classes.items()))


def _latencies(
    recording: Recording,
    parts: Sequence[Span],
    latencies_us: Histogram,
    ends_us: tuple[float, float],
    percents: Mapping[str, float],
) -> dict[str, Percentile]:
    """The percentiles and the maximum over `parts`, by the names of the figures.

    `latencies_us` are the latencies, the smallest and the largest of which are `ends_us`. In an open loop the
    percentiles include transactions that were unfinished at the end of the measurement.
    """
    low_us, high_us = ends_us
    if not latencies_us:
        raise ValueError("the latency histogram is empty")
    drained = merge([recording.measure.get("drained_us", ())])
    latencies_us = merge([list(latencies_us.items()), list(drained.items())])
    if drained or recording.is_sliced:
        # The records have no exact maximum of the transactions that ended after the measurement, only
        # buckets.
        high_us = max(high_us, float(max(latencies_us)))
    censored = _censored(recording, parts)
    latencies = {
        name: value
        for name, percent in percents.items()
        if (value := percentile(latencies_us, percent, low_us, high_us, censored)) is not None
    }
    longest_us = max(censored, default=0)
    latencies["latency_max_us"] = Percentile(max(high_us, float(longest_us)), censored=bool(censored))
    return latencies


def _censored(recording: Recording, parts: Sequence[Span]) -> dict[int, int]:
    """The lower bounds of unknown latencies: those of dropped and unfinished transactions.

    The records contain them per phase. If `parts` is only a part of the phase, some of them belong to
    transactions that were dropped before. As many of the longest are left out, so that no percentile is too
    high.
    """
    censored = merge([recording.measure.get("censored_us", ())])
    surplus = recording.measure["dropped"] - sum(part["dropped"] for part in parts)
    for lower_us in sorted(censored, reverse=True):
        taken = min(surplus, censored[lower_us])
        censored[lower_us] -= taken
        surplus -= taken
    return {lower_us: count for lower_us, count in censored.items() if count}


def _raises_mean(unknown: Histogram, events: int, mean_us: float) -> bool:
    """Whether the mean latency of the transactions that ended is only a lower bound, because those of which
    only a lower bound is known are too many (R07) or have waited too long.
    """
    number, waited_us = sum(unknown.values()), sum(lower * count for lower, count in unknown.items())
    raised_us = (events * mean_us + waited_us) / (events + number)
    return number > BACKLOG_SHARE * events or raised_us > mean_us * (1.0 + RAISED_SHARE)


def parts(recording: Recording, window: Window) -> Sequence[Span]:
    """The records that add up to the window: the totals of the measuring phase, or some of its intervals, or
    the slices that count.
    """
    if recording.is_sliced:
        return recording.counted
    measure = recording.measure
    if (window.start_us, window.end_us) == (measure["start_us"], measure["end_us"]):
        return [measure]
    return _intervals(recording, window)


def _intervals(recording: Recording, window: Window) -> list[Interval]:
    return [
        i for i in recording.intervals if i["start_us"] >= window.start_us and i["end_us"] <= window.end_us
    ]


def _generator_mean(intervals: Sequence[Interval | Slice], name: Literal["cpu", "steal"]) -> float:
    """The mean over intervals of one of the load generator's shares, weighted by the length of the
    intervals.
    """
    weighted = [(i["end_us"] - i["start_us"], i["generator"].get(name, 0.0)) for i in intervals]
    length = sum(us for us, _ in weighted)
    return sum(us * share for us, share in weighted) / length if length else 0.0


def interval_events(recording: Recording) -> tuple[tuple[int, int, int], ...]:
    """Start, end (in microseconds) and transactions of every interval or slice."""
    parts = recording.slices or recording.intervals
    return tuple((i["start_us"], i["end_us"], i["events"]) for i in parts)


def figures_of(trials: Iterable[MeasuredTrial]) -> list[tuple[int, Figures]]:
    """Index and figures of the trials that have figures."""
    return [(trial.index, trial.figures) for trial in trials if trial.figures is not None]


# Maximum number of spans of a trial; a chart has about as many pixels.
SPANS_MAX = 300
# Length of a tick of the records, if their plan does not name another one.
TICK_US = 100_000
# Beginning and length of a gap, in microseconds.
Gap = tuple[int, int]


def longest_gap(parts: Sequence[Span], *, consecutive: bool) -> Gap | None:
    """The longest gap in the parts that add up to a window; a length of 0: all are shorter than 1 ms.

    If the parts are `consecutive`, a gap may continue from one to the next; slices are not. None if the
    records are those of an engine that does not record gaps.
    """
    longest: Gap = (0, 0)
    # Where the gap begins that lasts at the beginning of the part.
    since_us: int | None = None
    for part in parts:
        gaps = part.get("gaps")
        if gaps is None:
            return None
        candidates = [(gaps["longest_start_us"], gaps["longest_us"])]
        if consecutive and since_us is not None:
            candidates.append((since_us, part["start_us"] + gaps["leading_us"] - since_us))
        longest = max([longest, *candidates], key=lambda gap: gap[1])
        if since_us is None or part["events"]:
            since_us = part["end_us"] - gaps["trailing_us"]
    return longest


def ticks(recording: Recording, window: Window) -> Ticks | None:
    """The transactions of a window in short spans; None in slices, and if the window has no tick."""
    tick_us = recording.plan.get("report", {}).get("tick_us", TICK_US)
    within = [(at, events) for at, events in recording.ticks if window.start_us < at <= window.end_us]
    if recording.is_sliced or not within or not tick_us:
        return None
    number = math.ceil(window.length_us / tick_us)
    width_us = tick_us * math.ceil(number / SPANS_MAX)
    # A span that the end of the window cuts would look like a stall.
    spans = [0] * (window.length_us // width_us)
    for at_us, events in within:
        index = (at_us - window.start_us - 1) // width_us
        if index < len(spans):
            spans[index] += events
    return Ticks(window.start_us, width_us, tuple(spans)) if spans else None


# A percentile is known if at least this many transactions are beyond it.
SHOWN_BEYOND_MIN = 10


def distribution(recording: Recording, window: Window) -> tuple[float, ...]:
    """The latency in microseconds at the first of `DISTRIBUTION_PERCENTS`: as many as are known."""
    counted = parts(recording, window)
    latencies = slices.latencies(recording) or merge(part["latency_us"] for part in counted)
    total = sum(part["events"] for part in counted)
    shown = [entry for entry in DISTRIBUTION_PERCENTS if (100.0 - entry) / 100.0 * total >= SHOWN_BEYOND_MIN]
    values = [percentile(latencies, entry, *_ends(latencies)) for entry in shown]
    return tuple(value.value_us for value in values if value is not None)


def statements(recording: Recording, window: Window) -> dict[str, StatementFigures]:
    """Every kind of statement and its figures, over the windows of the records that begin in the
    measurement. {} in slices, whose records do not tell which statements count.
    """
    if recording.is_sliced:
        return {}
    records = [
        record
        for record in recording.statement_records
        if record["phase"] == "measure" and record["end_us"] > window.start_us
    ]
    names = list(dict.fromkeys(name for record in records for name in record["kinds"]))
    events = sum(
        interval["events"]
        for interval in recording.intervals
        if records
        and records[0]["start_us"] <= interval["start_us"]
        and interval["end_us"] <= records[-1]["end_us"]
    )
    result: dict[str, StatementFigures] = {}
    for name in names:
        latencies_us = merge(
            record["kinds"][name]["latency_us"] for record in records if name in record["kinds"]
        )
        count = sum(record["kinds"][name]["count"] for record in records if name in record["kinds"])
        figures = {
            key: value.value_us
            for key, percent in FEW_PERCENTILES.items()
            if (value := percentile(latencies_us, percent, *_ends(latencies_us))) is not None
        }
        if events and len(figures) == len(FEW_PERCENTILES):
            result[name] = StatementFigures(per_transaction=count / events, **figures)
    return result


def _ends(histogram: Histogram) -> tuple[float, float]:
    """The lower edges of the first and last bucket."""
    return float(min(histogram, default=0)), float(max(histogram, default=0))


def preview(trial: StoredTrial, metric: str) -> Figures | None:
    """The figures of a trial over its whole measurement, without the warm-up cut that its block may get, with
    the latency `metric`; None if it failed.

    Raises StoreProblem if the stored records cannot be read.
    """
    recording = read(trial.records(), trial.meta.get("slices"))
    if failure(trial, recording) is not None:
        return None
    percent = percentile_of(metric)
    further = {metric: percent} if percent is not None and metric not in PERCENTILES else None
    try:
        return figures(recording, windows([recording], automatic=False)[0], further)
    except INCOMPLETE:
        # Incomplete records, which check R04 reports.
        return None


def live_percentile_us(part: Part, percent: float) -> float | None:
    """A percentile of a part's latencies in microseconds; None without transactions.

    The engine's own figure if the trial has ended; else that of the transactions that have ended, exact to
    half a bucket (0.05 %).
    """
    if (exact_us := part.percentiles_us.get(f"p{percent:g}")) is not None:
        return exact_us
    latencies = merge([part.latency_us])
    if not latencies:
        return None
    result = percentile(latencies, percent, float(min(latencies)), float("inf"))
    return None if result is None else result.value_us
