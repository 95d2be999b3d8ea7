"""Measures round trips to servers that dbdyno does not start: the time of `SELECT 1`, for check P12."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import quantiles

from dbdyno.server_record import RoundTripsRecord
from dbdyno.servers.load_connection import open_load_connection
from dbdyno.servers.server import Server, ServerProblem

# Statements of one measurement, and its maximum seconds, which end it on a slow network.
STATEMENTS, SECONDS_MAX = 200, 1.0
_STATEMENTS_MIN = 10


def measure_round_trips(server: Server) -> Sequence[RoundTripsRecord]:
    """One measurement, with the load's account; none of a server that dbdyno starts, whose round trips do not
    depend on a network, and none if the server refuses the connection.
    """
    if server.private:
        return []
    try:
        with open_load_connection(server.address()) as admin:
            seconds = admin.round_trips(STATEMENTS, SECONDS_MAX)
    except ServerProblem:
        return []
    if len(seconds) < _STATEMENTS_MIN:
        return []
    percentiles = [1e6 * value for value in quantiles(seconds, n=100, method="inclusive")]
    return [
        RoundTripsRecord(
            statements=len(seconds),
            min_us=round(1e6 * min(seconds), 1),
            p50_us=round(percentiles[49], 1),
            p99_us=round(percentiles[98], 1),
        )
    ]
