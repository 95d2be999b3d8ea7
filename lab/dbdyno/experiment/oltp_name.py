"""The names of the OLTP workloads, which the command line needs without the rest of their model."""

from __future__ import annotations

from typing import Literal

OltpName = Literal[
    "oltp_read_write",
    "oltp_read_only",
    "oltp_write_only",
    "oltp_point_select",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_delete",
    "oltp_insert",
    "select_random_points",
    "select_random_ranges",
    "bulk_insert",
]
