"""The engines of a fleet: where they ran, whether they began together, and what each of them measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from dbdyno.report import formatting
from dbdyno.store import StoredTrial


@dataclass(frozen=True)
class EngineRow:
    """One engine in all trials of a variant."""

    variant: str
    name: str
    # Clock offset and largest skew of the start in milliseconds, share of the transactions, mean latency in
    # milliseconds, and CPU time per wall time of its threads in its busiest trial.
    cells: Sequence[str]


def engine_rows(trials: Iterable[StoredTrial]) -> list[EngineRow]:
    """A row for each variant and engine; empty without a fleet."""
    records: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    events: dict[str, int] = {}
    for trial in trials:
        variant = str(trial.meta["variant"])
        for engine in trial.meta.get("fleet", ()) if trial.is_done else ():
            records.setdefault((variant, str(engine["name"])), []).append(engine)
            events[variant] = events.get(variant, 0) + int(engine["events"])
    return [
        EngineRow(variant, name, _cells(of_engine, events[variant]))
        for (variant, name), of_engine in records.items()
    ]


def _cells(of_engine: Sequence[Mapping[str, Any]], events: int) -> list[str]:
    latencies = [one["latency_mean_us"] for one in of_engine if one["latency_mean_us"] is not None]
    own = sum(int(one["events"]) for one in of_engine)
    return [
        f"{median(one['clock_offset_us'] for one in of_engine) / 1000.0:+.1f}",
        f"{max(abs(one['start_skew_us']) for one in of_engine) / 1000.0:.1f}",
        f"{100.0 * own / events:.1f} %" if events else formatting.MISSING,
        formatting.milliseconds(median(latencies)) if latencies else formatting.MISSING,
        f"{100.0 * max(float(one['generator_cpu'] or 0.0) for one in of_engine):.0f} %",
    ]
