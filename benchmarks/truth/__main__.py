"""Runs the judge on simulated experiments, and prints for every guarantee its limit and the measured share.

`python -m benchmarks.truth` takes some 25 minutes on two CPUs, with `--experiments 300` a tenth of that. The
experiments of a guarantee are divided into parts, which all processes share. A rate of 5 % has experiments
until its standard error is at most 0.4 points; other guarantees have a third of the most. With `--output`
the tables replace the part of that Markdown file between two markers, and a chart is written to images/ next
to the file. The exit code is 1 if a guarantee is not kept.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from .guarantees import common_practice, guarantees, limits, measure
from .row import Row, Sample, merge

# The most experiments of a guarantee. A true rate of 5 % needs 2,970.
EXPERIMENTS = 3_600
# Experiments of a part, for the smallest experiments, and the least of any guarantee.
PART, LEAST = 240, 600
BEGIN, END = "<!-- table of make bench-truth -->", "<!-- end of the table -->"
CHART = "images/truth.svg"
KEPT, BROKEN, CUSTOMARY = "#1b7f4b", "#c0392b", "#8a6d3b"


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{share * 100:.1f} %"


def line(row: Row) -> str:
    """A guarantee as a line of the table."""
    limit = f"{'at most' if row.at_most else 'at least'} {percent(row.limit)}"
    return (
        f"| {row.guarantee} | {row.experiments} | {percent(row.measured)} | ±{percent(row.error)} | "
        f"{limit} | {'yes' if row.holds else '**no**'} |"
    )


def table(rows: Sequence[Row], customary: Sequence[Row], beyond: Sequence[Row]) -> Iterator[str]:
    """The tables in Markdown."""
    yield "| guarantee | experiments | measured | Monte-Carlo error | limit | kept |"
    yield "|---|---:|---:|---:|---:|---|"
    yield from map(line, rows)
    yield ""
    yield "| beyond the guarantees | experiments | measured | Monte-Carlo error |"
    yield "|---|---:|---:|---:|"
    for row in beyond:
        yield f"| {row.guarantee} | {row.experiments} | {percent(row.measured)} | ±{percent(row.error)} |"
    yield ""
    yield "| common practice, on two equal servers | experiments | wrong verdicts |"
    yield "|---|---:|---:|"
    for row in customary:
        yield f"| {row.guarantee} | {row.experiments} | {percent(row.measured)} |"


def render_chart(rows: Sequence[Row], customary: Sequence[Row]) -> str:
    """Wrong verdicts of dbdyno and of common practice, as a chart in SVG."""
    values: list[dict[str, Any]] = [
        {
            "what": row.guarantee.removesuffix(": any wrong verdict"),
            "share": row.measured * 100,
            "who": "dbdyno",
            "order": index,
        }
        for index, row in enumerate(row for row in rows if row.guarantee.endswith(": any wrong verdict"))
    ]
    values += [
        {"what": row.guarantee, "share": row.measured * 100, "who": "customary", "order": 100 + index}
        for index, row in enumerate(customary)
    ]
    base = alt.Chart({"values": values})
    order = [value["what"] for value in values]
    bars = base.mark_bar(height=11).encode(
        x=alt.X(
            "share:Q", title="experiments with a wrong verdict, percent", scale=alt.Scale(domain=[0, 100])
        ),
        y=alt.Y("what:N", sort=order, title=None, axis=alt.Axis(labelLimit=520, labelFontSize=12)),
        color=alt.Color(
            "who:N",
            scale=alt.Scale(domain=["dbdyno", "customary"], range=[KEPT, CUSTOMARY]),
            title=None,
            legend=alt.Legend(orient="top"),
        ),
    )
    limit = alt.Chart({"values": [{"x": 5}]}).mark_rule(color=BROKEN, strokeDash=[4, 3]).encode(x="x:Q")
    chart = (bars + limit).properties(width=360, height=alt.Step(17), title="Equal variants: wrong verdicts")
    drawn: str = vl_convert.vegalite_to_svg(chart.to_dict())
    return drawn


def write(path: Path, rows: Sequence[Row], customary: Sequence[Row], beyond: Sequence[Row]) -> None:
    """Put the tables between the markers of a Markdown file, and write the chart."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"{path} lacks the lines {BEGIN} and {END}")
    content = "\n".join(table(rows, customary, beyond))
    path.write_text(f"{before}{BEGIN}\n{content}\n{END}{after}", encoding="utf-8")
    (path.parent / CHART).write_text(render_chart(rows, customary), encoding="utf-8")


@dataclass
class Measurement:
    """A guarantee while it is measured in parts.

    Which parts count does not depend on the order in which they end, so equal calls have equal results.
    """

    index: int
    # Experiments of a part, and the most of all.
    size: int
    most: int
    submitted: int = 0
    # Parts that wait for one before them.
    early: dict[int, list[Row]] = field(default_factory=dict)
    # Rows of the first parts, and their number.
    rows: list[Row] = field(default_factory=list)
    parts: int = 0

    def add(self, part: int, rows: list[Row]) -> None:
        """Count the rows of a part, unless the parts before it are enough."""
        self.early[part] = rows
        while not self.is_done and (rows := self.early.pop(self.parts, [])):
            self.rows = [merge(pair) for pair in zip(self.rows, rows, strict=True)] if self.rows else rows
            self.parts += 1

    @property
    def is_done(self) -> bool:
        """Whether there are enough experiments."""
        return self.parts > 0 and self.parts * self.size >= self._needed()

    @property
    def wants_part(self) -> bool:
        """Whether another part is needed, as far as can be known."""
        wanted = max(self._needed(), (self.parts + 1) * self.size)
        return not self.is_done and self.submitted * self.size < wanted

    def _needed(self) -> int:
        wanted = max((row.experiments_needed or self.most // 3 for row in self.rows), default=0)
        return min(self.most, max(LEAST, wanted))


def measure_all(experiments: int) -> Iterator[list[Row]]:
    """The rows of every guarantee, in the order of the table."""
    pending = [
        Measurement(index, min(experiments, max(20, PART // guarantee.cost)), experiments)
        for index, guarantee in enumerate(guarantees())
    ]
    workers = os.cpu_count() or 1
    with ProcessPoolExecutor(workers) as pool:
        running: dict[Future[list[Row]], tuple[Measurement, int]] = {}
        while pending:
            while len(running) < 2 * workers and (one := next((p for p in pending if p.wants_part), None)):
                sample = Sample(one.size, one.submitted)
                running[pool.submit(measure, one.index, sample)] = one, sample.part
                one.submitted += 1
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                one, part = running.pop(future)
                one.add(part, future.result())
            while pending and pending[0].is_done:
                yield pending.pop(0).rows


def main() -> int:
    """Measure every guarantee and print it as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument("--experiments", type=int, default=EXPERIMENTS, help="the most per guarantee")
    parser.add_argument("--output", type=Path, help="a Markdown file with the markers of the table")
    options = parser.parse_args()
    rows: list[Row] = []
    for found in measure_all(options.experiments):
        for row in found:
            kept = "kept  " if row.holds else "BROKEN"
            print(f"{kept} {percent(row.measured):>7} ±{percent(row.error)}  {row.guarantee}", flush=True)
        rows += found
    customary = common_practice(options.experiments // 2)
    for row in customary:
        print(f"       {percent(row.measured):>7} ±{percent(row.error)}  today: {row.guarantee}")
    beyond = limits(options.experiments)
    for row in beyond:
        print(f"       {percent(row.measured):>7} ±{percent(row.error)}  not guaranteed: {row.guarantee}")
    if options.output:
        write(options.output, rows, customary, beyond)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
