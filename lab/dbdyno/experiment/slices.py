"""Slices: the variants of a block alternate in short slices of load (`design.pairing = "slices"`).

A slice of a workload that writes is longer, because its server still writes when the next slice begins. So
is a slice of many connections: when it begins, all connections send at once and the server's threads wake up,
and when it ends, every transaction in progress still has to end. Both take about a round, the time in which
every connection executes a transaction, during which nothing counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from dbdyno.experiment.errors import InputError
from dbdyno.experiment.model import (
    Experiment,
    OltpWorkload,
    ScriptWorkload,
    SqlStatement,
    SqlWorkload,
    Workload,
)
from dbdyno.text import compose, join

READ_SLICE_S, WRITE_SLICE_S = 0.25, 1.0
# A slice is this many rounds long, if duration permits. The guard time, this share of a slice, is then 2.4
# rounds, so that with the pause at the end less than a tenth of the time is lost. With fewer than the least
# number, the figures of a slice may be wrong by a fifth (R14).
SLICE_ROUNDS, SLICE_ROUNDS_MIN, GUARD_SHARE = 40, 5, 0.06
# Estimated time of a statement when all connections are busy, of a server that executes 20,000 per second;
# of each row that it returns or changes; and of each row that it reads without an index.
STATEMENT_S, ROW_S, SCANNED_ROW_S = 50e-6, 1e-6, 4e-7
# A range of more rows may take longer than a slice.
SHORT_RANGE = 1_000
# A pause takes some milliseconds. The machine's speed drifts within longer slices.
SLICE_S_MIN, SLICE_S_MAX = 0.05, 10.0
_FIX = 'Write pairing = "trials"'
# Bundled workloads without statements that change rows.
_READING = frozenset({"oltp_point_select", "oltp_read_only", "select_random_points", "select_random_ranges"})
# Bundled workloads whose transactions have several statements, and which.
_STATEMENTS = {
    "oltp_read_write": ("reads", "writes"),
    "oltp_read_only": ("reads",),
    "oltp_write_only": ("writes",),
}
_READING_STATEMENT = re.compile(
    r"\s*(?:(?:SELECT|WITH|VALUES|TABLE|SHOW|EXPLAIN)\b(?!.*\b(?:INSERT|UPDATE|DELETE|INTO|SHARE)\b)"
    r"|BEGIN|START\s+TRANSACTION|COMMIT|ROLLBACK)\b",
    re.IGNORECASE | re.DOTALL,
)


def slice_s(experiment: Experiment, title: str, connections: int) -> float:
    """Seconds of one slice of a workload at a point, the same for all variants, with the guard time."""
    if experiment.design.slice_s is not None:
        return experiment.design.slice_s
    least_s, round_s = _lengths_s(experiment, title, connections)
    return max(least_s, min(round(SLICE_ROUNDS * round_s, 3), _longest_s(experiment)))


def _lengths_s(experiment: Experiment, title: str, connections: int) -> tuple[float, float]:
    """Seconds of the shortest slice of a workload, and of a round."""
    workloads = [experiment.workload_for(variant, title) for variant in experiment.variants]
    least_s = READ_SLICE_S if all(map(only_reads, workloads)) else WRITE_SLICE_S
    return least_s, connections * max(map(_transaction_s, workloads))


def _has_all_rounds(experiment: Experiment) -> bool:
    most = max(experiment.load.connections)
    rounds_s = (_lengths_s(experiment, workload.title, most)[1] for workload in experiment.workloads)
    return SLICE_ROUNDS * max(rounds_s) <= _longest_s(experiment)


def _longest_s(experiment: Experiment) -> float:
    return min(SLICE_S_MAX, experiment.load.duration_s)


def describe_slices(experiment: Experiment) -> str:
    """The lengths of the slices, such as "250 ms of each variant", with the workloads if they differ."""
    loads = experiment.load.connections
    lengths = {
        workload.title: [slice_s(experiment, workload.title, load) for load in loads]
        for workload in experiment.workloads
    }
    ranges = {title: _range_text(min(of_loads), max(of_loads)) for title, of_loads in lengths.items()}
    if len(set(ranges.values())) == 1:
        return compose("{length} of each variant", length=next(iter(ranges.values())))
    texts = [join("", (length, f" ({title})")) for title, length in ranges.items()]
    return compose("{length} of each variant", length=join(", ", texts))


def _range_text(low: float, high: float) -> str:
    if low == high:
        return length_text(low)
    return compose("{low} to {high}", low=length_text(low), high=length_text(high))


def rounds(experiment: Experiment, title: str, connections: int, warmup_s: float) -> tuple[int, int]:
    """The rounds of each trial: those of the warm-up, and those that count."""
    length_s = slice_s(experiment, title, connections)
    # The division of two decimal fractions may be slightly above a whole number.
    return math.ceil(warmup_s / length_s - 1e-9), math.ceil(experiment.load.duration_s / length_s - 1e-9)


def can_alternate(experiment: Experiment) -> bool:
    """Whether slices are the better choice: bundled workloads that only read and have short transactions, on
    servers that dbdyno starts, without hooks, and all rounds fit into a slice.
    """
    design = experiment.design.model_copy(update={"pairing": "slices"})
    servers = [variant.server for variant in experiment.variants]
    return (
        all(map(_reads_few_rows, experiment.distinct_workloads()))
        and _has_all_rounds(experiment)
        and all(server.is_private and not server.has_commands for server in servers)
        and not any(find_errors(experiment.model_copy(update={"design": design})))
    )


def load_s(experiment: Experiment, title: str, connections: int, warmup_s: float) -> tuple[float, float]:
    """Seconds of load of a trial: of its warm-up and of its measurement. In slices both are whole slices."""
    if experiment.design.pairing != "slices":
        return warmup_s, experiment.load.duration_s
    length_s = slice_s(experiment, title, connections)
    warmup, counted = rounds(experiment, title, connections, warmup_s)
    return warmup * length_s, counted * length_s


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
    elif design.slice_s is None:
        yield from _length_errors(experiment)
    if experiment.fleet is not None:
        yield InputError("fleet.engines", experiment.fleet.engines, "slices need one load generator", _FIX)
    if len(experiment.variants) < 2:
        yield InputError("design.pairing", "slices", "one variant has nothing to alternate with", _FIX)
    if design.state_per == "trial":
        problem = "in slices all servers run during all points of a workload in a block"
        yield InputError("design.state_per", design.state_per, problem, f"{_FIX}, or drop state_per")
    yield from _load_errors(experiment)
    yield from _server_errors(experiment)


def _length_errors(experiment: Experiment) -> Iterator[InputError]:
    """At most one error: of the workload that needs the longest slices."""
    most, limit_s = max(experiment.load.connections), _longest_s(experiment)
    lengths_s = {
        workload.title: _lengths_s(experiment, workload.title, most) for workload in experiment.workloads
    }
    needed_s = {
        title: max(least_s, SLICE_ROUNDS_MIN * one_s) for title, (least_s, one_s) in lengths_s.items()
    }
    title = max(needed_s, key=lambda needed_: needed_s[needed_])
    if needed_s[title] > limit_s:
        needed, limit = length_text(round(needed_s[title], 3)), length_text(limit_s)
        problem = f"{title} with so many needs slices of {needed}; the maximum here is {limit}"
        yield InputError("load.connections", most, problem, f"{_FIX}, or set slice in [design]")


def _load_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of loads that cannot pause."""
    if experiment.load.is_open:
        key = "load.rate" if experiment.load.rate else "load.latency_objective"
        problem = "a rate schedules transactions also while the load is paused"
        yield InputError(key, None, f"slices are for closed loops: {problem}", _FIX)
    for name in experiment.load.chosen_shapes():
        yield InputError(f"load.{name}", None, "slices are for a constant load", _FIX)
    for name in ("max_rate", "abort_if"):
        if getattr(experiment.load, name) is not None:
            yield InputError(f"load.{name}", None, "a load in slices has no limits", _FIX)
    for variant in experiment.variants:
        load = experiment.load_for(variant)
        for name, value in (("think_time", load.think_time_s), ("reconnect_every", load.reconnect_every)):
            if value:
                is_own = getattr(variant.load, "think_time_s" if name == "think_time" else name) is not None
                place = f"variant[{variant.name}].load.{name}" if is_own else f"load.{name}"
                if is_own or variant is experiment.variants[0]:
                    yield InputError(place, value, "a load in slices has no such pauses", _FIX)
    if experiment.has_background:
        problem = "a background load does not pause when the load of a slice does"
        yield InputError("design.pairing", "slices", problem, _FIX)
    for workload in experiment.distinct_workloads():
        if isinstance(workload, ScriptWorkload):
            problem = "a script cannot be paused between two transactions"
            yield InputError(f"workload[{workload.title}].script", None, problem, _FIX)
        if isinstance(workload, SqlWorkload) and workload.reconnect_every:
            key = f"workload[{workload.title}].reconnect_every"
            yield InputError(key, workload.reconnect_every, "a load in slices has no such pauses", _FIX)
        if isinstance(workload, SqlWorkload) and workload.has_pauses:
            problem = "a load in slices has no such pauses"
            yield InputError(f"workload[{workload.title}].pauses", True, problem, _FIX)


def _server_errors(experiment: Experiment) -> Iterator[InputError]:
    """Errors of servers that cannot run at the same time."""
    state, places = experiment.design.state, dict[object, str]()
    for variant in experiment.variants:
        server, name = variant.server, variant.name
        allowed = ("restore",) if server.is_private else ("reset", "preserve")
        if state not in allowed and state in server.states():
            problem = f"in slices the servers of {name!r} and of the other variants run at the same time"
            if not server.is_private:
                problem += ", and dbdyno restores and restarts only servers that it starts"
            states = " or ".join(f'state = "{entry}"' for entry in allowed)
            yield InputError("design.state", state, problem, f"Write {states}")
        port, location = server.variables.get("port"), server.data_location
        # A number or a text; both are the same option.
        place = str(port) if server.is_private and port is not None else location and location[:2]
        if place is not None and place in places:
            what = f"port {port}" if server.is_private else "server"
            problem = f"{places[place]!r} has the same {what}, and in slices both run at the same time"
            key = "variables.port" if server.is_private else "url"
            yield InputError(f"variant[{name}].server.{key}", None, problem, _FIX)
        elif place is not None:
            places[place] = name


def length_text(seconds: float) -> str:
    """The length of a slice for display."""
    return f"{seconds:g} s" if seconds >= 1.0 else f"{seconds * 1000:g} ms"


def _reads_few_rows(workload: Workload) -> bool:
    """Whether transactions only read and are certainly short; those of users' statements may take seconds."""
    return (
        isinstance(workload, OltpWorkload)
        and workload.name in _READING
        and workload.range_size <= SHORT_RANGE
        and workload.create_secondary
    )


def only_reads(workload: Workload) -> bool:
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


def may_wait(workload: Workload) -> bool:
    """Whether transactions may wait for timers: in pauses, or in what a script does."""
    return isinstance(workload, ScriptWorkload) or (isinstance(workload, SqlWorkload) and workload.has_pauses)


def _transaction_s(workload: Workload) -> float:
    """Estimated seconds of the longest transaction."""
    if isinstance(workload, SqlWorkload):
        sums_s = (
            sum(_statement_s(statement, workload.rows) for statement in transaction.statements)
            for transaction in workload.transactions
        )
        return max(sums_s, default=STATEMENT_S)
    return STATEMENT_S * (_statements(workload) if isinstance(workload, OltpWorkload) else 1)


def _statement_s(statement: SqlStatement, table_rows: int) -> float:
    scanned = table_rows if statement.access == "scan" else 0
    return statement.repeat * (STATEMENT_S + ROW_S * (statement.rows or 0) + SCANNED_ROW_S * scanned)


def _statements(workload: OltpWorkload) -> int:
    """Number of statements of a transaction."""
    parts = _STATEMENTS.get(workload.name)
    if parts is None:
        return 1
    reads = workload.point_selects + workload.range_selects * sum(
        (workload.simple_ranges, workload.sum_ranges, workload.order_ranges, workload.distinct_ranges)
    )
    writes = workload.index_updates + workload.non_index_updates + 2 * workload.delete_inserts
    return 2 + reads * ("reads" in parts) + writes * ("writes" in parts)
