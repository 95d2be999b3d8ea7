"""Reads the server's counters four times in a trial: before the load, at both edges (beginning and end) of
the measurement, and after the load.

::

    ready ---- warm-up ---- | begin ........ measurement ........ end | ---- drained, connections closed
    read                    read                                  read                            read

At the edges the load runs, so about the same number of transactions is in flight, and the connections whose
threads did the work still exist. Each reading has a time; the difference of two readings is divided by the
number of transactions that ended between them.

Before and after the load it also measures round trips to a server that dbdyno does not start: the time of
`SELECT 1`, for check P12.

In slices `WorkMeter` also reads what a server does in its own slices and between them, for rule R11.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import quantiles

from dbdyno.run.engine import Record
from dbdyno.run.foreign import ForeignMeter
from dbdyno.server_record import (
    CountersRecord,
    EdgesRecord,
    ForeignRecord,
    RoundTripsRecord,
    ServerRecord,
    WorkRecord,
)
from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import answers_within
from dbdyno.servers.kinds.remote_protocol import open_load_connection
from dbdyno.servers.server import Description, Server, ServerProblem

# Seconds between two readings of the counters of threads, which are lost when a thread ends, and the maximum
# share of time for these readings.
WATCH_S = 1.0
WATCH_SHARE = 0.01
# The last reading begins this many seconds before the end, or as many as the first reading took, if more.
LEAD_S = 0.005
# Maximum seconds that the end of a trial waits for a reading in progress.
CLOSE_S = 30.0
# Maximum seconds for an answer about counters.
STATUS_TIMEOUT_S = 10.0
# Statements of one measurement, and its maximum seconds, which end it on a slow network.
STATEMENTS, SECONDS_MAX = 200, 1.0
_STATEMENTS_MIN = 10

_WAITS = (
    "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT "
    "FROM performance_schema.events_waits_summary_global_by_event_name WHERE COUNT_STAR > 0"
)
PICOSECONDS = 1e12


@dataclass
class _Work:
    """What a server did in some time."""

    seconds: float = 0.0
    cpu_s: float = 0.0
    write_bytes: float = 0.0

    def add(self, before: _Work, after: _Work) -> None:
        self.seconds += after.seconds - before.seconds
        self.cpu_s += max(0.0, after.cpu_s - before.cpu_s)
        self.write_bytes += max(0.0, after.write_bytes - before.write_bytes)

    def record(self) -> WorkRecord:
        return {"seconds": self.seconds, "cpu_s": self.cpu_s, "write_bytes": self.write_bytes}


@dataclass
class WorkMeter:
    """Measures the work of a server in its own slices, and between them."""

    server: Server
    in_slices: _Work = field(default_factory=_Work)
    idle: _Work = field(default_factory=_Work)
    _cost_s: float = 0.0
    _last: _Work | None = None

    def read(self, to: _Work | None = None) -> None:
        """Read the counters, and add the work since the last reading to `to`."""
        began = time.monotonic()
        now = self._read()
        if to is not None and self._last is not None and now is not None:
            to.add(self._last, now)
        self._last = now
        self._cost_s += time.monotonic() - began

    def end_round(self) -> float:
        """Seconds that the readings of a round took."""
        cost_s, self._cost_s = self._cost_s, 0.0
        return cost_s

    def _read(self) -> _Work | None:
        spent = self.server.spent()
        if "cpu_s" not in spent:
            return None
        return _Work(time.monotonic(), spent["cpu_s"], spent.get("write_bytes", 0.0))


@dataclass
class Counters:
    """Counters of a server, its processes and its machine at one time; empty if they cannot be read."""

    unix_us: int = 0
    status: Mapping[str, str] = field(default_factory=dict)
    process: Mapping[str, float] = field(default_factory=dict)
    host: Mapping[str, float] = field(default_factory=dict)
    # Times of SELECT 1, if they were measured too.
    round_trips: Sequence[RoundTripsRecord] = ()
    # Waits of performance_schema: name -> [count, seconds].
    waits: Mapping[str, tuple[int, float]] = field(default_factory=dict)

    def read(self, server: Server, *, waits: bool = False) -> None:
        """Read all counters now. Raises ServerProblem when the server does not answer."""
        began = time.time_ns()
        self.process, self.host = server.process(), server.host()
        with answers_within(STATUS_TIMEOUT_S):
            self.status = server.status()
            self.waits = _waits(server) if waits else {}
        # The middle of the reading, because the parts are read one after another.
        self.unix_us = (began + time.time_ns()) // 2000

    def as_json(self) -> CountersRecord:
        """The counters in the format of server.json."""
        return CountersRecord(
            unix_us=self.unix_us, status=self.status, process=self.process, host=self.host, waits=self.waits
        )


def _number(text: str) -> float:
    """A counter's value; 0 for a text, so that its difference is 0."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _waits(server: Server) -> dict[str, tuple[int, float]]:
    try:
        waits = answers.rows(server.query, _WAITS, answers.text, answers.integer, answers.integer)
    except ServerProblem:
        # The account may not have the privilege to read them.
        return {}
    return {name: (count, waited / PICOSECONDS) for name, count, waited in waits}


class Sampler:
    """Reads the counters of one trial: at the edges of its measurement in a separate thread.

    `handle_record` receives the engine's records; `close` ends the thread. Until then no other thread may
    query the server.
    """

    def __init__(
        self,
        server: Server,
        description: Description,
        measure_us: int,
        meter: ForeignMeter | None = None,
        *,
        with_host: bool = True,
    ) -> None:
        """`meter` measures the foreign load between the edges; None if that is impossible. `with_host` is
        False if other servers run on the same machine, whose work its counters include.
        """
        self._server, self._description = server, description
        self._meter = meter
        self._foreign: ForeignRecord | None = None
        self._measure_s = measure_us / 1e6
        self._waits = description.variables.get("performance_schema") == "ON"
        self._with_host = with_host
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        self._before, self._begin, self._end, self._after = (Counters() for _ in range(4))
        self._is_begin_read = False
        # Why an edge was not read; empty if both were.
        self.unread_reason = "the measurement was over before they were read"
        # How much each counter increases because of one reading.
        self._own: dict[str, float] = {}

    def read_before(self) -> None:
        """Read the counters while every connection is open and idle, and measure round trips and the cost of
        one reading.

        Raises ServerProblem when the server does not answer.
        """
        self._before.round_trips = measure_round_trips(self._server)
        self._before.read(self._server)
        again = self._server.status()
        increases = {
            name: _number(again[name]) - _number(text)
            for name, text in self._before.status.items()
            if name in again
        }
        self._own = {name: count for name, count in increases.items() if count > 0}

    def handle_record(self, record: Record) -> None:
        """Process a record of the engine; the beginning of the measurement starts the readings."""
        if record["type"] == "phase" and record["data"]["name"] == "measure" and self._thread is None:
            ends_at = record["data"]["at_unix_us"] / 1e6 + self._measure_s
            # The thread inherits the client's CPU set from this thread.
            self._thread = threading.Thread(
                target=self._read_edges, args=(ends_at,), name="edges", daemon=True
            )
            self._thread.start()
        elif record["type"] == "end":
            self._is_over.set()

    def close(self) -> None:
        """Wait for a reading in progress; then other threads may query the server. Idempotent."""
        self._is_over.set()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def read_begin(self) -> None:
        """Read the counters at the beginning of the measurement, in the calling thread."""
        self._is_begin_read = self._read_edge(self._begin)

    def read_end(self, foreign: ForeignRecord | None) -> None:
        """Read the counters at the end of the measurement, in the calling thread."""
        self._foreign = foreign
        if self._is_begin_read and self._read_edge(self._end):
            self.unread_reason = "" if self._end.unix_us > self._begin.unix_us else "the clock was set back"

    def read_after(self) -> None:
        """Read the counters after the load, and measure round trips. Raises ServerProblem."""
        self._after.read(self._server)
        self._after.round_trips = measure_round_trips(self._server)

    def record(self) -> ServerRecord:
        """The content of server.json."""
        before, after = self._before, self._after
        return ServerRecord(
            **self._description.record(),
            status_before=before.status,
            status_after=after.status,
            process={"before": before.process, "after": after.process},
            edges=self.edges(),
            edges_unread=self.unread_reason,
            round_trips=[*before.round_trips, *after.round_trips],
        )

    def edges(self) -> EdgesRecord | None:
        """{"begin", "end", "own", "foreign"}; if an edge was not read, {"foreign"}, or None without
        a meter.
        """
        if self.unread_reason:
            return {"foreign": self._foreign} if self._foreign else None
        begin, end = self._begin.as_json(), self._end.as_json()
        return {"begin": begin, "end": end, "own": self._own, "foreign": self._foreign}

    def _read_edges(self, ends_at: float) -> None:
        began = time.monotonic()
        first = self._meter.read() if self._meter else None
        self.read_begin()
        took_s = time.monotonic() - began
        # On a slow machine reading may take a large part of the trial; keep its middle half free.
        self._watch_until(ends_at - max(LEAD_S, min(took_s, self._measure_s / 4)))
        is_over = self._is_over.is_set()
        # Foreign load is measured even if an edge is missing: an overloaded machine misses edges, and there
        # foreign load matters most.
        foreign = self._meter.foreign_load(first, self._meter.read()) if self._meter else None
        self._is_begin_read &= not is_over
        self.read_end(foreign)

    def _read_edge(self, edge: Counters) -> bool:
        """Read the counters of one edge; if that fails, return False and set `unread_reason`."""
        try:
            edge.read(self._server, waits=self._waits)
            edge.host = edge.host if self._with_host else {}
        except ServerProblem as problem:
            # If the server no longer answers, the trial fails too; if a user command fails, only this reading
            # does.
            self.unread_reason = problem.text
            return False
        return True

    def _watch_until(self, unix_s: float) -> None:
        pause_s = WATCH_S
        while not self._is_over.wait(max(0.0, min(pause_s, unix_s - time.time()))) and time.time() < unix_s:
            began = time.monotonic()
            self._server.watch()
            pause_s = max(WATCH_S, (time.monotonic() - began) / WATCH_SHARE)


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
