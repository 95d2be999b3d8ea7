"""The longest time in the window of a trial in which no transaction completed."""

from __future__ import annotations

from collections.abc import Sequence

from dbdyno.store.records import Span

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
        found = [(gaps["longest_start_us"], gaps["longest_us"])]
        if consecutive and since_us is not None:
            found.append((since_us, part["start_us"] + gaps["leading_us"] - since_us))
        longest = max([longest, *found], key=lambda gap: gap[1])
        if since_us is None or part["events"]:
            since_us = part["end_us"] - gaps["trailing_us"]
    return longest
