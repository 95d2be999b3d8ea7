"""Makes one variant of a stored run slower by an exact share, so that the true effect is known and the noise
is real.

A share of the transactions of every trial is removed, evenly over time, and the remaining ones get longer by
the same ratio: N connections that do 10 % less per second take 1 / 0.9 of the time for each transaction. So
every rule that correct records satisfy (sums, statements per transaction, Little's law) still holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dbdyno.stats.histogram import bucket_lower_us

# Counters that are proportional to the transactions.
PROPORTIONAL = ("reads", "writes", "other", "rows", "bytes")


def thin(run: Path, variant: str, keep: float) -> None:
    """Keep a share of the transactions of every trial of a variant, in the files of a run."""
    for trial in sorted((run / "trials").iterdir()):
        if json.loads((trial / "trial.json").read_text())["variant"] == variant:
            path = trial / "events.jsonl"
            records = [json.loads(line) for line in path.read_text().splitlines()]
            path.write_text("".join(json.dumps(record) + "\n" for record in _thinned(records, keep)))


def _thinned(records: list[dict[str, Any]], keep: float) -> list[dict[str, Any]]:
    ticks, intervals = _Share(keep), _Share(keep)
    phases: dict[str, list[dict[str, Any]]] = {}
    thinned = []
    for record in records:
        data = record["data"]
        if record["type"] == "tick":
            data = {**data, "events": ticks.take(data["events"])}
        elif record["type"] == "interval":
            data = _slower(data, intervals.take(data["events"]), keep)
            phases.setdefault(data["phase"], []).append(data)
        elif record["type"] == "end":
            totals = {name: _total(of, phases.get(name, []), keep) for name, of in data["phases"].items()}
            data = {**data, "phases": totals}
        thinned.append({**record, "data": data})
    return thinned


class _Share:
    """Takes a share of counts that come one after another, so that the sums are exact to one."""

    def __init__(self, keep: float) -> None:
        self._keep, self._seen, self._taken = keep, 0, 0

    def take(self, count: int) -> int:
        """How many of the next `count` stay."""
        self._seen += count
        taken = int(self._seen * self._keep) - self._taken
        self._taken += taken
        return taken


def _slower(data: Mapping[str, Any], events: int, keep: float) -> dict[str, Any]:
    """Counts of a span with fewer and longer transactions."""
    counts = {
        key: round(data[key] * events / data["events"]) if data["events"] else 0 for key in PROPORTIONAL
    }
    share = _Share(events / data["events"] if data["events"] else 1.0)
    buckets: dict[int, int] = {}
    for lower_us, count in data["latency_us"]:
        slower_us = bucket_lower_us(int(lower_us / keep))
        buckets[slower_us] = buckets.get(slower_us, 0) + share.take(count)
    missing = events - sum(buckets.values())
    if missing:
        # The last transaction of a rounded share.
        buckets[max(buckets)] += missing
    ends = {
        key: None if data[key] is None else data[key] / keep for key in ("latency_min_us", "latency_max_us")
    }
    return {
        **data,
        **counts,
        **ends,
        "events": events,
        "latency_us": [[lower_us, count] for lower_us, count in sorted(buckets.items()) if count],
    }


def _total(data: Mapping[str, Any], parts: list[dict[str, Any]], keep: float) -> dict[str, Any]:
    """The totals of a phase, as the sum of its intervals."""
    events = sum(part["events"] for part in parts)
    buckets: dict[int, int] = {}
    for part in parts:
        for lower_us, count in part["latency_us"]:
            buckets[lower_us] = buckets.get(lower_us, 0) + count
    accounting = data["accounting"]
    gone = accounting["done"] - events
    return {
        **_slower(data, events, keep),
        **{key: sum(part[key] for part in parts) for key in PROPORTIONAL},
        "latency_us": [[lower_us, count] for lower_us, count in sorted(buckets.items())],
        "accounting": {**accounting, "done": events, "due": accounting["due"] - gone},
    }
