"""dbdyno-engine against sysbench on private MariaDB servers, in pairs of alternating order.

Two questions. Is the engine as fast in a closed loop, where client and server share all CPUs? And at an equal
fixed rate, half of the lower capacity, do both measure the same average latency? There server and client are
held to CPUs of their own: where they share them, a generator that is kept from the CPU starts its clock late
(sysbench) or charges the delay to the event (dbdyno), and the two no longer measure the same thing. For the
same reason a single point select has no bar there: sysbench's clock starts when its generator has woken up,
dbdyno's when the event was due, and a wake-up of some 40 us is a fifth of such an event.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from sides import Dbdyno, Measured, Setting, Sysbench

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.servers import Workspace, open_server
from dbdyno.stats.signed_rank import hodges_lehmann, interval, log_ratios, percent

VARIABLES: dict[str, str | int | float | bool] = {
    "innodb_buffer_pool_size": "1G",
    "innodb_flush_log_at_trx_commit": 2,
    # Room for a whole run's redo: a checkpoint in one run of a pair and not in the other is no difference.
    "innodb_log_file_size": "1G",
}
TABLES = 4
FIGURES = {
    "throughput": "throughput, tx/s",
    "latency_avg": "average latency, ms",
    "latency_p95": "p95 latency, ms",
    "cpu_per_query": "client CPU per query, us",
}


@dataclass(frozen=True)
class Bar:
    """What a ratio dbdyno / sysbench must keep to."""

    figure: str
    low: float
    high: float


CAPACITY_BARS = (Bar("throughput", 0.95, float("inf")), Bar("latency_p95", 0.0, 1.10))
RATE_BARS = (Bar("latency_avg", 0.90, 1.10),)

Pair = tuple[Measured, Measured]


@dataclass(frozen=True)
class Peers:
    """Both sides on one server with loaded tables."""

    dbdyno: Dbdyno
    sysbench: Sysbench

    def pairs(self, setting: Setting, count: int) -> list[Pair]:
        """(dbdyno, sysbench) per pair; who goes first alternates. A short run that is not kept warms up."""
        self.dbdyno.run(replace(setting, seconds=3))
        measured = []
        for number in range(count):
            if number % 2 == 0:
                ours = self.dbdyno.run(setting)
                theirs = self.sysbench.run(setting)
            else:
                theirs = self.sysbench.run(setting)
                ours = self.dbdyno.run(setting)
            measured.append((ours, theirs))
            print(f"  pair {number + 1} of {count}: {ours} | {theirs}", file=sys.stderr)
        return measured


@contextmanager
def peers(scratch: Path, setting: Setting, *, apart: bool) -> Iterator[Peers]:
    """Both sides and a private server; `apart` holds it to the first CPU and the clients to the others."""
    cpus = sorted(os.sched_getaffinity(0))
    spec = ServerSpec(variables=VARIABLES, cpus=str(cpus[0]) if apart else None)
    workspace = Workspace.open(scratch)
    variant = Variant(name="bench", server=spec)
    with closing(workspace), closing(open_server(variant, workspace, None)) as server:
        server.restore()
        server.start()
        both = Peers(Dbdyno(server.address()), Sysbench(server.address()))
        both.dbdyno.prepare(setting)
        if apart:
            os.sched_setaffinity(0, cpus[1:] or cpus)
        try:
            yield both
        finally:
            os.sched_setaffinity(0, cpus)


def main() -> int:
    """Exit code 0 when every bar holds, 1 otherwise."""
    options = _options()
    if shutil.which("sysbench") is None:
        raise SystemExit("sysbench is not installed: apt-get install sysbench")
    lines: list[str] = []
    held = True
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        for workload in options.workload:
            setting = Setting(workload, options.connections, options.seconds, TABLES, options.table_size)
            with peers(Path(scratch), setting, apart=False) as both:
                title = f"{workload}, {setting.connections} connections, sharing CPUs with the server"
                held &= _table(title, both.pairs(setting, options.pairs), CAPACITY_BARS, lines)
            with peers(Path(scratch), setting, apart=True) as both:
                at_rate = replace(setting, rate=_half_capacity(both, setting))
                title = f"{workload}, {at_rate.rate} tx/s (Poisson), on CPUs of their own"
                bars = () if workload == "oltp_point_select" else RATE_BARS
                held &= _table(title, both.pairs(at_rate, options.rate_pairs), bars, lines)
    if options.output:
        options.output.write_text("# dbdyno-engine against sysbench\n\n" + "\n".join(lines) + "\n")
    return 0 if held else 1


def _half_capacity(both: Peers, setting: Setting) -> int:
    """Half of what the slower side reaches in a closed loop, in transactions per second."""
    ((ours, theirs),) = both.pairs(replace(setting, seconds=min(10, setting.seconds)), 1)
    return round(min(ours.throughput, theirs.throughput) / 2)


def _table(title: str, pairs: Sequence[Pair], bars: Sequence[Bar], lines: list[str]) -> bool:
    """Append a table to `lines`, print it, and tell whether every bar holds for the ratio."""
    rows = [
        f"## {title}\n",
        f"{len(pairs)} pairs; medians, and the Hodges-Lehmann ratio with its signed-rank interval.\n",
        "| | dbdyno | sysbench | ratio | interval | bar |",
        "|---|---|---|---|---|---|",
    ]
    held = True
    for figure, label in FIGURES.items():
        ours, theirs = ([getattr(side, figure) for side in sides] for sides in zip(*pairs, strict=True))
        ratios = log_ratios(theirs, ours)
        ratio = _ratio(hodges_lehmann(ratios))
        # Five pairs reach 93.75 % at best.
        reach = interval(ratios, 0.0625 if len(pairs) < 6 else 0.05)
        shown = "" if reach is None else f"{_ratio(reach.low):.3f} to {_ratio(reach.high):.3f}"
        bar = next((bar for bar in bars if bar.figure == figure), None)
        verdict = ""
        if bar is not None:
            holds = bar.low <= ratio <= bar.high
            held &= holds
            verdict = f"{bar.low:g} to {bar.high:g}: {'holds' if holds else 'MISSED'}"
        figures = f"{median(ours):.3f} | {median(theirs):.3f} | {ratio:.3f}"
        rows.append(f"| {label} | {figures} | {shown} | {verdict} |")
    rows.append("")
    print("\n".join(rows), flush=True)
    lines.extend(rows)
    return held


def _ratio(log_ratio: float) -> float:
    return 1 + percent(log_ratio) / 100


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="dbdyno-engine against sysbench on private servers.")
    parser.add_argument("--workload", nargs="+", default=["oltp_read_write", "oltp_point_select"])
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=20, help="length of one run")
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--rate-pairs", type=int, default=6)
    parser.add_argument("--table-size", type=int, default=20_000, help="rows in each of 4 tables")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
