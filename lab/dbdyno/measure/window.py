"""Determines the window of a trial (the part that counts), and how much throughput changed during the trial.

With a declared warm-up the window is the measuring phase. With ``warmup = "auto"`` the window may start
later: the MSER-5 method determines from the engine's ticks when the warm-up ended, at the latest in the
middle of the measurement. That time is the cut. All trials that are compared with each other (same block,
workload and load) get the latest of their cuts, so a server in steady state is never compared with one that
is still warming up. In a trial in slices the declared number of slices is the warm-up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.measure import slices
from dbdyno.measure.recording import Recording
from dbdyno.stats.steady import mser5
from dbdyno.store.measured import Drift, Window


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
