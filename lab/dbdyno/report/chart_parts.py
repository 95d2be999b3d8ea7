"""Parts that several charts use: their data, and the colour, shape and dash pattern of each variant.

Shapes and dash patterns distinguish the variants in print without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import altair as alt
from rich.cells import cell_len

from dbdyno.finding import FreeForm
from dbdyno.report.chart import DASHES, HALF_WIDTH, PALETTE, SHAPES
from dbdyno.report.model import Report
from dbdyno.store.measured import MeasuredTrial

# Pixels of a letter in a legend, and of a symbol with the distance between two entries.
_LETTER_WIDTH, _SYMBOL_WIDTH = 7, 64


def chart_of(rows: Sequence[FreeForm]) -> Any:
    """A chart whose data are these rows."""
    return alt.Chart({"values": list(rows)})


def color(report: Report) -> Any:
    """The variants' colours."""
    names = report.variants
    colors = [PALETTE[index % len(PALETTE)] for index in range(len(names))]
    return alt.Color(
        "variant:N", scale=alt.Scale(domain=names, range=colors), sort=names, legend=_legend(names)
    )


def shape(report: Report) -> Any:
    """The shapes of the variants' marks."""
    names = report.variants
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
    return alt.Shape(
        "variant:N", scale=alt.Scale(domain=names, range=shapes), sort=names, legend=_legend(names)
    )


def _legend(names: Sequence[str]) -> Any:
    """A legend in as many columns as fit the narrowest charts: a wider one would make the drawing smaller."""
    entry = _SYMBOL_WIDTH + _LETTER_WIDTH * max(map(cell_len, names))
    return alt.Legend(columns=max(1, min(len(names), HALF_WIDTH // entry)))


def dash(report: Report) -> Any:
    """The dash patterns of the variants' lines. It has no legend, whose symbols would get a dashed border."""
    names = report.variants
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    scale = alt.Scale(domain=names, range=dashes)
    return alt.StrokeDash("variant:N", scale=scale, sort=names, legend=None)


def band_and_line(
    report: Report, rows: Sequence[FreeForm], field: str, *, x: Any, scale: Any, axis: Any
) -> list[Any]:
    """For each variant a line through a field of the rows, in an area from their lowest to their highest
    value.
    """
    y, low = (alt.Y(f"{name}:Q", scale=scale, axis=axis) for name in (field, "low"))
    band = chart_of(rows).mark_area(opacity=0.18).encode(x=x, y=low, y2="high:Q", color=color(report))
    line = chart_of(rows).mark_line(strokeWidth=2)
    return [band, line.encode(x=x, y=y, color=color(report), strokeDash=dash(report))]


def layered(layers: Sequence[Any], width: int, height: int) -> Any:
    """The layers as one chart, with one legend for colours and shapes."""
    return alt.layer(*layers).properties(width=width, height=height).resolve_legend(strokeDash="independent")


def each_load(trials: Sequence[MeasuredTrial]) -> Iterator[tuple[int, list[MeasuredTrial]]]:
    """The trials at each load, with its number from 1."""
    for number, load in enumerate(loads_of(trials), start=1):
        yield number, [trial for trial in trials if trial.point.value == load]


def loads_of(trials: Iterable[MeasuredTrial]) -> list[float]:
    """The loads (numbers of connections, or rates in transactions/s) in ascending order."""
    return sorted({trial.point.value for trial in trials})
