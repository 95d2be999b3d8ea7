"""The names of the OLTP workloads, which the command line needs without the rest of their model."""

from __future__ import annotations

from collections.abc import Mapping
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

DESCRIPTIONS: Mapping[OltpName, str] = {
    "oltp_read_write": "Reads single rows and ranges, then changes rows, in one transaction.",
    "oltp_read_only": "Reads single rows and ranges, in one transaction.",
    "oltp_write_only": "Changes two rows, deletes one and inserts it again, in one transaction.",
    "oltp_point_select": "Reads one row by its primary key.",
    "oltp_update_index": "Updates an indexed column of one row.",
    "oltp_update_non_index": "Updates a column without an index of one row.",
    "oltp_delete": "Deletes rows by their primary key; later statements find fewer of them.",
    "oltp_insert": "Inserts one row.",
    "select_random_points": "Reads the rows of ten random values of an indexed column, in one statement.",
    "select_random_ranges": "Counts the rows in ten random ranges of an indexed column, in one statement.",
    "bulk_insert": "Inserts rows in large statements, each connection into its own table.",
}
