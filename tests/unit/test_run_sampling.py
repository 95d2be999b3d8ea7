"""Counters at the edges of a measurement: read by a thread of their own, and told where they were not."""

from __future__ import annotations

import os
import time
from typing import Any, cast

import pytest

from dbdyno.explain import costs
from dbdyno.run.foreign import ForeignMeter
from dbdyno.run.sampling import Sampler
from dbdyno.servers.server import Description, Server, ServerProblem

DESCRIPTION = Description("mysql", "9", {}, {}, {}, {})


class Asked:
    """A server whose processes can be seen as often as `seen` says, and then no more."""

    private = True

    def __init__(self, seen: int) -> None:
        self.seen = seen

    def process(self) -> dict[str, float]:
        if self.seen == 0:
            raise ServerProblem("the sample command failed: exit status 7")
        self.seen -= 1
        return {"cpu_user_s": 1.0}

    def host(self) -> dict[str, float]:
        return {}

    def status(self) -> dict[str, str]:
        return {"Questions": "5"}

    def watch(self) -> None:
        return


def edges(seen: int, measure_us: int, meter: ForeignMeter | None = None) -> Sampler:
    """Edges that have heard the measurement begin."""
    found = Sampler(cast(Server, Asked(seen)), DESCRIPTION, measure_us, meter)
    found.read_before()
    data = {"name": "measure", "at_unix_us": time.time_ns() // 1000}
    found.handle_record(cast(Any, {"type": "phase", "data": data}))
    return found


def until_read(found: Sampler) -> None:
    assert found._thread is not None
    found._thread.join(60)
    found.close()


def test_both_edges_are_kept() -> None:
    found = edges(seen=3, measure_us=20_000)
    until_read(found)
    kept = found.edges()
    assert found.unread_reason == ""
    assert kept is not None
    assert kept["begin"]["unix_us"] < kept["end"]["unix_us"]
    assert kept["end"]["status"] == {"Questions": "5"}


def test_an_edge_that_cannot_be_read_is_told_with_its_reason() -> None:
    for seen in (1, 2):
        found = edges(seen, measure_us=20_000)
        until_read(found)
        assert found.edges() is None
        assert found.unread_reason == "the sample command failed: exit status 7"


def test_a_measurement_that_is_over_too_soon_is_told() -> None:
    found = edges(seen=3, measure_us=60_000_000)
    found.close()
    assert found.edges() is None
    assert found.unread_reason == "the measurement was over before they were read"


@pytest.mark.parametrize(
    ("seen", "measure_us"),
    [(1, 300_000), (2, 300_000), (3, 60_000_000)],
    ids=["begin unread", "end unread", "over too soon"],
)
def test_the_foreign_load_is_kept_where_an_edge_is_not(seen: int, measure_us: int) -> None:
    """An overloaded machine misses edges, and is where the foreign load matters."""
    meter = ForeignMeter(frozenset(os.sched_getaffinity(0)), {os.getpid()})
    found = edges(seen, measure_us, meter)
    if seen == 3:
        time.sleep(0.3)
        found.close()
    until_read(found)
    kept = found.edges()
    assert found.unread_reason
    assert kept is not None
    assert kept.keys() == {"foreign"}
    assert kept["foreign"] is not None
    assert 0.0 <= kept["foreign"]["share"] <= 1.0
    assert costs({"edges": kept}, [(100, 5)], 0) == {}
