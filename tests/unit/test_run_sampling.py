"""Counters at the edges of a measurement: read by a thread of their own, and told where they were not."""

from __future__ import annotations

import time
from typing import Any, cast

from dbdyno.run.sampling import Counters, Edges
from dbdyno.servers.server import Description, Server, ServerProblem

DESCRIPTION = Description("mysql", "9", {}, {}, {}, {})


class Asked:
    """A server whose processes can be seen as often as `seen` says, and then no more."""

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


def edges(seen: int, measure_us: int) -> Edges:
    """Edges that have heard the measurement begin."""
    found = Edges(cast(Server, Asked(seen)), DESCRIPTION, measure_us)
    found.ready(Counters())
    data = {"name": "measure", "at_unix_us": time.time_ns() // 1000}
    found.heard(cast(Any, {"type": "phase", "data": data}))
    return found


def until_read(found: Edges) -> None:
    assert found._thread is not None
    found._thread.join(60)
    found.close()


def test_both_edges_are_kept() -> None:
    found = edges(seen=3, measure_us=20_000)
    until_read(found)
    kept = found.as_json()
    assert found.unread == ""
    assert kept is not None
    assert kept["begin"]["unix_us"] < kept["end"]["unix_us"]
    assert kept["end"]["status"] == {"Questions": "5"}


def test_an_edge_that_cannot_be_read_is_told_with_its_reason() -> None:
    for seen in (1, 2):
        found = edges(seen, measure_us=20_000)
        until_read(found)
        assert found.as_json() is None
        assert found.unread == "the sample command failed: exit status 7"


def test_a_measurement_that_is_over_too_soon_is_told() -> None:
    found = edges(seen=3, measure_us=60_000_000)
    found.close()
    assert found.as_json() is None
    assert found.unread == "the measurement was over before they were read"
