"""Runs the judge on simulated experiments, and prints for every promise its limit and the measured share.

`python -m benchmarks.truth` takes some 15 minutes on two CPUs, with `--experiments 200` a tenth of that. With
`--output` the tables replace the part of that Markdown file between two markers, and a chart is written to
images/ next to the file. With `--first 44` the 44 promises before are not measured: their rows in the file
stay, as do the other tables and the chart. The exit code is 1 if a promise is not kept.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from .guarantees import common_practice, limits, measure, promises
from .row import Row

EXPERIMENTS = 2_000
BEGIN, END = "<!-- table of make bench-truth -->", "<!-- end of the table -->"
CHART = "images/truth.svg"
KEPT, BROKEN, CUSTOMARY = "#1b7f4b", "#c0392b", "#8a6d3b"


def percent(share: float) -> str:
    """A share as a percentage with one decimal."""
    return f"{share * 100:.1f} %"


def line(row: Row) -> str:
    """A promise as a line of the table."""
    limit = f"{'at most' if row.at_most else 'at least'} {percent(row.limit)}"
    return (
        f"| {row.promise} | {row.experiments} | {percent(row.measured)} | ±{percent(row.error)} | "
        f"{limit} | {'yes' if row.holds else '**no**'} |"
    )


def table(rows: Sequence[Row], customary: Sequence[Row], beyond: Sequence[Row]) -> Iterator[str]:
    """The tables in Markdown."""
    yield "| promise | experiments | measured | Monte-Carlo error | limit | kept |"
    yield "|---|---:|---:|---:|---:|---|"
    yield from map(line, rows)
    yield ""
    yield "| beyond the promise | experiments | measured | Monte-Carlo error |"
    yield "|---|---:|---:|---:|"
    for row in beyond:
        yield f"| {row.promise} | {row.experiments} | {percent(row.measured)} | ±{percent(row.error)} |"
    yield ""
    yield "| common practice, on two equal servers | experiments | wrong verdicts |"
    yield "|---|---:|---:|"
    for row in customary:
        yield f"| {row.promise} | {row.experiments} | {percent(row.measured)} |"


def render_chart(rows: Sequence[Row], customary: Sequence[Row]) -> str:
    """Wrong verdicts of dbdyno and of common practice, as a chart in SVG."""
    values: list[dict[str, Any]] = [
        {
            "what": row.promise.removesuffix(": any wrong verdict"),
            "share": row.measured * 100,
            "who": "dbdyno",
            "order": index,
        }
        for index, row in enumerate(row for row in rows if row.promise.endswith(": any wrong verdict"))
    ]
    values += [
        {"what": row.promise, "share": row.measured * 100, "who": "customary", "order": 100 + index}
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


def write_last(path: Path, first: int, rows: Sequence[Row]) -> None:
    """Replace the rows from number `first` on in the table of promises of that file."""
    before, found, rest = path.read_text(encoding="utf-8").partition(f"{BEGIN}\n")
    lines, _, after = rest.partition("\n\n")
    kept = lines.splitlines()[: first + 2]
    if not found or len(kept) < first + 2:
        raise SystemExit(f"{path} has no table with {first} promises")
    content = "\n".join([*kept, *map(line, rows)])
    path.write_text(f"{before}{BEGIN}\n{content}\n\n{after}", encoding="utf-8")


def main() -> int:
    """Measure every promise and print it as soon as it is known."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.truth", description=__doc__)
    parser.add_argument(
        "--experiments", type=int, default=EXPERIMENTS, help="per promise; large ones have fewer"
    )
    parser.add_argument("--output", type=Path, help="a Markdown file with the markers of the table")
    parser.add_argument("--first", type=int, default=0, help="number of the first promise, from 0")
    options = parser.parse_args()
    rows: list[Row] = []
    with ProcessPoolExecutor() as pool:
        futures = [
            pool.submit(measure, index, options.experiments)
            for index in range(options.first, len(promises()))
        ]
        for future in futures:
            row = future.result()
            rows.append(row)
            kept = "kept  " if row.holds else "BROKEN"
            print(f"{kept} {percent(row.measured):>7} ±{percent(row.error)}  {row.promise}", flush=True)
    is_kept = all(row.holds for row in rows)
    if options.first:
        if options.output:
            write_last(options.output, options.first, rows)
        return 0 if is_kept else 1
    customary = common_practice(options.experiments)
    for row in customary:
        print(f"       {percent(row.measured):>7} ±{percent(row.error)}  today: {row.promise}")
    beyond = limits(options.experiments)
    for row in beyond:
        print(f"       {percent(row.measured):>7} ±{percent(row.error)}  not promised: {row.promise}")
    if options.output:
        write(options.output, rows, customary, beyond)
    return 0 if is_kept else 1


if __name__ == "__main__":
    sys.exit(main())
