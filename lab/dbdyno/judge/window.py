"""The part of a trial that counts (its window), and how much throughput drifted around it.

With a declared warm-up the window is the measuring phase. With ``warmup = "auto"`` this module computes the
MSER-5 cut on the engine's ticks, over the warm-up and the first half of the measurement. All trials that are
compared with each other (same block, workload and point) get the largest of their cuts, so a server in steady
state is never compared with one that is still warming up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.judge.recording import Recording
from dbdyno.stats.steady import mser5
from dbdyno.store.measured import Drift, Window


def windows(recordings: Sequence[Recording], *, automatic: bool) -> list[Window]:
    """One window per recording of the same block, workload and point, in the same order."""
    cuts_us = [cut for cut in map(_cut_us, recordings) if cut is not None] if automatic else []
    common_us = max(cuts_us, default=None)
    return [_window(recording, common_us) for recording in recordings]


def _window(recording: Recording, cut_us: int | None) -> Window:
    start_us, end_us = int(recording.measure["start_us"]), int(recording.measure["end_us"])
    if cut_us is not None and cut_us > start_us:
        # Latencies are recorded only for whole intervals.
        later_us = [edge for edge in _edges_us(recording) if edge >= cut_us]
        start_us = min(later_us) if later_us else max(_edges_us(recording))
    return Window(start_us, end_us, cut_us)


def _cut_us(recording: Recording) -> int | None:
    """The time at which the warm-up of one trial ended; None if the trial is too short to determine it."""
    latest_us = max(_edges_us(recording))
    within = sum(at_us <= latest_us for at_us, _ in recording.ticks)
    cut = mser5([events for _, events in recording.ticks], within)
    if cut is None:
        return None
    return recording.ticks[cut - 1][0] if cut else 0


def _edges_us(recording: Recording) -> list[int]:
    """Possible starts of a window: the starts of the intervals in the first half of the measurement."""
    start_us, end_us = int(recording.measure["start_us"]), int(recording.measure["end_us"])
    middle_us = (start_us + end_us) // 2
    starts = [int(i["start_us"]) for i in recording.intervals if i["phase"] == "measure"]
    return [start_us, *(start for start in starts if start_us < start <= middle_us)]


def drift(recording: Recording, window: Window) -> Drift:
    """How throughput changed between the parts of a trial, from its ticks."""
    warmup_us = int(recording.measure["start_us"])
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
    """Transactions per tick of a span; 0 if the span contains no tick."""
    events = [count for at_us, count in recording.ticks if start_us < at_us <= end_us]
    return sum(events) / len(events) if events else 0.0


def _log_ratio(above: float, below: float) -> float | None:
    return math.log(above / below) if above > 0.0 and below > 0.0 else None
