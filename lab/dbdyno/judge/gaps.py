"""Times in the window of a trial in which no transaction completed, and throughput in short spans."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dbdyno.judge.recording import Recording
from dbdyno.store.measured import Ticks, Window
from dbdyno.store.records import Span

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
