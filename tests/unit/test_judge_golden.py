"""The golden streams that the engine's own tests hold too: the lab reads what the engine really writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from dbdyno.measure import arithmetic
from dbdyno.measure.figures import figures, interval_events, longest_gap, windows
from dbdyno.measure.recording import Recording, failure, read
from dbdyno.store import StoredTrial
from dbdyno.store.records import Counts, End, EngineWarning, Generator, Interval, PhaseTotals, Slice

EXAMPLES = Path(__file__).parents[2] / "schema" / "examples"

# The schema's names of the types of the lab's records.
TYPES = {
    int: "integer",
    float: "number",
    str: "string",
    int | None: ["integer", "null"],
    float | None: ["number", "null"],
}


def recorded(name: str) -> Recording:
    """One golden stream."""
    return read(json.loads(line) for line in (EXAMPLES / f"{name}.jsonl").read_text().splitlines())


def why_not(
    folder: Path, recording: Recording, status: str, failed_by: str | None = None
) -> tuple[str, str] | None:
    """Why a trial with that stream and that end has no numbers, and who made it fail."""
    meta = {"index": 0, "status": status, "failed_by": failed_by, "reason": "the lab's own words"}
    (folder / "trial.json").write_text(json.dumps(meta))
    return failure(StoredTrial(folder), recording)


@pytest.mark.parametrize("name", ["closed-loop", "open-loop"])
def test_a_real_stream_is_complete_and_consistent(tmp_path: Path, name: str) -> None:
    recording = recorded(name)
    assert why_not(tmp_path, recording, "done") is None
    assert arithmetic.find_contradictions(recording) == []
    (window,) = windows([recording], automatic=False)
    found = figures(recording, window)
    totals = recording.measure
    assert found.events == totals["events"] > 0
    assert found.throughput == pytest.approx(totals["events"] * 1e6 / (totals["end_us"] - totals["start_us"]))
    assert found.latency_min_us <= found.latency_p50_us <= found.latency_p95_us <= found.latency_p99_us
    assert found.latency_p99_us <= found.latency_max_us
    counted = sum(
        events for start_us, _, events in interval_events(recording) if start_us >= totals["start_us"]
    )
    assert counted == totals["events"]


@pytest.mark.parametrize("name", ["closed-loop", "open-loop"])
def test_percentiles_are_the_engines_own(name: str) -> None:
    recording = recorded(name)
    (window,) = windows([recording], automatic=False)
    found, percentiles = figures(recording, window), recording.measure["percentiles_us"]
    for key, figure in (("p50", "p50"), ("p90", "p90"), ("p95", "p95"), ("p99", "p99"), ("p99.9", "p999")):
        assert percentiles is not None
        told = percentiles[key]
        assert getattr(found, f"latency_{figure}_us") == pytest.approx(told["value_us"])
        assert (f"latency_{figure}_us" in found.censored) == told["censored"]


def test_ticks_count_what_intervals_count() -> None:
    recording = recorded("closed-loop")
    assert sum(events for _, events in recording.ticks) == sum(i["events"] for i in recording.intervals)


@pytest.mark.parametrize(
    ("failed_by", "who"), [("server", "server"), ("harness", "harness"), (None, "server")]
)
def test_a_stream_without_a_connection_has_no_numbers(
    tmp_path: Path, failed_by: str | None, who: str
) -> None:
    found = why_not(tmp_path, recorded("connect-failed"), "failed", failed_by)
    assert found is not None
    # The engine's words come before the lab's.
    assert found[0].startswith("connect-failed: ")
    assert found[1] == who


def test_a_stream_that_breaks_off_has_the_labs_words(tmp_path: Path) -> None:
    recording = recorded("closed-loop")
    recording.end = None
    assert why_not(tmp_path, recording, "failed", "harness") == ("the lab's own words", "harness")
    assert why_not(tmp_path, recording, "failed", "server") == ("the lab's own words", "server")


def test_a_complete_stream_of_a_failed_trial_does_not_count(tmp_path: Path) -> None:
    # A hook that failed after the load, say.
    assert why_not(tmp_path, recorded("closed-loop"), "failed", "harness") == (
        "the lab's own words",
        "harness",
    )


def test_the_types_of_the_records_are_those_of_the_schema() -> None:
    definitions = json.loads((EXAMPLES.parent / "events.schema.json").read_text())["$defs"]
    schema = {name: one["properties"] for name, one in definitions.items() if "properties" in one}
    for kind in (Generator, Interval, PhaseTotals, Slice, End, EngineWarning):
        properties = schema[kind.__name__.removeprefix("Engine")]
        for key, hint in get_type_hints(kind).items():
            if hint in TYPES and "type" in properties[key]:
                assert properties[key]["type"] == TYPES[hint], f"{kind.__name__}: {key}"
    totals = {key for key, value in schema["PhaseTotals"].items() if value.get("type") == "integer"}
    # Records without load.max_rate_per_s have no rate_limit_wait_us.
    assert Counts.__annotations__.keys() == totals - {"start_us", "end_us", "rate_limit_wait_us"}
    assert {value["type"] for value in schema["Accounting"].values()} == {"integer"}


@pytest.mark.parametrize("name", ["closed-loop", "open-loop"])
def test_gaps_of_intervals_join_to_the_gap_of_their_phase(name: str) -> None:
    recording = recorded(name)
    measured = [one for one in recording.intervals if one["phase"] == "measure"]
    gap = longest_gap(measured, consecutive=True)
    assert gap is not None
    # Microseconds of the records are rounded down.
    assert gap == pytest.approx(longest_gap([recording.measure], consecutive=True), abs=2)
    # Unless it ends at the limit of an interval, a gap is known only from two of them.
    within = max(part["gaps"]["longest_us"] for part in measured)
    assert gap[1] >= within
    without: list[Any] = [{key: value for key, value in one.items() if key != "gaps"} for one in measured]
    assert longest_gap(without, consecutive=True) is None


def test_a_gap_of_slices_is_within_one_of_them() -> None:
    first, second = recorded("slices").counted
    gap = longest_gap([first, second], consecutive=False)
    longest = max(first, second, key=lambda one: one["gaps"]["longest_us"])["gaps"]
    assert gap == (longest["longest_start_us"], longest["longest_us"])
