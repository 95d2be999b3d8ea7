"""What one transaction costs the server (CPU time, I/O, counters), from stored records only; and costs as
text: "pool makes 3.1 context switches per query instead of 5.6".

The resources are those that Mark Callaghan uses to compare servers (CPU time, context switches, reads, KiB
read and written, each per operation), and the run-queue wait. Counters keep the server's names; important
ones also have a phrase.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dbdyno.result_text import three_digits
from dbdyno.server_record import CountersRecord, EdgesRecord, ServerRecord
from dbdyno.text import compose, mark

# resource: CPU, I/O, context switches. counter, wait: as the server reports them. part: a component of a
# resource, which is not tested.
Group = Literal["resource", "counter", "wait", "part"]


@dataclass(frozen=True)
class Measure:
    """One measure, with its title in tables and its phrase in sentences."""

    key: str
    # Name in tables.
    title: str
    group: Group = "resource"
    # The smallest step of the counter, in the measure's unit.
    quantum: float = 1.0
    # For sentences, with {amount}, which has the unit: "makes {amount} context switches".
    phrase: str = ""
    # The text of a large amount has a larger unit, such as ms or MiB.
    unit: Literal["", "us", "KiB"] = ""


# CPU time is counted in ticks of the kernel.
CPU_TICK_US = 10_000.0
PAGE_KIB = 4.0

RESOURCES: tuple[Measure, ...] = (
    Measure("cpu_us", compose("CPU time"), "resource", CPU_TICK_US, mark("uses {amount} of CPU time"), "us"),
    Measure("context_switches", compose("context switches"), phrase=mark("makes {amount} context switches")),
    Measure(
        "cpu_wait_us", compose("run-queue wait"), phrase=mark("has a run-queue wait of {amount}"), unit="us"
    ),
    Measure("disk_reads", compose("disk reads"), phrase=mark("makes {amount} disk reads")),
    Measure(
        "read_kib",
        compose("read from storage"),
        "resource",
        PAGE_KIB,
        mark("reads {amount} from storage"),
        "KiB",
    ),
    Measure("disk_writes", compose("disk writes"), phrase=mark("makes {amount} disk writes")),
    Measure(
        "write_kib",
        compose("written to storage"),
        "resource",
        PAGE_KIB,
        mark("writes {amount} to storage"),
        "KiB",
    ),
    Measure("read_calls", compose("read calls"), phrase=mark("makes {amount} read calls")),
    Measure("write_calls", compose("write calls"), phrase=mark("makes {amount} write calls")),
    Measure(
        "major_faults",
        compose("major page faults"),
        phrase=mark("waits for {amount} pages that were swapped or dropped"),
    ),
    Measure("cpu_user_us", compose("CPU time, user"), "part", CPU_TICK_US, unit="us"),
    Measure("cpu_system_us", compose("CPU time, system"), "part", CPU_TICK_US, unit="us"),
    # The CPU time above has it too.
    Measure("proxy_cpu_us", compose("CPU time, proxy"), "part", CPU_TICK_US, unit="us"),
    Measure("context_switches_voluntary", compose("context switches, voluntary"), "part"),
    Measure("context_switches_involuntary", compose("context switches, involuntary"), "part"),
)
BY_KEY = {measure.key: measure for measure in RESOURCES}
# Key of a measure in the table of costs -> the title of its column, which may be shorter than that of the
# measure. Read and write calls are used only if the device has no counters.
TABLE_COLUMNS = {
    key: BY_KEY[key].title
    for key in (
        *("cpu_us", "proxy_cpu_us", "context_switches", "cpu_wait_us"),
        *("disk_reads", "read_calls", "read_kib", "disk_writes", "write_calls", "write_kib"),
    )
} | {
    "proxy_cpu_us": compose("of it the proxy"),
    "read_kib": compose("read"),
    "write_kib": compose("written"),
}

# Phrases of important counters.
_PHRASES = {
    "Innodb_buffer_pool_reads": mark("reads {amount} pages into the buffer pool"),
    "Innodb_buffer_pool_wait_free": mark("waits {amount} times for a free page"),
    "Innodb_data_fsyncs": mark("syncs files (data and redo log) {amount} times"),
    "Innodb_data_reads": mark("makes {amount} reads of InnoDB's files"),
    "Innodb_data_writes": mark("makes {amount} writes of InnoDB's files"),
    "Innodb_log_waits": mark("waits {amount} times for room in the log buffer"),
    "Innodb_log_writes": mark("writes the redo log {amount} times"),
    "Innodb_os_log_fsyncs": mark("syncs the redo log {amount} times"),
    "Innodb_os_log_written": mark("writes {amount} bytes of redo log"),
    "Innodb_row_lock_time": mark("waits {amount} ms for row locks"),
    "Innodb_row_lock_waits": mark("waits {amount} times for a row lock"),
    "Bytes_received": mark("receives {amount} bytes"),
    "Bytes_sent": mark("sends {amount} bytes"),
    "Created_tmp_disk_tables": mark("makes {amount} temporary tables on disk"),
    "Handler_read_rnd_next": mark("reads {amount} rows in table scans"),
    "Opened_tables": mark("opens {amount} tables"),
    "Select_scan": mark("scans {amount} tables"),
    "Sort_rows": mark("sorts {amount} rows"),
    "Table_open_cache_misses": mark("misses the table cache {amount} times"),
    "Threads_created": mark("creates {amount} threads"),
    "pg_stat_database.blks_hit": mark("finds {amount} pages in shared buffers"),
    "pg_stat_database.blks_read": mark("reads {amount} pages into shared buffers"),
    "pg_stat_database.deadlocks": mark("has {amount} deadlocks"),
    "pg_stat_database.temp_bytes": mark("writes {amount} bytes of temporary files"),
    "pg_stat_wal.wal_buffers_full": mark("runs out of WAL buffers {amount} times"),
    "pg_stat_wal.wal_bytes": mark("writes {amount} bytes of WAL"),
    "pg_stat_wal.wal_fpi": mark("writes {amount} full pages to WAL"),
    "pg_stat_wal.wal_records": mark("writes {amount} WAL records"),
    "pg_stat_wal.wal_sync": mark("syncs the WAL {amount} times"),
    "pg_stat_wal.wal_write": mark("writes the WAL {amount} times"),
}

# Prefixes of status variables that are not counters (gauges, points in time, settings), and of counters that
# only dbdyno's own queries increase.
_GAUGE_PREFIXES = """
Acl_ Aria_pagecache_blocks Binlog_gtid Binlog_snapshot Busy_time Caching_sha2 Com_admin Com_set Com_show
Cpu_time Current_tls Delayed_ Deprecated Dragnet Error_log Feature_ Global_connection_memory Gtid
Innodb_available_undo Innodb_background Innodb_buffer_pool_bytes Innodb_buffer_pool_chunks
Innodb_buffer_pool_dump Innodb_buffer_pool_load Innodb_buffer_pool_pages_ Innodb_buffer_pool_resize
Innodb_checkpoint Innodb_current Innodb_encryption_ Innodb_have Innodb_history Innodb_ibuf_free
Innodb_ibuf_segment Innodb_ibuf_size Innodb_instant Innodb_lsn_flushed Innodb_lsn_last Innodb_master_thread
Innodb_max_trx Innodb_mem_ Innodb_num_open Innodb_page_size Innodb_redo_log_ Innodb_row_lock_current
Innodb_row_lock_time_ Innodb_undo_tablespaces Key_blocks Last_ Master_gtid Max_ Memory_used Mysqlx Open_
Performance_schema Prepared_stmt_count Qcache_free Qcache_queries_in Qcache_total Replica Resource_group
Rpl_ Rsa_ Secondary_engine Slave Ssl_ Tc_log Telemetry Threadpool_idle Threadpool_threads Threads_cached
Threads_connected Threads_running Tls_ Transactions_gtid Uptime Validate_password pg_stat_activity
pg_stat_replication wsrep
"""
_NO_COUNTER_STARTS = tuple(_GAUGE_PREFIXES.split())
# Suffixes of PostgreSQL's gauges.
_NO_COUNTER_ENDS = (
    "n_live_tup",
    "n_dead_tup",
    "n_mod_since_analyze",
    "n_ins_since_vacuum",
    "numbackends",
    "stats_reset",
)
# Counters that have one of those prefixes.
_COUNTERS_NEVERTHELESS = frozenset(
    {
        "Innodb_buffer_pool_pages_flushed",
        "Innodb_buffer_pool_pages_made_young",
        "Innodb_buffer_pool_pages_made_not_young",
        "Innodb_buffer_pool_pages_lru_flushed",
    }
)

# The unit of work to which costs refer -> its name.
PER = {"query": compose("query"), "transaction": compose("transaction")}
# Unit -> larger units with their factors.
_SCALES = {
    "us": ((1e6, "s"), (1e3, "ms"), (1.0, "µs")),
    "KiB": ((1024.0**2, "GiB"), (1024.0, "MiB"), (1.0, "KiB")),
}


def counter(name: str) -> Measure | None:
    """The measure for a status variable of the server; None for those that are not counters."""
    if name not in _COUNTERS_NEVERTHELESS and (
        name.startswith(_NO_COUNTER_STARTS) or name.endswith(_NO_COUNTER_ENDS)
    ):
        return None
    return Measure(name, name, "counter", 1.0, _PHRASES.get(name, ""))


def sampled(name: str) -> Measure:
    """The measure for a counter of a `sample` command.

    If its name ends in `_s`, it counts seconds, in steps of a kernel tick; if not, it counts events.
    """
    return Measure(f"sample.{name}", name, "counter", CPU_TICK_US / 1e6 if name.endswith("_s") else 1.0)


def wait(name: str) -> Measure:
    """The measure for the time spent in one kind of wait of performance_schema."""
    return Measure(f"{name} (time)", name, "wait", 1.0, mark("spends {amount} in {title}"), "us")


def sentence(measure: Measure, variant: str, baseline: str, values: tuple[float, float], per: str) -> str:
    """A changed cost as a sentence. `values` are those of baseline and variant; `per` is "query" or
    "transaction".
    """
    of_baseline, of_variant = (amount(measure, value) for value in values)
    if measure.phrase:
        return compose(
            "{variant} {phrase} per {per} instead of {of_baseline}",
            variant=variant,
            phrase=compose(measure.phrase, amount=of_variant, title=measure.title),
            per=PER[per],
            of_baseline=of_baseline,
        )
    return compose(
        "{title}: {of_variant} per {per} with {variant}, {of_baseline} with {baseline}",
        title=measure.title,
        of_variant=of_variant,
        per=PER[per],
        variant=variant,
        of_baseline=of_baseline,
        baseline=baseline,
    )


def amount(measure: Measure, value: float) -> str:
    """A cost with its unit and three significant digits: "512 µs", "3.1", "0.004"."""
    if value == 0.0:
        return f"0 {_SCALES[measure.unit][-1][1]}" if measure.unit else "0"
    if not measure.unit:
        return three_digits(value)
    factor, unit = next(
        (entry for entry in _SCALES[measure.unit] if value >= entry[0]), _SCALES[measure.unit][-1]
    )
    return f"{three_digits(value / factor)} {unit}"


# The sampled values that a measure adds up, if they are not one of its own name; and what converts them.
_SAMPLED: Mapping[str, tuple[str, ...]] = {
    "cpu_us": ("cpu_user_s", "cpu_system_s"),
    "cpu_user_us": ("cpu_user_s",),
    "cpu_system_us": ("cpu_system_s",),
    "proxy_cpu_us": ("proxy_cpu_s",),
    "cpu_wait_us": ("cpu_wait_s",),
    "read_kib": ("read_bytes",),
    "write_kib": ("write_bytes",),
}
_FACTORS = {"us": 1e6, "KiB": 1 / 1024.0, "": 1.0}
# Reads and writes are counted by the device that stores the data. If it has no counters (tmpfs, nfs,
# overlay), the read and write calls of the server's processes replace them.
_REPLACES = {"read_calls": "disk_reads", "write_calls": "disk_writes"}
# Sampled values that are no costs: gauges, components of others, and sums over the machine.
_NOT_COSTS = frozenset(
    {
        *("rss_bytes", "threads", "processes", "threads_ended", "disk_read_bytes", "disk_write_bytes"),
        *("host_cpu_s", "host_iowait_s", "host_steal_s", "host_switches"),
        *("host_swapped_pages", "host_memory_wait_s"),
    }
)
# All values that dbdyno samples. Other names come from the user's `sample` command.
SAMPLED_NAMES = _NOT_COSTS.union(*(_SAMPLED.get(key, (key,)) for key in BY_KEY))


@dataclass(frozen=True)
class Cost:
    """The cost of one transaction in one measure."""

    measure: Measure
    # Growth of the counter between the two readings, in the measure's unit.
    counted: float
    transactions: float

    @property
    def each(self) -> float:
        """The cost per transaction."""
        return self.counted / self.transactions


def log_ratio(baseline: Cost, variant: Cost) -> float:
    """The logarithm of the ratio of two costs of one measure; half a step is added to both counts, so that it
    exists.

    The half step is divided by the same number of transactions in both, so two counters that did not grow
    have the ratio 1, also if the numbers of transactions differ.
    """
    half = baseline.measure.quantum / 2.0 / math.sqrt(baseline.transactions * variant.transactions)
    return math.log((variant.each + half) / (baseline.each + half))


def costs(server: ServerRecord, ticks: Sequence[tuple[int, int]], start_unix_us: int) -> dict[str, Cost]:
    """All costs of one trial by key; empty if the readings are missing or no transaction ended between them.

    Each of the engine's `ticks` has its end in microseconds since the
    start of the run, and the number of transactions that ended in it. The run started at `start_unix_us`.
    """
    edges = server.get("edges")
    # If a reading failed, `edges` contains only the foreign load.
    if not edges or "begin" not in edges:
        return {}
    begin, end = edges["begin"], edges["end"]
    count = transactions_between(ticks, begin["unix_us"] - start_unix_us, end["unix_us"] - start_unix_us)
    if count <= 0:
        return {}
    counted = itertools.chain(_resources(begin, end), _counters(edges), _waits(begin, end))
    return {measure.key: Cost(measure, amount, count) for measure, amount in counted}


def transactions_between(ticks: Sequence[tuple[int, int]], first_us: float, last_us: float) -> float:
    """The number of transactions that ended between two times, by linear interpolation within a tick."""
    ends = [0, *(at for at, _ in ticks)]
    sums = np.cumsum([0, *(events for _, events in ticks)])
    first, last = np.interp([first_us, last_us], ends, sums)
    return float(last - first)


def _resources(begin: CountersRecord, end: CountersRecord) -> Iterator[tuple[Measure, float]]:
    before, after = ({**edge["host"], **edge["process"]} for edge in (begin, end))
    both = before.keys() & after.keys()
    for measure in RESOURCES:
        names = _SAMPLED.get(measure.key, (measure.key,))
        if both.issuperset(names):
            growth = sum(after[name] - before[name] for name in names)
            factor = _FACTORS[measure.unit]
            is_part = _REPLACES.get(measure.key) in both
            yield replace(measure, group="part") if is_part else measure, max(0.0, growth) * factor
    # Counters of a `sample` command. A value that decreased is not a counter, or it was reset.
    for name in sorted(both - SAMPLED_NAMES):
        if after[name] >= before[name]:
            yield sampled(name), after[name] - before[name]


def _counters(edges: EdgesRecord) -> Iterator[tuple[Measure, float]]:
    before, after, of_dbdyno = edges["begin"]["status"], edges["end"]["status"], edges.get("own", {})
    for name, text in after.items():
        measure = counter(name)
        first, last = _number(before.get(name)), _number(text)
        # A value that decreased is not a counter, or it was reset.
        if measure is not None and first is not None and last is not None and last >= first:
            # Subtract by how much a reading itself increases the counter.
            yield measure, max(0.0, last - first - of_dbdyno.get(name, 0.0))


def _waits(begin: CountersRecord, end: CountersRecord) -> Iterator[tuple[Measure, float]]:
    for name, (_, seconds) in end["waits"].items():
        # Idle waits are not a cost.
        if not name.startswith("idle"):
            _, before = begin["waits"].get(name, (0, 0.0))
            yield wait(name), max(0.0, seconds - before) * 1e6


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
