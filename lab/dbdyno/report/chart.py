"""A chart with its title and caption, and the common style of all charts: colours, sizes, fonts.

Colours are those of Okabe & Ito (2008, Color Universal Design), which colour-blind readers can distinguish.
This module imports no chart library.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dbdyno.text import compose

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#a6761d")
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "stroke", "wedge")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 3], [10, 4], [4, 1], [3, 5])
# report.css replaces these colours in dark mode: change both together.
INK, MUTED, GRID, SHADE, PAPER = "#1f2933", "#5f6b7a", "#e3e8ee", "#eef1f5", "#fffffe"
# A language with other letters translates it, its own fonts first.
FONT = compose("Liberation Sans, Arial, Helvetica, DejaVu Sans, sans-serif")

WIDTH, HALF_WIDTH, HEIGHT = 900, 400, 240
# https://vega.github.io/vega-lite/docs/config.html
CONFIG: dict[str, Any] = {
    "font": FONT,
    "view": {"continuousWidth": 300, "continuousHeight": 300, "stroke": None},
    "axis": {
        "labelColor": MUTED, "titleColor": INK, "gridColor": GRID, "domainColor": MUTED, "tickColor": MUTED,
        "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
        "aria": False,
    },
    "legend": {
        "labelColor": INK, "titleColor": INK, "labelFontSize": 12, "orient": "top", "title": None,
        "symbolSize": 70, "symbolStrokeWidth": 2, "symbolOpacity": 1, "columnPadding": 44, "labelLimit": 400,
        "aria": False,
    },
    "title": {"color": INK, "fontSize": 13, "fontWeight": "bold", "anchor": "start", "aria": False},
    "mark": {"aria": False},
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """A chart of the report, not yet rendered."""

    # Name of its files without the extension.
    name: str
    title: str
    # For readers who cannot see the chart.
    description: str
    caption: str
    # An Altair chart.
    specification: Any
    width: Literal["full", "half"] = "full"
    # Whether the page shows it, and pixels around it.
    in_page: bool = True
    padding: int = 10
    # The chart as drawn on screens below 600 px; None if it stays readable there.
    narrow: Any = None

    def __post_init__(self) -> None:
        # The name has the workload's title, which may have a slash.
        object.__setattr__(self, "name", self.name.replace("/", "-"))

    @property
    def narrow_name(self) -> str:
        """The name of the narrow drawing."""
        return f"{self.name}-narrow"


def styled(specification: Any, padding: int = 10) -> dict[str, Any]:
    """The Vega-Lite document of an Altair chart with the common style: thin axes, no frame, one font.

    The style is added to the document, because Altair copies all data for each property that it sets. The
    tests check documents against the library's schema, since that takes longer than to draw them.
    """
    document: dict[str, Any] = specification.to_dict(validate=False)
    return {**document, "background": PAPER, "padding": padding, "config": document["config"] | CONFIG}
