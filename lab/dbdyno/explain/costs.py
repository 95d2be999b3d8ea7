"""Computes the costs per transaction of one trial from the counters in its server.json."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dbdyno.explain.measures import BY_KEY, PAGE_KIB, Measure, counter, sampled, wait
from dbdyno.server_record import CountersRecord, EdgesRecord, ServerRecord

KIB = 1024.0
# Key of a measure -> the sampled values that it adds up, and the factor that converts them to its unit.
_SAMPLED: Mapping[str, tuple[tuple[str, ...], float]] = {
    "cpu_us": (("cpu_user_s", "cpu_system_s"), 1e6),
    "cpu_user_us": (("cpu_user_s",), 1e6),
    "cpu_system_us": (("cpu_system_s",), 1e6),
    "proxy_cpu_us": (("proxy_cpu_s",), 1e6),
    "cpu_wait_us": (("cpu_wait_s",), 1e6),
    "context_switches": (("context_switches",), 1.0),
    "context_switches_voluntary": (("context_switches_voluntary",), 1.0),
    "context_switches_involuntary": (("context_switches_involuntary",), 1.0),
    "major_faults": (("major_faults",), 1.0),
    "read_kib": (("read_bytes",), 1 / KIB),
    "write_kib": (("write_bytes",), 1 / KIB),
    "disk_reads": (("disk_reads",), 1.0),
    "disk_writes": (("disk_writes",), 1.0),
    "read_calls": (("read_calls",), 1.0),
    "write_calls": (("write_calls",), 1.0),
}
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
SAMPLED_NAMES = _NOT_COSTS.union(*(names for names, _ in _SAMPLED.values()))
assert _SAMPLED.keys() == BY_KEY.keys()
assert PAGE_KIB == 4.0


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
    sums = [0.0]
    for _, events in ticks:
        sums.append(sums[-1] + events)

    def until(at: float) -> float:
        index = bisect.bisect_left(ends, at)
        if index == 0 or index == len(ends):
            return sums[min(index, len(sums) - 1)]
        share = (at - ends[index - 1]) / (ends[index] - ends[index - 1])
        return sums[index - 1] + share * (sums[index] - sums[index - 1])

    return until(last_us) - until(first_us)


def _resources(begin: CountersRecord, end: CountersRecord) -> Iterator[tuple[Measure, float]]:
    before, after = ({**edge["host"], **edge["process"]} for edge in (begin, end))
    both = before.keys() & after.keys()
    for key, (names, factor) in _SAMPLED.items():
        if both.issuperset(names):
            growth = sum(after[name] - before[name] for name in names)
            measure = BY_KEY[key]
            if _REPLACES.get(key) in both:
                measure = replace(measure, group="part")
            yield measure, max(0.0, growth) * factor
    # Counters of a `sample` command. A value that decreased is not a counter, or it was reset.
    for name in sorted(both - SAMPLED_NAMES):
        if after[name] >= before[name]:
            yield sampled(name), after[name] - before[name]


def _counters(edges: EdgesRecord) -> Iterator[tuple[Measure, float]]:
    before, after, own = edges["begin"]["status"], edges["end"]["status"], edges.get("own", {})
    for name, text in after.items():
        measure = counter(name)
        first, last = _number(before.get(name)), _number(text)
        # A value that decreased is not a counter, or it was reset.
        if measure is not None and first is not None and last is not None and last >= first:
            # Subtract by how much a reading itself increases the counter.
            yield measure, max(0.0, last - first - own.get(name, 0.0))


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
