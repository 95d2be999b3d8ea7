"""Parts that several charts use: their data, and the colour, shape and dash pattern of each variant.

Shapes and dash patterns distinguish the variants in print without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from dbdyno.finding import FreeForm
from dbdyno.report.chart import DASHES, PALETTE, SHAPES
from dbdyno.report.model import Report
from dbdyno.store.measured import MeasuredTrial


def chart_of(rows: Sequence[FreeForm]) -> Any:
    """A chart whose data are these rows."""
    return alt.Chart({"values": list(rows)})


def color(report: Report) -> Any:
    """The variants' colours."""
    names = report.variants
    colors = [PALETTE[index % len(PALETTE)] for index in range(len(names))]
    return alt.Color("variant:N", scale=alt.Scale(domain=names, range=colors), sort=names)


def shape(report: Report) -> Any:
    """The shapes of the variants' marks."""
    names = report.variants
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
    return alt.Shape("variant:N", scale=alt.Scale(domain=names, range=shapes), sort=names)


def dash(report: Report) -> Any:
    """The dash patterns of the variants' lines. It has no legend, whose symbols would get a dashed border."""
    names = report.variants
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    scale = alt.Scale(domain=names, range=dashes)
    return alt.StrokeDash("variant:N", scale=scale, sort=names, legend=None)


def layered(layers: Sequence[Any], width: int, height: int) -> Any:
    """The layers as one chart, with one legend for colours and shapes."""
    return alt.layer(*layers).properties(width=width, height=height).resolve_legend(strokeDash="independent")


def loads_of(trials: Iterable[MeasuredTrial]) -> list[float]:
    """The loads (numbers of connections, or rates in transactions/s) in ascending order."""
    return sorted({trial.point.value for trial in trials})
