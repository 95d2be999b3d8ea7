"""The part of a trial that counts.

With a declared warm-up it is the measuring phase. With ``warmup = "auto"`` the MSER-5 cut is sought over
warm-up and measurement together, on the engine's ticks, and all trials that will be compared with one another
(same block, workload and point) get the largest cut among them: a server that warms up slowly must not be
compared in its steady state with a faster one that is still warming up, nor the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dbdyno.judge.recording import Recording
from dbdyno.stats.steady import mser5


@dataclass(frozen=True)
class Window:
    """The half-open span of a trial that counts, in microseconds since the start of its run."""

    start_us: int
    end_us: int
    # Where the warm-up ended by MSER-5; None where it was declared.
    cut_us: int | None
    # False when no steady state was found in the first half of the ticks.
    settled: bool
    # Change of throughput from the first to the second half of the window, in percent.
    drift_percent: float

    @property
    def length_us(self) -> int:
        """Length of the window."""
        return self.end_us - self.start_us


def windows(recordings: Sequence[Recording], *, automatic: bool) -> list[Window]:
    """One window per recording of the same block, workload and point, in the same order."""
    cuts = [mser5([events for _, events in recording.ticks]) for recording in recordings]
    found: list[Window] = []
    common_us = max(
        (
            recording.ticks[cut.observations - 1][0]
            for recording, cut in zip(recordings, cuts, strict=True)
            if cut.observations
        ),
        default=0,
    )
    for recording, cut in zip(recordings, cuts, strict=True):
        start_us, end_us = int(recording.measure["start_us"]), int(recording.measure["end_us"])
        if automatic and common_us > start_us:
            start_us = _next_edge(recording, common_us, end_us)
        found.append(
            Window(
                start_us=start_us,
                end_us=end_us,
                cut_us=common_us if automatic else None,
                settled=cut.settled,
                drift_percent=_drift_percent(recording, start_us, end_us),
            )
        )
    return found


def _next_edge(recording: Recording, at_us: int, end_us: int) -> int:
    """The first start of a measuring interval at or after `at_us`: latencies are only known per interval.

    The last interval is never cut off.
    """
    starts = [int(i["start_us"]) for i in recording.intervals if i["phase"] == "measure"]
    later = [start for start in starts if at_us <= start < end_us]
    return min(later) if later else max(starts)


def _drift_percent(recording: Recording, start_us: int, end_us: int) -> float:
    events = [count for at_us, count in recording.ticks if start_us < at_us <= end_us]
    half = len(events) // 2
    if half == 0:
        return 0.0
    first, second = float(np.mean(events[:half])), float(np.mean(events[half:]))
    return (second / first - 1.0) * 100.0 if first > 0 else 0.0
