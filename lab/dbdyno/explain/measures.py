"""Measures of a transaction's cost: resources of the server's processes, and every counter of the server.

The resources are those by which Callaghan compares servers (cpu/o, cs/o, r/o, rKB/o, wKB/o), and the
run-queue wait. A counter has the server's own name; the most important ones also have a phrase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# resource: of the machine. counter, wait: of the server. part: component of a resource, not tested
# separately.
Group = Literal["resource", "counter", "wait", "part"]


@dataclass(frozen=True)
class Measure:
    """One measure, and its form in tables and sentences."""

    key: str
    # Name in tables.
    title: str
    group: Group
    # Resolution of the counter, in the measure's unit.
    quantum: float = 1.0
    # A phrase with {} for amount and unit: "makes {} context switches".
    phrase: str = ""
    # Large amounts of "us" and "KiB" are shown in larger units.
    unit: Literal["", "us", "KiB"] = ""


CPU_TICK_US = 10_000.0
PAGE_KIB = 4.0

RESOURCES: tuple[Measure, ...] = (
    Measure("cpu_us", "CPU time", "resource", CPU_TICK_US, "uses {} of CPU time", "us"),
    Measure("context_switches", "context switches", "resource", 1.0, "makes {} context switches"),
    Measure("cpu_wait_us", "run-queue wait", "resource", 1.0, "has a run-queue wait of {}", "us"),
    Measure("disk_reads", "disk reads", "resource", 1.0, "makes {} disk reads"),
    Measure("read_kib", "read from storage", "resource", PAGE_KIB, "reads {} from storage", "KiB"),
    Measure("disk_writes", "disk writes", "resource", 1.0, "makes {} disk writes"),
    Measure("write_kib", "written to storage", "resource", PAGE_KIB, "writes {} to storage", "KiB"),
    Measure("read_calls", "read calls", "resource", 1.0, "makes {} read calls"),
    Measure("write_calls", "write calls", "resource", 1.0, "makes {} write calls"),
    Measure(
        "major_faults",
        "major page faults",
        "resource",
        1.0,
        "waits for {} pages that were swapped or dropped",
    ),
    Measure("cpu_user_us", "CPU time, user", "part", CPU_TICK_US, unit="us"),
    Measure("cpu_system_us", "CPU time, system", "part", CPU_TICK_US, unit="us"),
    Measure("context_switches_voluntary", "context switches, voluntary", "part"),
    Measure("context_switches_involuntary", "context switches, involuntary", "part"),
)
BY_KEY = {measure.key: measure for measure in RESOURCES}

# Phrases of the best known counters.
_PHRASES = {
    "Innodb_buffer_pool_reads": "reads {} pages into the buffer pool",
    "Innodb_buffer_pool_wait_free": "waits {} times for a free page",
    "Innodb_data_fsyncs": "syncs data files {} times",
    "Innodb_data_reads": "makes {} reads of InnoDB's files",
    "Innodb_data_writes": "makes {} writes of InnoDB's files",
    "Innodb_log_waits": "waits {} times for room in the log buffer",
    "Innodb_log_writes": "writes the redo log {} times",
    "Innodb_os_log_fsyncs": "syncs the redo log {} times",
    "Innodb_os_log_written": "writes {} bytes of redo log",
    "Innodb_row_lock_time": "waits {} ms for row locks",
    "Innodb_row_lock_waits": "waits {} times for a row lock",
    "Bytes_received": "receives {} bytes",
    "Bytes_sent": "sends {} bytes",
    "Created_tmp_disk_tables": "makes {} temporary tables on disk",
    "Handler_read_rnd_next": "reads {} rows in table scans",
    "Opened_tables": "opens {} tables",
    "Select_scan": "scans {} tables",
    "Sort_rows": "sorts {} rows",
    "Table_open_cache_misses": "misses the table cache {} times",
    "Threads_created": "creates {} threads",
    "pg_stat_database.blks_hit": "finds {} pages in shared buffers",
    "pg_stat_database.blks_read": "reads {} pages into shared buffers",
    "pg_stat_database.deadlocks": "has {} deadlocks",
    "pg_stat_database.temp_bytes": "writes {} bytes of temporary files",
    "pg_stat_wal.wal_buffers_full": "runs out of WAL buffers {} times",
    "pg_stat_wal.wal_bytes": "writes {} bytes of WAL",
    "pg_stat_wal.wal_fpi": "writes {} full pages to WAL",
    "pg_stat_wal.wal_records": "writes {} WAL records",
    "pg_stat_wal.wal_sync": "syncs the WAL {} times",
    "pg_stat_wal.wal_write": "writes the WAL {} times",
}

# Prefixes of status variables that are not counters (gauges, times of day, settings), and of counters that
# only dbdyno's own queries increase.
_LEVELS = """
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
_NO_COUNTERS = tuple(_LEVELS.split())
# Suffixes of PostgreSQL's gauges.
_NO_COUNTER_ENDS = (
    "n_live_tup",
    "n_dead_tup",
    "n_mod_since_analyze",
    "n_ins_since_vacuum",
    "numbackends",
    "stats_reset",
)
# Counters whose names have a prefix of the gauges, such as pages flushed or made young.
_COUNTED = frozenset(
    {
        "Innodb_buffer_pool_pages_flushed",
        "Innodb_buffer_pool_pages_made_young",
        "Innodb_buffer_pool_pages_made_not_young",
        "Innodb_buffer_pool_pages_lru_flushed",
    }
)


def counter(name: str) -> Measure | None:
    """The measure for a counter of the server; None for gauges and for counters of dbdyno's own queries."""
    if name not in _COUNTED and (name.startswith(_NO_COUNTERS) or name.endswith(_NO_COUNTER_ENDS)):
        return None
    return Measure(name, name, "counter", 1.0, _PHRASES.get(name, ""))


def sampled(name: str) -> Measure:
    """The measure for a counter of a `sample` command.

    Counters whose names end in `_s` are seconds in the kernel's ticks; all others count events.
    """
    return Measure(f"sample.{name}", name, "counter", CPU_TICK_US / 1e6 if name.endswith("_s") else 1.0)


def wait(name: str) -> Measure:
    """The measure for a wait of performance_schema: the time spent in it."""
    return Measure(f"{name} (time)", name, "wait", 1.0, f"spends {{}} in {name}", "us")
