"""Writes report.html, report.md and the folder charts/ into a run's folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

from markupsafe import Markup

from dbdyno.languages import ENGLISH, translator
from dbdyno.report.chart import Chart
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import Report, gather
from dbdyno.report.page import drawn_charts, page
from dbdyno.report.rendering import RenderedCharts, render
from dbdyno.store import Run, StoreProblem, files

ImageFormat = Literal["svg", "png"]


class RenderingError(Exception):
    """Requested charts could not be rendered. The message is one line."""


def write(
    run: Run,
    warn: Callable[[str], object] = lambda _text: None,
    language: str = ENGLISH,
    folder: Path | None = None,
) -> Path:
    """Write report.html, report.md, charts/*.svg and charts/*.png of a judged run; returns the page's path.

    A report in another `language` than English is written into a folder with its code, such as ko. Without a
    `folder` all is below the run's.

    If charts cannot be rendered, the page says so, and `warn` gets the reason as one line.
    Raises StoreProblem if the run was not judged or a file cannot be written.
    """
    report = gather(run)
    folder = report_folder(run, language, folder)
    charts, rendered = _render(report, language)
    content = page(report, charts, rendered, language)
    path = folder / "report.html"
    _make_folder(run, folder)
    files.write(path, content.encode())
    _write_charts(folder, charts, rendered, ("svg", "png"))
    pictures = [chart for chart in charts if chart.in_page and chart.name in rendered.by_name]
    files.write(folder / "report.md", f"{as_markdown(report, pictures, language)}\n".encode())
    if rendered.failure:
        warn(rendered.failure)
    return path


def render_page(run: Run, language: str = ENGLISH) -> tuple[str, RenderedCharts]:
    """The page of a judged run as `write` writes it, and its charts. Raises StoreProblem."""
    report = gather(run)
    charts, rendered = _render(report, language)
    return page(report, charts, rendered, language), rendered


def draw_result(report: Report, language: str = ENGLISH) -> list[tuple[Chart, list[Markup]]]:
    """The charts that show the result of a report; without those that could not be rendered."""
    charts, rendered = _render(report, language, report.main_charts)
    return drawn_charts(charts, rendered, translator(language))


def report_folder(run: Run, language: str, folder: Path | None = None) -> Path:
    """The folder of the report in a language."""
    base = folder or run.judged_path
    return base if language == ENGLISH else base / language


def write_charts(
    run: Run, image_format: ImageFormat, language: str = ENGLISH, folder: Path | None = None
) -> list[Path]:
    """Write only the charts, as SVG or PNG; returns their paths.

    Raises RenderingError if a chart cannot be rendered; the others are written before. Raises StoreProblem if
    the run was not judged or a file cannot be written.
    """
    charts, rendered = _render(gather(run), language)
    folder = report_folder(run, language, folder)
    _make_folder(run, folder)
    paths = _write_charts(folder, charts, rendered, (image_format,))
    if rendered.failure:
        raise RenderingError(rendered.failure)
    return paths


def _render(report: Report, language: str, beginning: str = "") -> tuple[list[Chart], RenderedCharts]:
    """The charts whose names begin so, and the rendered ones. An error in the code of a chart must not
    prevent the page.
    """
    try:
        # Imported only here: importing Altair takes a quarter of a second.
        from dbdyno.report.charts import all_charts  # noqa: PLC0415

        translate = translator(language)
        charts = [chart for chart in all_charts(report, translate) if chart.name.startswith(beginning)]
        return charts, render(charts, translate)
    except Exception as error:
        return [], RenderedCharts(failure=f"{type(error).__name__}: {error}")


def refuse_links(run: Run, *folders: Path) -> None:
    """Raise StoreProblem for folders within the run that are links: the run may be another person's, and they
    could lead to files of the user.
    """
    for path in folders:
        if path != run.path and path.is_relative_to(run.path) and path.is_symlink():
            raise StoreProblem(f"{path} is a link", "Remove it, or write the report elsewhere with --output")


def _make_folder(run: Run, folder: Path) -> None:
    refuse_links(run, folder, folder / "charts")
    files.make_folder(folder)


def _write_charts(
    folder: Path, charts: list[Chart], rendered: RenderedCharts, formats: tuple[ImageFormat, ...]
) -> list[Path]:
    folder = folder / "charts"
    files.make_folder(folder)
    paths: list[Path] = []
    for chart in charts:
        image = rendered.by_name.get(chart.name)
        if image is None:
            continue
        for extension in formats:
            path = folder / f"{chart.name}.{extension}"
            files.write(path, image.svg.encode() if extension == "svg" else image.png)
            paths.append(path)
    return paths
