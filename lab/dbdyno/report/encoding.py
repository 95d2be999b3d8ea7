"""Common parts of the charts: rows of data, and colour, shape and dash of each variant.

Shapes and dashes distinguish the variants in prints without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from dbdyno.report.figure import DASHES, PALETTE, SHAPES
from dbdyno.report.model import Report
from dbdyno.store.measured import MeasuredTrial


def chart_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart with these rows as its data."""
    return alt.Chart({"values": list(rows)})


def color(report: Report) -> Any:
    """The variants' colours."""
    names = report.variants
    colors = [PALETTE[index % len(PALETTE)] for index in range(len(names))]
    return alt.Color("variant:N", scale=alt.Scale(domain=names, range=colors), sort=names)


def shape(report: Report) -> Any:
    """The variants' marks."""
    names = report.variants
    shapes = [SHAPES[index % len(SHAPES)] for index in range(len(names))]
    return alt.Shape("variant:N", scale=alt.Scale(domain=names, range=shapes), sort=names)


def dash(report: Report) -> Any:
    """The variants' dashes. No legend, because its shape symbols would get a dashed border."""
    names = report.variants
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    scale = alt.Scale(domain=names, range=dashes)
    return alt.StrokeDash("variant:N", scale=scale, sort=names, legend=None)


def layered(layers: Sequence[Any], width: int, height: int) -> Any:
    """Overlaid charts with one legend of colours and shapes."""
    return alt.layer(*layers).properties(width=width, height=height).resolve_legend(strokeDash="independent")


def levels_of(trials: Iterable[MeasuredTrial]) -> list[float]:
    """The load levels (connections or rates) in ascending order."""
    return sorted({trial.place.level[1] for trial in trials})
