"""Compares loading by dbdyno-engine with sysbench's prepare on one private MariaDB, in alternating order.

Both create and load the same tables on the same server over the same transport; the tables are dropped
after each load. Rows and indexes are timed separately. The engine reports both times. For sysbench they
follow from its output: the rows take from the first "Inserting" to the last "Creating a secondary index".
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import peer
from results import machine, write_section

from dbdyno.experiment.model import ServerSpec, Variant
from dbdyno.run.engine import Engine
from dbdyno.servers import Workspace, open_server
from dbdyno.servers.server import Address

VARIABLES: dict[str, str | int | float | bool] = {
    "innodb_buffer_pool_size": "2G",
    "innodb_flush_log_at_trx_commit": 2,
    # Large enough for the redo of a complete load, so that no checkpoint disturbs one run of a pair.
    "innodb_log_file_size": "2G",
    # MySQL's default, and the value that dbdyno sets while loading. With 1, MariaDB's default, LOAD DATA
    # streams into one table wait for each other's AUTO-INC lock. sysbench always loads a table by one stream.
    "innodb_autoinc_lock_mode": 2,
}


@dataclass(frozen=True)
class Case:
    """Tables to load, the number of streams, and the target: the factor by which dbdyno must be faster."""

    tables: int
    rows: int
    streams: int
    target: float

    def __str__(self) -> str:
        tables = "1 table" if self.tables == 1 else f"{self.tables} tables"
        return f"{tables} of {self.rows:,} rows, {self.streams} streams"


CASES = (Case(2, 1_000_000, 2, 1.5), Case(1, 4_000_000, 2, 2.0))


@dataclass(frozen=True)
class LoadTime:
    """Seconds of one load, and the loading method."""

    rows_s: float
    index_s: float
    method: str


def dbdyno(address: Address, case: Case) -> LoadTime:
    """One load by the engine; drops the tables afterwards."""
    plan: dict[str, Any] = {
        "schema": 1,
        "target": address.target(),
        "workload": {
            "name": "oltp_read_write",
            "options": {"tables": case.tables, "table_size": case.rows},
        },
        "load": {"connections": 1},
        "phases": {"measure_us": 1_000_000},
        "seed": 1,
        "loading": {"streams": case.streams},
    }
    loaded: list[Any] = []

    def keep(record: Any) -> None:
        if record["type"] == "loaded":
            loaded.append(record["data"])

    for command in ("prepare", "cleanup"):
        result = Engine().run(command, plan, address.environment(), keep)
        if not result.done:
            raise SystemExit(f"dbdyno-engine {command}: {result.failure()}")
    return LoadTime(loaded[0]["rows_us"] / 1e6, loaded[0]["index_us"] / 1e6, loaded[0]["way"])


def sysbench(address: Address, case: Case) -> LoadTime:
    """One load by sysbench; drops the tables afterwards."""
    arguments = (
        f"--threads={case.streams}",
        f"--tables={case.tables}",
        f"--table-size={case.rows}",
        "oltp_read_write",
    )
    with peer.sysbench(address, *arguments) as command:
        took = _follow([*command, "prepare"])
        subprocess.run([*command, "cleanup"], check=True, stdout=subprocess.DEVNULL)
    return took


def _follow(command: Sequence[str]) -> LoadTime:
    """Run a prepare and time the lines of its output; `stdbuf` makes it write each line at once."""
    inserting: list[float] = []
    indexing: list[float] = []
    with subprocess.Popen(["stdbuf", "-oL", *command], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = []
        for line in process.stdout:
            output.append(line)
            if line.startswith("Inserting"):
                inserting.append(time.monotonic())
            elif line.startswith("Creating a secondary index"):
                indexing.append(time.monotonic())
    ended = time.monotonic()
    if process.returncode != 0:
        raise SystemExit(f"sysbench ended with {process.returncode}:\n{''.join(output)[-2000:]}")
    return LoadTime(indexing[-1] - inserting[0], ended - indexing[-1], "insert")


def main() -> int:
    """Exit code 0 if every target is met, 1 otherwise."""
    options = _options()
    for program in ("sysbench", "stdbuf"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not installed")
    lines, held = ["# Loading\n", f"{machine()}\n"], True
    for case in (CASES[number] for number in options.case):
        pairs = _pairs(case, options.pairs, options.scratch)
        held &= _table(case, pairs, lines)
    if options.output:
        write_section(options.output, "loading", "\n".join(lines))
    return 0 if held else 1


def _pairs(case: Case, count: int, scratch: Path | None) -> list[tuple[LoadTime, LoadTime]]:
    """(dbdyno, sysbench) of each pair; the order alternates. One short load by each side warms up."""
    pairs = []
    with tempfile.TemporaryDirectory(dir=scratch) as directory:
        Path(directory).chmod(0o711)
        workspace = Workspace.open(Path(directory))
        variant = Variant(name="loading", server=ServerSpec(variables=VARIABLES))
        with closing(workspace), closing(open_server(variant, workspace, None)) as server:
            server.restore()
            server.start()
            address = server.address()
            for side in (dbdyno, sysbench):
                side(address, Case(case.tables, 50_000, case.streams, 0))
            for number in range(count):
                sides = (dbdyno, sysbench) if number % 2 == 0 else (sysbench, dbdyno)
                took = {side: side(address, case) for side in sides}
                pairs.append((took[dbdyno], took[sysbench]))
                print(
                    f"  pair {number + 1} of {count}: {json.dumps([vars(t) for t in pairs[-1]])}",
                    file=sys.stderr,
                )
    return pairs


def _table(case: Case, pairs: Sequence[tuple[LoadTime, LoadTime]], lines: list[str]) -> bool:
    """Append a table to `lines` and print it. Returns whether loading the rows meets the target."""
    methods = sorted({ours.method for ours, _ in pairs})
    rows = [
        f"## {case}\n",
        f"{len(pairs)} pairs; dbdyno loads by {', '.join(methods)}. "
        "All figures but those of each pair are medians.\n",
        "| | dbdyno | sysbench | times as fast | times as fast, each pair | times as fast, target |",
        "|---|---|---|---|---|---|",
    ]
    held = True
    for figure, label in (("rows_s", "rows, s"), ("index_s", "index, s")):
        ours, theirs = ([getattr(side, figure) for side in sides] for sides in zip(*pairs, strict=True))
        ratios = [their / our for our, their in zip(ours, theirs, strict=True)]
        verdict = ""
        if figure == "rows_s":
            held = median(ratios) >= case.target
            verdict = f"{case.target:g}: {'met' if held else 'MISSED'}"
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        medians = " | ".join(f"{median(values):.2f}" for values in (ours, theirs, ratios))
        rows.append(f"| {label} | {medians} | {each} | {verdict} |")
    rows.append("")
    print("\n".join(rows), flush=True)
    lines.extend(rows)
    return held


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare loading by dbdyno-engine with sysbench's prepare.")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--case", type=int, nargs="+", choices=range(len(CASES)), default=range(len(CASES)))
    parser.add_argument("--scratch", type=Path, default=None, help="folder for the server's data")
    parser.add_argument(
        "--output", type=Path, default=None, help="Markdown file; its section on loading is replaced"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
