"""`design.pairing = "slices"`: both servers run, alternate, exchange their slots, and count what was sent."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from tests.end_to_end.comparing import VARIANTS, Comparing

from dbdyno.store import StoredTrial

EXPERIMENT = f"""
[experiment]
name = "slices"
[[workload]]
name = "oltp_point_select"
tables = 2
table_size = 1_000
[load]
connections = [1, 4]
duration = "600ms"
warmup = "200ms"
[client]
workers = 1
[design]
pairing = "slices"
slice = "100ms"
blocks = 2
repeat_disturbed = false
{VARIANTS}"""


def slices_of(trial: StoredTrial) -> list[dict[str, Any]]:
    return [record["data"] for record in trial.records() if record["type"] == "slice"]


def begins_at(trial: StoredTrial) -> int:
    return next(int(r["data"]["at_unix_us"]) for r in trial.records() if r["type"] == "phase")


def test_two_servers_alternate_in_their_slots(results: Path) -> None:
    comparing = Comparing(results, EXPERIMENT)
    answer = comparing.run("--no-report")
    assert answer.returncode == 0, answer.stderr
    trials = comparing.newest().trials()
    assert [trial.is_done for trial in trials] == [True] * 8
    slots: dict[str, set[int]] = {}
    for trial in trials:
        slots.setdefault(trial.meta["variant"], set()).add(trial.meta["slot"])
        assert trial.meta["slices"] == {"warmup": 2, "length_us": 100_000}
        assert [one["slice"] for one in slices_of(trial)] == list(range(8))
        before, after = trial.server["status_before"], trial.server["status_after"]
        (phase,) = [one for one in list(trial.records())[-1]["data"]["phases"].values() if one["events"]]
        # A pause waits for the statements in flight, so none is missing.
        assert int(after["Com_select"]) - int(before["Com_select"]) == phase["reads"]
        work = trial.server["slices"]
        assert 0.1 < work["own"]["seconds"] < 2.0
        assert work["own"]["cpu_s"] / work["own"]["seconds"] > work["idle"]["cpu_s"] / work["idle"]["seconds"]
    assert list(slots.values()) == [{0, 1}, {0, 1}]
    keys = sorted({(t.meta["block"], t.meta["at"]["connections"]) for t in trials})
    for block, connections in keys:
        pair = [t for t in trials if (t.meta["block"], t.meta["at"]["connections"]) == (block, connections)]
        assert len({trial.server["identity"]["pid"] for trial in pair}) == 2
        spans = sorted(
            (begins_at(t) + one["resumed_us"], begins_at(t) + one["paused_us"], one["slice"])
            for t in pair
            for one in slices_of(t)
        )
        # The rounds follow one another, and never two servers have load at the same time.
        assert [number for *_, number in spans] == sorted([*range(8), *range(8)])
        assert all(one[1] <= later[0] for one, later in itertools.pairwise(spans))
