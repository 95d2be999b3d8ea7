"""The golden streams that the engine's own tests hold too: the lab reads what the engine really writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from dbdyno.judge import arithmetic
from dbdyno.judge.measured import figures, seconds
from dbdyno.judge.recording import Recording, failure, read
from dbdyno.judge.window import windows
from dbdyno.store import StoredTrial

EXAMPLES = Path(__file__).parents[2] / "schema" / "examples"


def recorded(name: str) -> Recording:
    """One golden stream."""
    return read(json.loads(line) for line in (EXAMPLES / f"{name}.jsonl").read_text().splitlines())


class Ended:
    """As much of a stored trial as deciding about completeness needs."""

    def __init__(self, status: str) -> None:
        self.meta: dict[str, Any] = {"status": status}
        self.done = status == "done"


def told(recording: Recording, status: str) -> str | None:
    return failure(cast(StoredTrial, Ended(status)), recording)


@pytest.mark.parametrize("name", ["closed-loop", "open-loop"])
def test_a_real_stream_is_complete_and_consistent(name: str) -> None:
    recording = recorded(name)
    assert told(recording, "done") is None
    assert arithmetic.faults(recording) == []
    (window,) = windows([recording], automatic=False)
    found = figures(recording, window)
    totals = recording.measure
    assert found.events == totals["events"] > 0
    assert found.throughput == pytest.approx(totals["events"] * 1e6 / (totals["end_us"] - totals["start_us"]))
    assert found.latency_min_us <= found.latency_p50_us <= found.latency_p95_us <= found.latency_p99_us
    assert found.latency_p99_us <= found.latency_max_us
    counted = sum(events for start_us, _, events in seconds(recording) if start_us >= totals["start_us"])
    assert counted == totals["events"]


@pytest.mark.parametrize("name", ["closed-loop", "open-loop"])
def test_percentiles_are_the_engines_own(name: str) -> None:
    recording = recorded(name)
    (window,) = windows([recording], automatic=False)
    found = figures(recording, window)
    for key, figure in (("p50", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p99.9", "p999")):
        told = recording.measure["percentiles_us"][key]
        assert getattr(found, f"latency_{figure}_us") == pytest.approx(told["value_us"])
        assert (f"latency_{figure}_us" in found.censored) == told["censored"]


def test_ticks_count_what_intervals_count() -> None:
    recording = recorded("closed-loop")
    assert sum(events for _, events in recording.ticks) == sum(i["events"] for i in recording.intervals)


def test_a_stream_without_a_connection_has_no_numbers() -> None:
    reason = told(recorded("connect-failed"), "failed")
    assert reason is not None
    assert reason.startswith("connect-failed: ")
