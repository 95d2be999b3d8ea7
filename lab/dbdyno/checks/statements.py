"""How many prepared statements one connection of a workload holds on the server.

The engine prepares every statement kind once per connection and table, and BEGIN and COMMIT once per
connection. Its own `hello` record says which kinds there are; before it has run, the options say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbdyno.experiment.model import Workload

# Names the table in the SQL of a `hello` record, which is that of the first table.
_FIRST_TABLE = "sbtest1"


def per_connection(workload: Workload) -> int:
    """Statements one connection prepares, from the workload's options.

    BEGIN and COMMIT are counted as two; MySQL refuses to prepare BEGIN, so there it is one less.
    """
    reads = workload.name in ("oltp_read_write", "oltp_read_only")
    writes = workload.name in ("oltp_read_write", "oltp_write_only")
    ranges = (
        workload.simple_ranges,
        workload.sum_ranges,
        workload.order_ranges,
        workload.distinct_ranges,
    )
    kinds = int(workload.name == "oltp_point_select" or (reads and workload.point_selects > 0))
    kinds += sum(count > 0 for count in ranges) if reads and workload.range_selects else 0
    if writes:
        kinds += int(workload.index_updates > 0) + int(workload.non_index_updates > 0)
        kinds += 2 * int(workload.delete_inserts > 0)
    in_transaction = workload.name != "oltp_point_select" and not workload.skip_trx
    return kinds * workload.tables + (2 if in_transaction else 0)


def per_connection_of(hello: Mapping[str, Any]) -> int:
    """The same from the data of the engine's `hello` record, which is what it will really do."""
    tables = int(hello["plan"]["workload"]["options"]["tables"])
    return sum(
        tables if _FIRST_TABLE in str(statement["sql"]) else 1
        for statement in hello["statements"]
        if statement["prepared"]
    )
