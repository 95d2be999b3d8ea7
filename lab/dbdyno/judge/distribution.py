"""The latency distribution of a trial and of its statements, for display. No verdict uses them."""

from __future__ import annotations

from dbdyno.judge.figures import known_latencies, parts
from dbdyno.judge.recording import Recording
from dbdyno.stats.histogram import Histogram, merge, percentile
from dbdyno.store.measured import DISTRIBUTION_PERCENTS, StatementFigures, Window

# A percentile is known if at least this many transactions are beyond it.
BEYOND_MIN = 10
# Names of the figures -> percentiles of a statement.
_OF_STATEMENTS = {"latency_p50_us": 50.0, "latency_p95_us": 95.0, "latency_p99_us": 99.0}


def distribution(recording: Recording, window: Window) -> tuple[float, ...]:
    """The latency in microseconds at the first of `DISTRIBUTION_PERCENTS`: as many as are known."""
    known = known_latencies(recording, window)
    total = sum(part["events"] for part in parts(recording, window))
    shown = [one for one in DISTRIBUTION_PERCENTS if (100.0 - one) / 100.0 * total >= BEYOND_MIN]
    values = [percentile(known, one, *_ends(known)) for one in shown]
    return tuple(value.value_us for value in values if value is not None)


def statements(recording: Recording, window: Window) -> dict[str, StatementFigures]:
    """Every kind of statement and its figures, over the windows of the records that begin in the
    measurement. {} in slices, whose records do not tell which statements count.
    """
    if recording.is_sliced:
        return {}
    records = [
        one
        for one in recording.statement_records
        if one["phase"] == "measure" and one["end_us"] > window.start_us
    ]
    names = list(dict.fromkeys(name for one in records for name in one["kinds"]))
    events = sum(
        one["events"]
        for one in recording.intervals
        if records and records[0]["start_us"] <= one["start_us"] and one["end_us"] <= records[-1]["end_us"]
    )
    result: dict[str, StatementFigures] = {}
    for name in names:
        known = merge(one["kinds"][name]["latency_us"] for one in records if name in one["kinds"])
        count = sum(one["kinds"][name]["count"] for one in records if name in one["kinds"])
        figures = {
            key: value.value_us
            for key, percent in _OF_STATEMENTS.items()
            if (value := percentile(known, percent, *_ends(known))) is not None
        }
        if events and len(figures) == len(_OF_STATEMENTS):
            result[name] = StatementFigures(per_transaction=count / events, **figures)
    return result


def _ends(known: Histogram) -> tuple[float, float]:
    """The lower edges of the first and last bucket."""
    return float(min(known, default=0)), float(max(known, default=0))
