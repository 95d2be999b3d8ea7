"""Slices: the variants of a block alternate in short slices of load (`design.pairing = "slices"`).

A slice of a workload that writes is longer, because its server still writes when the next slice begins.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from dbdyno.experiment.errors import InputError
from dbdyno.experiment.model import Experiment, OltpWorkload, ScriptWorkload, SqlWorkload, Workload

READ_SLICE_S, WRITE_SLICE_S = 0.25, 1.0
# A pause takes some milliseconds.
SLICE_S_MIN = 0.05
_FIX = 'Write pairing = "trials"'
# Bundled workloads without statements that change rows.
_READING = frozenset({"oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges"})
_READING_STATEMENT = re.compile(
    r"\s*(?:(?:SELECT|WITH|VALUES|TABLE|SHOW|EXPLAIN)\b(?!.*\b(?:INSERT|UPDATE|DELETE|INTO|SHARE)\b)"
    r"|BEGIN|START\s+TRANSACTION|COMMIT|ROLLBACK)\b",
    re.IGNORECASE | re.DOTALL,
)


def slice_s(experiment: Experiment, title: str) -> float:
    """Seconds of one slice of a workload, the same for all variants."""
    if experiment.design.slice_s is not None:
        return experiment.design.slice_s
    workloads = [experiment.workload_for(variant, title) for variant in experiment.variants]
    return READ_SLICE_S if all(map(_only_reads, workloads)) else WRITE_SLICE_S


def describe_slices(experiment: Experiment) -> str:
    """The lengths of the slices, such as "250ms of each variant", with the workloads if they differ."""
    lengths = {one.title: slice_s(experiment, one.title) for one in experiment.workloads}
    if len(set(lengths.values())) == 1:
        return f"{_length_text(next(iter(lengths.values())))} of each variant"
    texts = [f"{_length_text(length)} ({title})" for title, length in lengths.items()]
    return f"{', '.join(texts)} of each variant"


def rounds(experiment: Experiment, title: str, warmup_s: float) -> tuple[int, int]:
    """The rounds of each trial: those of the warm-up, and those that count."""
    length_s = slice_s(experiment, title)
    # The division of two decimal fractions may be slightly above a whole number.
    return math.ceil(warmup_s / length_s - 1e-9), math.ceil(experiment.load.duration_s / length_s - 1e-9)


def find_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of an experiment in slices, and of a slice without them."""
    design = experiment.design
    if design.pairing != "slices":
        if design.slice_s is not None:
            fix = 'Write pairing = "slices", or leave it out'
            yield InputError("design.slice", f"{design.slice_s:g}s", 'it is for pairing = "slices"', fix)
        return
    if design.slice_s is not None and not SLICE_S_MIN <= design.slice_s <= experiment.load.duration_s:
        problem = f"a slice is at least {SLICE_S_MIN * 1000:g}ms, and at most load.duration long"
        yield InputError("design.slice", f"{design.slice_s:g}s", problem)
    if len(experiment.variants) < 2:
        yield InputError("design.pairing", "slices", "one variant has nothing to alternate with", _FIX)
    if design.state_per == "trial":
        problem = "in slices all servers run during all points of a block"
        yield InputError("design.state_per", "trial", problem, f"{_FIX}, or drop state_per")
    yield from _load_errors(experiment)
    yield from _server_errors(experiment)


def _load_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of loads that cannot pause."""
    if experiment.load.rate:
        problem = "a rate schedules transactions also while the load is paused"
        yield InputError("load.rate", None, f"slices are for closed loops: {problem}", _FIX)
    for name in experiment.load.chosen_shapes():
        yield InputError(f"load.{name}", None, "slices are for a constant load", _FIX)
    for variant in experiment.variants:
        load = experiment.load_for(variant)
        for name, value in (("think_time", load.think_time_s), ("reconnect_every", load.reconnect_every)):
            if value:
                is_own = getattr(variant.load, "think_time_s" if name == "think_time" else name) is not None
                place = f"variant[{variant.name}].load.{name}" if is_own else f"load.{name}"
                if is_own or variant is experiment.variants[0]:
                    yield InputError(place, value, "a load in slices has no such pauses", _FIX)
    for workload in experiment.distinct_workloads():
        if isinstance(workload, ScriptWorkload):
            problem = "a script cannot be paused between two transactions"
            yield InputError(f"workload[{workload.title}].script", None, problem, _FIX)


def _server_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of servers that cannot run at the same time."""
    state, places = experiment.design.state, dict[object, str]()
    for variant in experiment.variants:
        server, name = variant.server, variant.name
        allowed = ("restore",) if server.is_private else ("reset", "preserve")
        if state not in allowed and state in server.states():
            problem = f"in slices the servers of {name!r} and of the other variants run at the same time"
            states = " or ".join(f'state = "{one}"' for one in allowed)
            yield InputError("design.state", state, problem, f"Write {states}")
        port, location = server.variables.get("port"), server.data_location
        place = port if server.is_private else location and location[:2]
        if place is not None and place in places:
            what = f"port {port}" if server.is_private else "server"
            problem = f"{places[place]!r} has the same {what}, and in slices both run at the same time"
            key = "variables.port" if server.is_private else "url"
            yield InputError(f"variant[{name}].server.{key}", None, problem, _FIX)
        elif place is not None:
            places[place] = name


def _length_text(seconds: float) -> str:
    return f"{seconds:g} s" if seconds >= 1.0 else f"{seconds * 1000:g} ms"


def _only_reads(workload: Workload) -> bool:
    """Whether no statement changes rows; a recorded log or a script may."""
    if isinstance(workload, OltpWorkload):
        return workload.name in _READING
    return (
        isinstance(workload, SqlWorkload)
        and bool(workload.transactions)
        and all(
            _READING_STATEMENT.match(statement.sql)
            for transaction in workload.transactions
            for statement in transaction.statements
        )
    )
