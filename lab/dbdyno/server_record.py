"""The content of server.json. `run` writes it; `judge`, `explain` and `report` read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from dbdyno.finding import FreeForm


class ForeignProcess(TypedDict):
    """The CPU time of all processes with one name, as a share of the CPUs of server and client."""

    name: str
    share: float


class ForeignRecord(TypedDict):
    """CPU time of other processes, as shares of the CPUs of server and client."""

    share: float
    # CPU time that the hypervisor gave to other machines.
    steal: float
    # CPU time of no process that dbdyno can see. Runs of version 0.2.0 lack it.
    unattributed: NotRequired[float]
    cpus: NotRequired[str]
    # The processes with the most CPU time.
    processes: Sequence[ForeignProcess]


class CountersRecord(TypedDict):
    """The counters of a server, its processes and its machine at one time."""

    unix_us: int
    status: Mapping[str, str]
    process: Mapping[str, float]
    host: Mapping[str, float]
    # Name of a wait -> number of waits and seconds, from performance_schema.
    waits: Mapping[str, Sequence[float]]


class EdgesRecord(TypedDict):
    """Counters at both ends of the measurement. If a reading failed, only `foreign` is present."""

    begin: NotRequired[CountersRecord]
    end: NotRequired[CountersRecord]
    # Counter -> its increase caused by reading the counters once.
    own: NotRequired[Mapping[str, float]]
    # CPU time of other processes during the measurement; None if it is unknown.
    foreign: ForeignRecord | None


class WorkRecord(TypedDict):
    """What a server's processes did in some seconds: CPU time, and bytes written to storage."""

    seconds: float
    cpu_s: float
    write_bytes: float


class RoundTripsRecord(TypedDict):
    """The times of `SELECT 1`, one after the other, on one connection."""

    statements: int
    min_us: float
    p50_us: float
    p99_us: float


class SlicesRecord(TypedDict):
    """The work of a server in its own slices, and between them, when it had no load; all 0 if not visible."""

    own: WorkRecord
    idle: WorkRecord


class ServerRecord(TypedDict, total=False):
    """The content of server.json; empty if the trial has none."""

    product: str
    version: str
    identity: FreeForm
    # Settings that the experiment declares for the server.
    declared: Mapping[str, str]
    set_by_dbdyno: Mapping[str, str]
    variables: Mapping[str, str]
    origins: Mapping[str, str]
    build: Mapping[str, str]
    data_bytes: int | None
    # What the server does not report, and its answer.
    unreported: Mapping[str, str]
    host: FreeForm
    status_before: Mapping[str, str]
    status_after: Mapping[str, str]
    process: Mapping[str, Mapping[str, float]]
    edges: EdgesRecord | None
    # Before and after the trial; none of a server that dbdyno starts.
    round_trips: Sequence[RoundTripsRecord]
    # Only of trials whose load ran in slices.
    slices: SlicesRecord
    # Why the counters could not be read.
    edges_unread: str
