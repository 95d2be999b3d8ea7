"""10,000 terminals with keying and think times, from one process of the load generator.

TPC-C has ten terminals for each warehouse; 10,000 terminals over 20 warehouses are off-specification, and
no figure here is an audited result of TPC-C. The target is at most 0.3 of a CPU for the load generator.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import psutil

from dbdyno.run.engine import Engine

from .servers import TRANSACTIONS, engine_plan, experiment, prepare, private_server

TARGET_CPUS = 0.3
VARIABLES: dict[str, str | int] = {
    "innodb_buffer_pool_size": "4G",
    "innodb_log_file_size": "2G",
    "innodb_flush_log_at_trx_commit": 2,
    "skip_log_bin": "ON",
    "max_connections": 10_100,
    "table_open_cache": 1000,
    "local_infile": "ON",
}


class Watched:
    """The CPU seconds and the memory of the engine during the measurement."""

    def __init__(self) -> None:
        self._process: psutil.Process | None = None
        self._began: tuple[float, float] | None = None
        self.cpus, self.memory_mib = 0.0, 0.0
        # Executions of each statement in the measurement.
        self.counts: Counter[str] = Counter()

    def __call__(self, record: Mapping[str, Any]) -> None:
        """Read the process at each record of the measurement."""
        data = record["data"]
        if record["type"] == "hello":
            self._process = psutil.Process(data["pid"])
        elif record["type"] == "statements" and data["phase"] == "measure":
            self.counts.update({name: one["count"] for name, one in data["kinds"].items()})
        elif record["type"] == "phase" and data["name"] == "measure":
            self._began = (time.monotonic(), self._cpu_s())
        elif record["type"] == "interval" and self._began is not None and self._process is not None:
            seconds = time.monotonic() - self._began[0]
            self.cpus = (self._cpu_s() - self._began[1]) / seconds
            self.memory_mib = self._process.memory_info().rss / 2**20

    def _cpu_s(self) -> float:
        assert self._process is not None, "the record hello comes first"
        times = self._process.cpu_times()
        return float(times.user + times.system)


def main(options: argparse.Namespace) -> int:
    """Exit code 0 if the load generator needs at most TARGET_CPUS, 1 otherwise."""
    sizes = {name: getattr(options, name) for name in ("warehouses", "items", "customers")}
    workload = {**sizes, "pauses": True}
    of = experiment(workload, options.terminals, options.seconds, options.warmup)
    with private_server("mariadb", VARIABLES, options.scratch) as address:
        began = time.monotonic()
        prepare(of, address)
        loaded = ", ".join(f"{value:,} {name}" for name, value in sizes.items())
        print(f"loaded {loaded} in {time.monotonic() - began:.0f} s", flush=True)
        watched = Watched()
        result = Engine().run("run", engine_plan(of, address), address.environment(), watched)
    if not result.done or result.end is None:
        print(f"the run failed: {result.failure()}")
        return 1
    totals = result.end["phases"]["measure"]
    print_figures(totals, watched, options)
    return 0 if watched.cpus <= TARGET_CPUS else 1


def print_figures(totals: Mapping[str, Any], watched: Watched, options: argparse.Namespace) -> None:
    """Print the rates of the transactions and what the load generator needed."""
    seconds = (totals["end_us"] - totals["start_us"]) / 1e6
    statements = totals["reads"] + totals["writes"] + totals["other"]
    print(
        f"{options.terminals:,} terminals over {options.warehouses} warehouses (off-specification), "
        f"{seconds:.0f} s: {totals['events'] / seconds:.0f} transactions/s, {statements / seconds:.0f} "
        f"statements/s, {sum(totals['errors'].values())} errors, "
        f"{totals['row_count_mismatches']} row-count mismatches"
    )
    for name in TRANSACTIONS:
        rate = watched.counts[name] / seconds
        print(f"  {name}: {rate:.1f}/s, {100 * rate * seconds / totals['events']:.1f} %")
    new_orders = watched.counts["new-order"] / seconds * 60
    print(f"new-order transactions per minute: {new_orders:.0f} (no audited TPC-C result)")
    verdict = "met" if watched.cpus <= TARGET_CPUS else "MISSED"
    print(
        f"load generator: {watched.cpus:.2f} CPUs (target at most {TARGET_CPUS}: {verdict}), "
        f"{watched.cpus * 1e6 / (statements / seconds):.1f} us per statement, {watched.memory_mib:.0f} MiB"
    )
