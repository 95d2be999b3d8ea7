"""Writes the report: report.html and charts/ in the run's own folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from dbdyno.report.drawing import Drawings, draw
from dbdyno.report.figure import Figure
from dbdyno.report.model import Report, gather
from dbdyno.report.page import page
from dbdyno.store import Run, files

PictureFormat = Literal["svg", "png"]


class DrawingError(Exception):
    """Requested charts cannot be rendered; the message is one line."""


def write(run: Run, warn: Callable[[str], object] = lambda _text: None) -> Path:
    """Write report.html and charts/*.svg and *.png of a judged run; returns the page's path.

    If charts cannot be rendered the page says so, and `warn` gets the reason as one line.
    Raises StoreProblem if the run was not judged, or nothing can be written.
    """
    report = gather(run)
    figures, drawings = _draw(report)
    content = page(report, figures, drawings)
    path = run.path / "report.html"
    files.write(path, content.encode())
    _write_pictures(run, figures, drawings, ("svg", "png"))
    if drawings.failure:
        warn(drawings.failure)
    return path


def write_charts(run: Run, picture: PictureFormat) -> list[Path]:
    """Write only the charts, as SVG or PNG; returns their paths.

    Raises DrawingError if a chart cannot be rendered, after the others are written, and StoreProblem as
    `write` does.
    """
    figures, drawings = _draw(gather(run))
    paths = _write_pictures(run, figures, drawings, (picture,))
    if drawings.failure:
        raise DrawingError(drawings.failure)
    return paths


def _draw(report: Report) -> tuple[list[Figure], Drawings]:
    """All figures and their pictures. An error in the code of a chart loses the pictures, not the page."""
    try:
        # Imported here because it takes a quarter of a second, and a verdict does not need it.
        from dbdyno.report import charts  # noqa: PLC0415

        figures = charts.figures(report)
        return figures, draw(figures)
    except Exception as error:
        return [], Drawings(failure=f"{type(error).__name__}: {error}")


def _write_pictures(
    run: Run, figures: list[Figure], drawings: Drawings, kinds: tuple[PictureFormat, ...]
) -> list[Path]:
    folder = run.path / "charts"
    files.make_folder(folder)
    paths: list[Path] = []
    for figure in figures:
        picture = drawings.pictures.get(figure.name)
        if picture is None:
            continue
        for kind in kinds:
            path = folder / f"{figure.name}.{kind}"
            files.write(path, picture.svg.encode() if kind == "svg" else picture.png)
            paths.append(path)
    return paths
