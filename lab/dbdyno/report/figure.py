"""What all charts share: the figure with its words, the looks of the variants, the house style.

Colours are those that Okabe & Ito (2008, Color Universal Design) chose to be told apart by colour-blind
readers, and every variant has a shape and a dash of its own besides, for prints without colour.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import altair as alt

from dbdyno.report.model import Report, Trial

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#a6761d")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "wedge")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1], [3, 5])
# The page's style sheet replaces these in the dark (report.css): change both together.
INK, MUTED, GRID, SHADE, PAPER = "#1f2933", "#5f6b7a", "#e3e8ee", "#eef1f5", "#fffffe"
FONT = "Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif"

WIDTH, HALF_WIDTH, HEIGHT = 900, 400, 240


@dataclass(frozen=True)
class Figure:
    """A chart with the words that go with it."""

    # Name of its files.
    name: str
    title: str
    # What a reader who cannot see the chart is told.
    description: str
    caption: str
    chart: Any
    # Its place on the page: the whole width, or half of it.
    shape: Literal["whole", "half"] = "whole"


def finished(chart: Any) -> Any:
    """The chart with the house style: thin axes, no frame, one font."""
    return (
        chart.properties(background=PAPER, padding=10)
        .configure(font=FONT)
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=MUTED, titleColor=INK, gridColor=GRID, domainColor=MUTED, tickColor=MUTED,
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal", titlePadding=8, aria=False,
        )
        .configure_legend(
            labelColor=INK, titleColor=INK, labelFontSize=12, orient="top", title=None, symbolSize=70,
            symbolStrokeWidth=2, columnPadding=44, labelLimit=400, aria=False,
        )
        .configure_title(color=INK, fontSize=13, fontWeight="bold", anchor="start", aria=False)
        .configure_mark(aria=False)
    )  # fmt: skip


def chart_of(rows: Sequence[Mapping[str, Any]]) -> Any:
    """A chart that carries these rows."""
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
    """The variants' lines."""
    names = report.variants
    dashes = [DASHES[index % len(DASHES)] for index in range(len(names))]
    return alt.StrokeDash("variant:N", scale=alt.Scale(domain=names, range=dashes), sort=names)


def levels_of(trials: Iterable[Trial]) -> list[float]:
    """The load levels, ascending."""
    return sorted({trial.level for trial in trials})
