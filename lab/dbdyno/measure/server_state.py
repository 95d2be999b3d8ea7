"""What server.json says about the machine of a server, and about the work that the server leaves undone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dbdyno.experiment.base import parse_cpus
from dbdyno.explain import CPU_TICK_US
from dbdyno.server_record import RoundTripsRecord, ServerRecord
from dbdyno.store.measured import MeasuredTrial

# Status variables that count work to be done later: pages, transactions, bytes, rows.
PENDING_WORK = (
    "Innodb_buffer_pool_pages_dirty",
    "Innodb_history_list_length",
    "Innodb_checkpoint_age",
    "pg_stat_user_tables.n_dead_tup",
)
# Status variables that count the ends of transactions, and ROLLBACK statements.
ENDS = (
    "Handler_rollback",
    "Com_rollback",
    "pg_stat_database.xact_commit",
    "pg_stat_database.xact_rollback",
)
# MySQL has the positions of the log instead of its age.
_LOG_POSITIONS = ("Innodb_redo_log_current_lsn", "Innodb_redo_log_checkpoint_lsn")

_HOST = ("system", "kernel", "architecture", "cpu_model", "cpus")
# CPU time is counted in ticks, and one at each end may be wrong.
_COUNT_ERROR_S = 2 * CPU_TICK_US / 1e6


@dataclass(frozen=True)
class IdleWork:
    """What a server did between its slices, while others had load."""

    # The CPUs that it may use, and the share of them that it used.
    cpus: frozenset[int]
    share: float
    write_mib_per_s: float


@dataclass(frozen=True)
class ServerState:
    """Facts of one trial; empty where they are unknown."""

    # Bytes of data and indexes before the load of the trial's group.
    data_bytes: int | None = None
    # Seconds between the readings of the counters, times the CPUs of the machine; 0 if they are unknown.
    cpu_s: float = 0.0
    # Seconds between the readings.
    seconds: float = 0.0
    # Facts about the machine of a server that dbdyno starts, which must not change.
    host: Mapping[str, str] = field(default_factory=dict)
    # Measurements of round trips before and after the trial.
    round_trips: Sequence[RoundTripsRecord] = ()
    # Counter of the machine -> its growth between the readings.
    machine: Mapping[str, float] = field(default_factory=dict)
    # Status variable of PENDING_WORK -> its value at the end of the measurement.
    pending_work: Mapping[str, float] = field(default_factory=dict)
    # Status variable of ENDS -> its growth from before the trial until its connections were closed; empty if
    # other clients may have caused it.
    ends: Mapping[str, float] = field(default_factory=dict)
    # None of a trial without slices, and of a server whose work is not visible.
    idle: IdleWork | None = None


def read_state(server: ServerRecord) -> ServerState:
    """The facts in the record of one trial."""
    edges, data_bytes, facts = server.get("edges"), server.get("data_bytes"), server.get("host", {})
    host = {key.replace("_", " "): str(facts[key]) for key in _HOST if facts.get(key)}
    if "memory_bytes" in facts:
        # The kernel's own share changes a little from boot to boot.
        host["memory"] = f"{facts['memory_bytes'] / 1024**3:.0f} GiB"
    round_trips = server.get("round_trips", ())
    if not edges or "begin" not in edges:
        return ServerState(
            data_bytes, host=host, round_trips=round_trips, ends=_ends(server), idle=_idle(server)
        )
    begin, end = edges["begin"], edges["end"]
    seconds = (end["unix_us"] - begin["unix_us"]) / 1e6
    before, after = begin.get("host", {}), end.get("host", {})
    return ServerState(
        data_bytes,
        seconds * (facts.get("cpus") or 0),
        seconds,
        host,
        round_trips,
        {name: after[name] - before[name] for name in after if name in before},
        _pending_work(end["status"]),
        _ends(server),
        _idle(server),
    )


def _idle(server: ServerRecord) -> IdleWork | None:
    cpus = server.get("identity", {}).get("cpus")
    if "slices" not in server or not isinstance(cpus, str) or server["slices"]["idle"]["seconds"] <= 0.0:
        return None
    idle, server_cpus = server["slices"]["idle"], parse_cpus(cpus)
    busy_s = max(0.0, idle["cpu_s"] - _COUNT_ERROR_S)
    return IdleWork(
        server_cpus,
        busy_s / idle["seconds"] / len(server_cpus),
        idle["write_bytes"] / idle["seconds"] / 2**20,
    )


def _ends(server: ServerRecord) -> dict[str, float]:
    before, after = server.get("status_before", {}), server.get("status_after", {})
    if server.get("identity", {}).get("pid") is None:
        return {}
    return {
        name: float(after[name]) - float(before[name])
        for name in ENDS
        if before.get(name, "").isdecimal() and after.get(name, "").isdecimal()
    }


def _pending_work(status: Mapping[str, str]) -> dict[str, float]:
    amounts = {name: float(status[name]) for name in PENDING_WORK if status.get(name, "").isdecimal()}
    positions = [status.get(name, "") for name in _LOG_POSITIONS]
    if all(text.isdecimal() for text in positions):
        amounts.setdefault("Innodb_checkpoint_age", float(positions[0]) - float(positions[1]))
    return amounts


def by_variant(trials: Iterable[MeasuredTrial], values: Mapping[int, float]) -> dict[str, list[float]]:
    """Variant -> the values of its trials, in their order; `values` are by index of the trial."""
    groups: dict[str, list[float]] = {}
    for trial in trials:
        if trial.index in values:
            groups.setdefault(trial.variant, []).append(values[trial.index])
    return groups
