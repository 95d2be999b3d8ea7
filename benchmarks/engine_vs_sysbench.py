"""dbdyno-engine against sysbench on one private MariaDB, in pairs of alternating order.

Two questions: is the engine as fast in a closed loop, and at an equal fixed rate, half of the lower capacity,
do both measure the same average latency? Run it with `make bench`; `--help` lists the options.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
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
}
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


def main() -> int:
    """Exit code 0 when every bar holds, 1 otherwise."""
    options = _options()
    if shutil.which("sysbench") is None:
        raise SystemExit("sysbench is not installed: apt-get install sysbench")
    lines: list[str] = []
    held = True
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        workspace = Workspace.open(Path(scratch))
        spec = ServerSpec(variables=VARIABLES)
        with (
            closing(workspace),
            closing(open_server(Variant(name="bench", server=spec), workspace, None)) as server,
        ):
            server.restore()
            server.start()
            dbdyno, sysbench = Dbdyno(server.address()), Sysbench(server.address())
            lines.append(f"Server: {server.describe().product} {server.describe().version}\n")
            for workload in options.workload:
                setting = Setting(workload, options.connections, options.seconds, 4, options.table_size)
                dbdyno.prepare(setting)
                held &= _workload(dbdyno, sysbench, setting, options.pairs, lines)
    if options.output:
        options.output.write_text("# dbdyno-engine against sysbench\n\n" + "\n".join(lines) + "\n")
    return 0 if held else 1


def _workload(dbdyno: Dbdyno, sysbench: Sysbench, setting: Setting, pairs: int, lines: list[str]) -> bool:
    capacity = _pairs(dbdyno, sysbench, setting, pairs)
    held = _table(f"{setting.workload}, {setting.connections} connections", capacity, CAPACITY_BARS, lines)
    lower = min(median(side.throughput for side in sides) for sides in zip(*capacity, strict=True))
    at_rate = replace(setting, rate=round(lower / 2))
    title = f"{setting.workload}, {setting.connections} connections, {at_rate.rate} tx/s (Poisson)"
    return _table(title, _pairs(dbdyno, sysbench, at_rate, pairs), RATE_BARS, lines) and held


def _pairs(
    dbdyno: Dbdyno, sysbench: Sysbench, setting: Setting, pairs: int
) -> list[tuple[Measured, Measured]]:
    """(dbdyno, sysbench) per pair; who goes first alternates. One short unrecorded run warms the server."""
    dbdyno.run(replace(setting, seconds=2))
    measured = []
    for number in range(pairs):
        if number % 2 == 0:
            ours = dbdyno.run(setting)
            theirs = sysbench.run(setting)
        else:
            theirs = sysbench.run(setting)
            ours = dbdyno.run(setting)
        measured.append((ours, theirs))
        print(f"  pair {number + 1} of {pairs}: {ours} | {theirs}", file=sys.stderr)
    return measured


def _table(
    title: str, pairs: Sequence[tuple[Measured, Measured]], bars: Sequence[Bar], lines: list[str]
) -> bool:
    """Append a table to `lines`, print it, and tell whether every bar holds for the median ratio."""
    rows = [
        f"## {title}\n",
        f"{len(pairs)} pairs; the interval is that of the ratio, at the best level so few pairs can reach.\n",
        "| | dbdyno | sysbench | ratio | interval | bar |",
        "|---|---|---|---|---|---|",
    ]
    held = True
    for figure, label in FIGURES.items():
        ours, theirs = ([getattr(side, figure) for side in sides] for sides in zip(*pairs, strict=True))
        ratios = log_ratios(theirs, ours)
        ratio = _ratio(hodges_lehmann(ratios))
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workload", nargs="+", default=["oltp_read_write", "oltp_point_select"])
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--seconds", type=int, default=20, help="length of one run")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--table-size", type=int, default=20_000, help="rows in each of 4 tables")
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument("--output", type=Path, default=None, help="Markdown file to write")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
