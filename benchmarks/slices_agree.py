"""Measures planted differences by trials and by slices, and counts false words of slices on equal servers.

Both ways of pairing (`design.pairing`) measure the same private servers; the server is on CPU 0, the client
on CPU 1. A planted difference costs CPU time, waits for the disk, or waits for a lock. Trials and slices
agree if the 95 % interval of the difference between their effects contains zero. The A/A series are runs in
slices on servers that differ only in a setting without effect, so a word such as "faster" is false.

One run is one cell, a JSON file in the folder `--results`: a later call does only what is missing. The runs
of the two ways alternate, so that both meet the same machine. `--hours` begins no cell that would end later.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scipy.stats import binomtest, ttest_ind

sys.path.append(str(Path(__file__).resolve().parent))

import results

from dbdyno.stats.paired import ALPHA, Effect, Ratios, effect
from dbdyno.stats.signed_rank import percent

SECTION = "slices-agree"
PAIRINGS = ("trials", "slices")
# Start, restore and connection of both servers of a block, in seconds: only for the expected time.
BLOCK_OVERHEAD_S = 12.0
WORDS = ("faster", "slower")

ITEM = """
[[workload]]
name = "sql"
label = "{label}"
setup = ["CREATE TABLE item (id INT PRIMARY KEY, n INT NOT NULL, payload CHAR(120) NOT NULL)"]
transactions = [{transaction}]
[workload.tables.item]
rows = {rows}
columns = {{ id = "sequence()", n = "constant(0)", payload = "text(120)" }}
[workload.parameters]
id = "uniform(1, rows(item))"
"""
OLTP = '[[workload]]\nname = "{name}"\ntables = 4\ntable_size = {rows}\n'

LOOKUP = "{{ sql = 'SELECT payload, BENCHMARK({times}, MD5(payload)) FROM item WHERE id = :id', rows = 1 }}"
UPDATE = "'UPDATE item SET n = n + 1 WHERE id = 1'"
HOLD = "{{ statements = ['BEGIN', {update}, {extra}'COMMIT'] }}"


def hot_row(extra: str) -> str:
    """A transaction that holds the lock of a row while it executes `extra`."""
    return HOLD.format(update=UPDATE, extra=extra)


@dataclass(frozen=True)
class Kind:
    """A comparison of two private servers."""

    text: str
    workload: str
    connections: int
    settings: Mapping[str, object] = field(default_factory=dict)
    # Settings of the second server in addition.
    planted: Mapping[str, object] = field(default_factory=dict)
    # Transactions of the second variant, if they are others.
    transaction: str = ""
    prewarm: str = "none"

    @property
    def is_aa(self) -> bool:
        """Whether a word is false."""
        return not self.transaction and "long_query_time" in self.planted

    def experiment(self, name: str, options: argparse.Namespace, pairing: str) -> str:
        """The experiment file."""
        blocks = options.aa_blocks if self.is_aa else options.blocks
        parts = [
            f'[experiment]\nname = "{name}"',
            self.workload,
            f"[load]\nconnections = [{self.connections}]\nduration = '{options.seconds:g}s'\n"
            f"warmup = '{options.warmup:g}s'\nprewarm = '{self.prewarm}'",
            f"[design]\nblocks = {blocks}\npairing = '{pairing}'",
            "[client]\ncpus = '1'",
            # Slices are refused where the data do not fit into the cache, because of what is measured here.
            "[override]\nP19 = 'what a cache keeps is measured here'",
            _variant("a", self.settings),
            _variant("b", {**self.settings, **self.planted}),
        ]
        if self.transaction:
            parts.append(f"[variant.workload]\ntransactions = [{self.transaction}]")
        return "\n".join(parts) + "\n"


def _variant(name: str, settings: Mapping[str, object]) -> str:
    variables = ", ".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
    return (
        f'[[variant]]\nname = "{name}"\n[variant.server]\nproduct = "mariadb"\ncpus = "0"\n'
        f"variables = {{ {variables} }}"
    )


POOL = {"innodb_buffer_pool_size": "128M"}
# Commits that do not wait for the disk, where the disk is not the question.
NO_FLUSH = {**POOL, "innodb_flush_log_at_trx_commit": 2}
NEUTRAL = {"long_query_time": 11}
KINDS = {
    "cpu": Kind(
        "CPU: an expression in the statement (MD5 of a column, eight times)",
        ITEM.format(label="lookup", transaction=LOOKUP.format(times=0), rows=20_000),
        4,
        POOL,
        transaction=LOOKUP.format(times=8),
    ),
    "flush": Kind(
        "IO, writes: innodb_flush_log_at_trx_commit 1, then 2; oltp_update_non_index",
        OLTP.format(name="oltp_update_non_index", rows=10_000),
        4,
        POOL,
        planted={"innodb_flush_log_at_trx_commit": 2},
    ),
    "pool": Kind(
        "IO, reads: buffer pool of 128 MiB, then 32 MiB, some 45 MiB of data; oltp_point_select",
        OLTP.format(name="oltp_point_select", rows=40_000),
        4,
        POOL,
        planted={"innodb_buffer_pool_size": "32M"},
        prewarm="scan",
    ),
    "lock": Kind(
        "lock: all connections update one row, and b holds it for another statement",
        ITEM.format(label="hot", transaction=hot_row(""), rows=1_000),
        8,
        NO_FLUSH,
        transaction=hot_row("'SELECT SLEEP(0.0001)', "),
    ),
    "aa-reads": Kind(
        "A/A: oltp_point_select, slices of 250 ms",
        OLTP.format(name="oltp_point_select", rows=10_000),
        4,
        POOL,
        planted=NEUTRAL,
    ),
    "aa-writes": Kind(
        "A/A: oltp_read_write, slices of 1 s",
        OLTP.format(name="oltp_read_write", rows=10_000),
        16,
        NO_FLUSH,
        planted=NEUTRAL,
    ),
}


@dataclass(frozen=True)
class Cell:
    """One run."""

    kind: str
    pairing: str
    part: int

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.pairing}-{self.part:02}"

    def expected_s(self, options: argparse.Namespace) -> float:
        """Wall time in seconds."""
        blocks = options.aa_blocks if KINDS[self.kind].is_aa else options.blocks
        return float(blocks * (2 * (options.seconds + options.warmup) + BLOCK_OVERHEAD_S))


def cells(options: argparse.Namespace) -> list[Cell]:
    """All cells in the order in which they run; which way of pairing is first alternates."""
    chosen: list[Cell] = []
    for part in range(max(options.parts, options.series)):
        order = PAIRINGS if part % 2 == 0 else PAIRINGS[::-1]
        for name in options.kinds:
            if KINDS[name].is_aa and part < options.series:
                chosen.append(Cell(name, "slices", part))
            elif not KINDS[name].is_aa and part < options.parts:
                chosen += [Cell(name, pairing, part) for pairing in order]
    return chosen


def measure(cell: Cell, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Run a cell. Raises SystemExit if the comparison fails."""
    runs = folder / "runs"
    name = f"agree-{cell.name}"
    # An interrupted run of this cell.
    shutil.rmtree(runs / name, ignore_errors=True)
    file = folder / f"{cell.name}.toml"
    file.write_text(KINDS[cell.kind].experiment(name, options, cell.pairing))
    began = time.monotonic()
    command = [sys.executable, "-m", "dbdyno", "compare", str(file), "--results", str(runs), "--no-report"]
    ended = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    stored = sorted((runs / name).glob("*/verdict.json"))
    (folder / f"{cell.name}.log").write_text(ended.stdout)
    cell_facts = {"kind": cell.kind, "pairing": cell.pairing, "part": cell.part}
    if ended.returncode != 0 or not stored:
        # Kept like a result: a series that repeats failed runs would favour those that met no disturbance.
        sentence = f"FAILED with exit code {ended.returncode}, see {cell.name}.log"
        return {**cell_facts, "sentence": sentence, "wall_s": round(time.monotonic() - began, 1)}
    curve = json.loads(stored[-1].read_text())["comparisons"][0]["curve"]
    measured = json.loads(stored[-1].with_name("measured.json").read_text())
    by_block = measured["comparisons"][0]["curve"]["percent"]
    return {
        **cell_facts,
        "log_ratios": [math.log1p(one / 100) for one in by_block.values() if one is not None and one > -100],
        "verdict": curve["verdict"],
        "interval_percent": curve["interval_percent"],
        "sentence": curve["sentence"],
        "wall_s": round(time.monotonic() - began, 1),
    }


def run(options: argparse.Namespace, folder: Path) -> None:
    """Run the cells that are missing, until the time is over."""
    chosen, began, spent_s, expected_s = cells(options), time.monotonic(), 0.0, 0.0
    whole_s = sum(cell.expected_s(options) for cell in chosen)
    for number, cell in enumerate(chosen, start=1):
        path = folder / f"{cell.name}.json"
        # The cells that are done tell how long the others take.
        scale = spent_s / expected_s if spent_s else 1.0
        if not path.exists():
            if time.monotonic() - began + scale * cell.expected_s(options) > options.hours * 3600:
                print(f"{cell.name} would end after {options.hours:g} hours", flush=True)
                return
            result = measure(cell, options, folder)
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(result, indent=1))
            unfinished.rename(path)
        result = json.loads(path.read_text())
        spent_s += result["wall_s"]
        expected_s += cell.expected_s(options)
        whole_h = whole_s * spent_s / expected_s / 3600
        done = f"{number} of {len(chosen)} cells, {spent_s / 3600:.2f} of about {whole_h:.2f} hours"
        print(f"{done}: {cell.name}: {result['sentence']}", flush=True)


def pooled(found: Sequence[Mapping[str, Any]], kind: str, pairing: str) -> list[float]:
    """The log ratios of all blocks of all parts."""
    chosen = (one for one in found if one["kind"] == kind and one["pairing"] == pairing)
    return [ratio for one in chosen for ratio in one.get("log_ratios", [])]


def interval(one: Effect | None) -> str:
    if one is None or one.interval_percent is None:
        return "" if one is None else f"{one.effect_percent:+.1f}"
    low, high = one.interval_percent
    return f"{one.effect_percent:+.1f} ({low:+.1f} to {high:+.1f})"


def table(found: Sequence[Mapping[str, Any]], options: argparse.Namespace) -> Iterator[str]:
    """The section of results.md, line by line."""
    total = cells(options)
    spent_h = sum(one["wall_s"] for one in found) / 3600
    failed = sum("verdict" not in one for one in found)
    yield "## Slices and trials"
    yield ""
    yield (
        f"{results.machine()}; server on CPU 0, client on CPU 1, MariaDB. {options.seconds:g} s of load per "
        f"variant and block after {options.warmup:g} s of warm-up; {len(found)} of {len(total)} runs done, "
        f"{failed} failed, {spent_h:.1f} hours. Changes of throughput in percent, with 95 % intervals."
    )
    yield ""
    yield (
        "| planted difference | blocks | by trials | by slices | slices against trials | they agree | "
        "half width, slices / trials |"
    )
    yield "|---|---|---|---|---|---|---|"
    for name in (name for name in options.kinds if not KINDS[name].is_aa):
        ratios = {pairing: pooled(found, name, pairing) for pairing in PAIRINGS}
        if all(ratios.values()):
            yield _agreement(KINDS[name].text, ratios)
    yield ""
    yield (
        "| equal servers, by slices | runs | blocks each | false words | share (95 % interval) | "
        "intervals without zero |"
    )
    yield "|---|---|---|---|---|---|"
    for name in (name for name in options.kinds if KINDS[name].is_aa):
        series = [one for one in found if one["kind"] == name and "verdict" in one]
        if series:
            yield _series(KINDS[name].text, series, options.aa_blocks)


def _agreement(text: str, ratios: Mapping[str, Sequence[float]]) -> str:
    """The row of one planted difference."""
    effects = {
        pairing: effect(Ratios(by_block := dict(enumerate(values)), by_block), ALPHA)
        for pairing, values in ratios.items()
    }
    welch = None
    # Welch's interval, because the blocks of the two ways differ by different amounts.
    if min(map(len, ratios.values())) > 1:
        test = ttest_ind(ratios["slices"], ratios["trials"], equal_var=False)
        welch = test.confidence_interval(1 - ALPHA)
    blocks = " and ".join(str(len(ratios[pairing])) for pairing in PAIRINGS)
    row = [text, blocks, *(interval(effects[pairing]) for pairing in PAIRINGS)]
    if welch is None:
        return f"| {' | '.join(row)} | too few blocks | | |"
    low, high = percent(welch.low), percent(welch.high)
    row.append(f"{percent((welch.low + welch.high) / 2):+.1f} ({low:+.1f} to {high:+.1f})")
    row.append("yes" if low <= 0 <= high else "**no**")
    widths = [
        ends[1] - ends[0] for one in effects.values() if one is not None and (ends := one.interval_percent)
    ]
    row.append(f"{widths[1] / widths[0]:.2f}" if len(widths) == len(PAIRINGS) else "")
    return f"| {' | '.join(row)} |"


def _series(text: str, series: Sequence[Mapping[str, Any]], blocks: int) -> str:
    """The row of one A/A series."""
    false = sum(one["verdict"] in WORDS for one in series)
    ends = [one["interval_percent"] for one in series if one["interval_percent"]]
    ends = [one for one in ends if None not in one]
    excluding = sum(not low <= 0 <= high for low, high in ends)
    exact = binomtest(false, len(series)).proportion_ci(1 - ALPHA)
    share = f"{100 * false / len(series):.0f} % ({100 * exact.low:.0f} to {100 * exact.high:.0f} %)"
    return f"| {text} | {len(series)} | {blocks} | {false} | {share} | {excluding} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.slices_agree", description=__doc__)
    parser.add_argument("--results", type=Path, required=True, help="folder of the cells and their runs")
    parser.add_argument(
        "--kinds", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND", help=", ".join(KINDS)
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="load per variant and block")
    parser.add_argument("--warmup", type=float, default=3.0)
    parser.add_argument("--blocks", type=int, default=10, help="blocks of each run with a planted difference")
    parser.add_argument(
        "--parts", type=int, default=2, help="runs of each planted difference and way of pairing"
    )
    parser.add_argument("--aa-blocks", type=int, default=6, help="blocks of each A/A run")
    parser.add_argument("--series", type=int, default=20, help="A/A runs of each kind")
    parser.add_argument("--hours", type=float, default=math.inf, help="begin no cell that would end later")
    parser.add_argument("--output", type=Path, help="Markdown file, whose section is replaced")
    parser.add_argument("--table", action="store_true", help="only the table of the cells that are done")
    options = parser.parse_args()
    # Cells with other times are other measurements.
    times = f"{options.seconds:g}s-{options.warmup:g}s-{options.blocks}-{options.aa_blocks}"
    folder = options.results.resolve() / times
    folder.mkdir(parents=True, exist_ok=True)
    if not options.table:
        run(options, folder)
    paths = (folder / f"{cell.name}.json" for cell in cells(options))
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    text = "\n".join(table(found, options))
    print(text)
    if options.output:
        results.write_section(options.output, SECTION, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
