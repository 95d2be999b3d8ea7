"""Where a report goes: report.html and charts/ in the run's own folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from dbdyno.report import charts, drawing
from dbdyno.report.model import gather
from dbdyno.report.page import page
from dbdyno.store import Run, files

PictureFormat = Literal["svg", "png"]


def write(run: Run) -> Path:
    """Write report.html and charts/*.svg and *.png of a judged run; gives the page's path.

    Raises StoreProblem where the run was not judged, or nothing can be written.
    """
    report = gather(run)
    figures = charts.figures(report)
    drawn = [(figure, drawing.svg(figure)) for figure in figures]
    content = page(report, [(figure, drawing.inline(svg, figure)) for figure, svg in drawn])
    folder = run.path / "charts"
    files.make_folder(folder)
    for figure, svg in drawn:
        files.write(folder / f"{figure.name}.svg", svg.encode())
        files.write(folder / f"{figure.name}.png", drawing.png(figure))
    path = run.path / "report.html"
    files.write(path, content.encode())
    return path


def write_charts(run: Run, picture: PictureFormat) -> list[Path]:
    """Write the charts alone, as SVG or PNG; gives their paths. Raises StoreProblem as `write` does."""
    folder = run.path / "charts"
    files.make_folder(folder)
    paths: list[Path] = []
    for figure in charts.figures(gather(run)):
        content = drawing.svg(figure).encode() if picture == "svg" else drawing.png(figure)
        paths.append(folder / f"{figure.name}.{picture}")
        files.write(paths[-1], content)
    return paths
