"""How many prepared statements one connection of a workload holds on the server.

The engine prepares every statement kind once per connection and table, and BEGIN and COMMIT once per
connection. Its own `hello` record says which kinds there are; before it has run, the options say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.experiment.model import ScriptWorkload, SqlWorkload, Workload

# Workloads of one statement: how many kinds they prepare, and whether over every table or the first only.
_SINGLE = {
    "oltp_point_select": (1, True),
    "oltp_update_index": (1, True),
    "oltp_update_non_index": (1, True),
    "oltp_delete": (1, True),
    "oltp_insert": (0, True),  # Always sent as text.
    "bulk_insert": (0, False),  # As well.
    "select_random_points": (1, False),
    "select_random_ranges": (1, False),
}


def per_connection(workload: Workload) -> int:
    """Statements one connection prepares, from the workload's options.

    BEGIN and COMMIT are counted as two; MySQL refuses to prepare BEGIN, so there it is one less.
    """
    if isinstance(workload, SqlWorkload):
        return workload.prepared_statements
    # A script prepares what it likes, when it likes.
    if isinstance(workload, ScriptWorkload) or workload.statements == "text":
        return 0
    if workload.name in _SINGLE:
        kinds, every_table = _SINGLE[workload.name]
        return kinds * (workload.tables if every_table else 1)
    counts: list[int] = []
    if workload.name in ("oltp_read_write", "oltp_read_only"):
        counts.append(workload.point_selects)
        if workload.range_selects:
            counts += [workload.simple_ranges, workload.sum_ranges]
            counts += [workload.order_ranges, workload.distinct_ranges]
    if workload.name in ("oltp_read_write", "oltp_write_only"):
        counts += [workload.index_updates, workload.non_index_updates]
        counts += [workload.delete_inserts, workload.delete_inserts]
    return sum(count > 0 for count in counts) * workload.tables + (0 if workload.skip_trx else 2)


def per_connection_of(hello: Mapping[str, Any]) -> int:
    """The same from the data of the engine's `hello` record, which is what it will really do."""
    return sum(int(kind["per_connection"]) for kind in hello["statements"] if kind["prepared"])
