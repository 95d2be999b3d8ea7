"""P12 and P13: round trips to the servers, and what the load generator reaches without a server."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.simulated_trials import experiment, measured

from dbdyno.finding import Finding
from dbdyno.measure.server_state import ServerState, read_state
from dbdyno.rules.generator import client_ceiling
from dbdyno.rules.host import round_trips
from dbdyno.server_record import RoundTripsRecord
from dbdyno.store.preparation import Ceiling

OF = experiment(loads=2)


def far(p50_us: dict[str, float], latency_us: float, statements: int = 20) -> list[Finding]:
    """P12 where the servers of the named variants have these round trips."""
    trials = [
        replace(
            one,
            figures=replace(
                one.figures,
                events=100,
                statements=100 * statements,
                latency_mean_us=latency_us * (1 if one.at["connections"] == 10 else 9),
            ),
        )
        for one in measured(OF, lambda _trial: 1000.0)
        if one.figures is not None
    ]
    states = {}
    for one in trials:
        if one.variant in p50_us:
            p50 = p50_us[one.variant]
            record = RoundTripsRecord(statements=200, min_us=p50 / 2, p50_us=p50, p99_us=3 * p50)
            states[one.index] = read_state({"round_trips": [record, record]})
    return list(round_trips(trials, states, OF))


def test_round_trips_are_listed() -> None:
    (note,) = far({"a": 300.0, "b": 301.0}, 50_000.0)
    assert (note.code, note.level) == ("P12", "note")
    assert "a 300 us (minimum 150, p99 900); b 301 us" in note.text
    assert far({}, 50_000.0) == []


def test_a_network_that_takes_most_of_the_time_is_a_warning() -> None:
    _, of_a, of_b = far({"a": 1000.0, "b": 1000.0}, 25_000.0)
    assert (of_a.level, of_a.subject, of_b.subject) == ("warn", "a", "b")
    assert "round trips of 1,000 us take 80 % of the time of a transaction of a" in of_a.text
    # So short a round trip is CPU time.
    assert [one.level for one in far({"a": 100.0, "b": 100.0}, 2_500.0)] == ["note"]


@pytest.mark.parametrize(
    ("own_us", "latency_us", "warns"),
    [(1060.0, 60_000.0, True), (1040.0, 60_000.0, False), (1060.0, 600_000.0, False)],
)
def test_different_round_trips_count_if_they_matter(own_us: float, latency_us: float, warns: bool) -> None:
    findings = far({"a": 1000.0, "b": own_us}, latency_us)
    assert [(one.level, one.subject) for one in findings[1:]] == ([("warn", "b")] if warns else [])


def test_only_one_server_is_far() -> None:
    assert [one.level for one in far({"b": 1000.0}, 60_000.0)] == ["note"]
    assert read_state({}).round_trips == ServerState().round_trips == ()


@pytest.mark.parametrize(("events_per_s", "warns"), [(1500.0, True), (2500.0, False), (None, False)])
def test_a_load_generator_close_to_its_limit(events_per_s: float | None, warns: bool) -> None:
    trials = measured(OF, lambda trial: 1000.0 if trial.variant == "b" else 500.0)
    ceiling = Ceiling(connections=20, events_per_s=events_per_s, failure=None)
    findings = list(client_ceiling(trials, {"oltp_read_write": ceiling}))
    assert [(one.code, one.level) for one in findings] == ([("P13", "warn")] if warns else [])
    if warns:
        assert "with 20 connections, only 1.5 times the highest throughput (1,000 of b)" in findings[0].text
    assert list(client_ceiling(trials, {"another": ceiling})) == []
