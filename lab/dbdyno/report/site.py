"""A folder for publishing: the reports of stored runs, and a page that lists them.

::

    OUT/index.html                                   every run, the newest first
        runs/EXPERIMENT/RUN/report.html              as dbdyno report writes it
                            charts/card.png          the picture that the page names for previews

Nothing is removed. Pages of runs that no longer exist stay, without a link.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from markupsafe import Markup

from dbdyno.languages import ENGLISH
from dbdyno.report import formatting
from dbdyno.report.page import environment_for
from dbdyno.report.writing import render_page
from dbdyno.store import ChangedRun, Run, StoreProblem, files
from dbdyno.store.judgement import newest_verdict_ns
from dbdyno.store.listing import began, is_running, list_runs
from dbdyno.store.run import run_order
from dbdyno.store.verdict import VerdictFile
from dbdyno.text import compose

# In an index.html that dbdyno wrote.
MARK = b'<meta name="generator" content="dbdyno site">'
# The files of a report, relative to the folder of the run.
_PAGE, _CARD = "report.html", Path("charts", "card.png")


@dataclass(frozen=True)
class Result:
    """One verdict sentence on the index."""

    css_class: str
    # The verdict in a word, its change with interval, and the sentence without caveats.
    word: str
    change: str
    sentence: str


@dataclass(frozen=True)
class Entry:
    """One run on the index."""

    experiment: str
    # The number of the run; 0 in runs of older versions.
    number: int
    # "2026-11-24 03:33 UTC"; "" if it is unknown.
    began: str
    question: str = ""
    results: Sequence[Result] = ()
    # Why there is no report; "" if there is one.
    state: str = ""
    # The address of the report, relative to the index; "" without one.
    link: str = ""


def write_site(
    results: Path, out: Path, warn: Callable[[str], object], language: str = ENGLISH
) -> tuple[Path, Sequence[Entry]]:
    """Write the reports of all runs below `results`, and the index, to `out`; returns the index and its
    entries.

    A run without a verdict is listed without a report. Files that did not change are written with the same
    content. `warn` gets a line for each report whose charts could not be rendered. Raises StoreProblem if
    `out` lies within `results`, or has an index.html that dbdyno did not write.
    """
    index = out / "index.html"
    _require_own(results, out, index)
    entries = [_publish(path, out, warn, language) for path in list_runs(results)]
    files.make_folder(out)
    files.write(index, _page(entries, language).encode())
    return index, entries


def _require_own(results: Path, out: Path, index: Path) -> None:
    if out.resolve().is_relative_to(results.resolve()):
        raise StoreProblem(
            f"{out} lies within {results}, where every folder is an experiment",
            "Choose another folder with --out",
        )
    if index.is_symlink() or index.exists():
        with files.open_regular(index) as file:
            is_own = MARK in file.read(4096)
        if not is_own:
            raise StoreProblem(
                f"{index} exists, and dbdyno did not write it",
                "Choose another folder with --out, or remove the file",
            )


def _publish(path: Path, out: Path, warn: Callable[[str], object], language: str) -> Entry:
    """The entry of a run, whose report is written."""
    time = began(path)
    entry = Entry(
        path.parent.name,
        run_order(path)[0],
        "" if time is None else f"{time:%Y-%m-%d %H:%M} UTC",
    )
    try:
        return _published(Run.open(path), entry, out, warn, language)
    except ChangedRun as problem:
        return replace(entry, state=compose("changed since it was measured: {listed}", listed=problem.listed))
    except StoreProblem as problem:
        return replace(entry, state=compose("cannot be read: {text}", text=problem.text))


def _published(run: Run, entry: Entry, out: Path, warn: Callable[[str], object], language: str) -> Entry:
    with run.reading():
        entry = replace(entry, question=run.experiment().question)
        if is_running(run):
            return replace(entry, state=compose("running"))
        judged = run.judge_files()
        if judged is None:
            return replace(entry, state=compose("unfinished: not judged"))
        _write_report(run, out / _folder(run), warn, language)
        link = "/".join(quote(part, safe="") for part in (*_folder(run).parts, _PAGE))
        return replace(entry, results=_results(judged[0]), link=link)


def _folder(run: Run) -> Path:
    return Path("runs", run.path.parent.name, run.path.name)


def _write_report(run: Run, folder: Path, warn: Callable[[str], object], language: str) -> None:
    """Render the report of a run, unless it is newer than the run's verdict. A page in the run's folder is
    not used: it may be another person's, with scripts that would run for the readers of the site.
    """
    path = folder / _PAGE
    with files.store_errors(path):
        verdict_ns = newest_verdict_ns(run)
        if path.is_file() and path.stat().st_mtime_ns >= verdict_ns and _is_in(path, language):
            return
    content, rendered = render_page(run, language)
    if rendered.failure:
        warn(f"the report of {run.path} lacks charts: {rendered.failure}")
    files.make_folder((folder / _CARD).parent)
    if (card := rendered.by_name.get("card")) is not None:
        files.write(folder / _CARD, card.png)
    files.write(path, content.encode())


def _is_in(path: Path, language: str) -> bool:
    """Whether a report is in a language."""
    with files.open_regular(path) as file:
        return f'<html lang="{language}">'.encode() in file.read(4096)


def _results(verdict: VerdictFile) -> list[Result]:
    if verdict.capacities:
        return [Result("neutral", "", "", capacity.statement) for capacity in verdict.capacities]
    if not verdict.sentences:
        return [Result("neutral", "", "", compose("One variant: no comparison."))]
    if verdict.is_summed_up:
        return [Result("neutral", "", "", sentence) for sentence in verdict.summary_sentences]
    return [
        Result(
            formatting.css_class(judged.verdict, getattr(judged, "factors", ())),
            formatting.heading(entry),
            formatting.estimate_and_interval(judged),
            judged.statement,
        )
        for judged, entry in verdict.sentences
    ]


def _page(entries: Sequence[Entry], language: str) -> str:
    """The index as HTML. The template escapes all text except the style sheet."""
    environment = environment_for(language)
    style = resources.files("dbdyno.report").joinpath("templates/report.css").read_text(encoding="utf-8")
    return environment.get_template("site.html.j2").render(
        entries=entries,
        language=language,
        mark=Markup(MARK.decode()),  # noqa: S704 — a constant.
        style=Markup(style),  # noqa: S704 — report.css
    )
