"""`dbdyno report RUN`: renders a stored run as a page, as charts, or as text for other programs.

If the run has no verdict, or one of an older dbdyno, it is judged first. html, svg, png and parquet are files
in the run's folder, and their paths are printed; the others go to standard output. With --max-loss, or with
design.max_loss_percent in the experiment, the gate has the exit code, and its sentences go to standard error.

With --set or --leave-out the run is judged again, and that judgement is rendered; its sentences go to
standard error too.

`dbdyno site RESULTS --out DIR` writes the reports of all stored runs, and a page that lists them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from dbdyno import report as reporting
from dbdyno.commands.choices import Format, Undecided, require_language
from dbdyno.commands.design_options import exit_code, parse_max_loss, require_max_loss
from dbdyno.commands.stored_run import Choices, judge_again, judge_if_needed, open_run, show_chosen
from dbdyno.decide.gate import gate, require_gate
from dbdyno.exports import WRITERS
from dbdyno.languages import translator
from dbdyno.problem import ExitCode, Problem
from dbdyno.report import tables
from dbdyno.report.markdown import as_markdown
from dbdyno.report.model import gather
from dbdyno.report.site import write_site
from dbdyno.report.writing import ImageFormat, refuse_links
from dbdyno.say.caveats import mark_gate
from dbdyno.store import Run
from dbdyno.terminal.messages import open_page
from dbdyno.terminal.result import warn_missing_charts


@dataclass(frozen=True)
class Target:
    """What is written, and where."""

    format: Format
    # A language of `dbdyno.languages`.
    language: str = "en"
    # Instead of the run's folder.
    folder: Path | None = None
    # Open the page in a browser.
    opens: bool = False


# Exit code if requested charts cannot be rendered; 4 with a gate, because 1 is one of its results.
NOT_RENDERED = 1


def report(
    run: Path | None,
    results: Path,
    target: Target,
    *,
    max_loss: str | None,
    undecided: Undecided | None,
    choices: Choices,
    accept_changes: bool,
) -> None:
    """Render a stored run; with a gate, exit with its code. Raises Problem."""
    if choices.reason is not None and not choices:
        raise Problem("--reason has no effect without --set or --leave-out", "Leave it out")
    limit = None if max_loss is None else parse_max_loss(max_loss)
    stored = open_run(results, run, accept_changes=accept_changes)
    with stored.reading():
        if limit is not None:
            require_gate(stored.experiment())
        language = require_language(target.language)
        judge_if_needed(stored, language)
        shown: Run = stored
        if choices:
            shown = judge_again(stored, choices, language)
            show_chosen(shown, translator(language))
        _report(shown, target, limit, undecided)


def _report(stored: Run, target: Target, limit: float | None, undecided: Undecided | None) -> None:
    experiment = stored.experiment()
    max_loss_percent = experiment.design.max_loss_percent if limit is None else limit
    require_max_loss(undecided, max_loss_percent)
    if max_loss_percent is not None:
        require_gate(experiment)
    _render(stored, target, NOT_RENDERED if max_loss_percent is None else ExitCode.NOT_COMPARABLE)
    # The document on standard output must be whole before the gate's sentences.
    sys.stdout.flush()
    if max_loss_percent is not None:
        raise typer.Exit(_gate(stored, max_loss_percent, undecided))


def _render(stored: Run, target: Target, not_rendered: int) -> None:
    match target.format:
        case Format.HTML:
            path = reporting.write(stored, warn_missing_charts, target.language, target.folder)
            print(path)
            if target.opens:
                open_page(path.resolve().as_uri())
        case Format.SVG | Format.PNG:
            _write_charts(stored, target, not_rendered)
        case Format.MD:
            print(as_markdown(gather(stored), language=target.language))
        case Format.CSV:
            print(tables.as_csv(stored))
        case Format.JSON:
            print(tables.as_json(stored))
        case Format.PARQUET:
            from dbdyno.analysis import Results  # noqa: PLC0415 — reads histograms, which no other format needs.

            folder = (target.folder or stored.judged_path) / "parquet"
            refuse_links(stored, folder)
            for path in Results(stored).write_parquet(folder):
                print(path)
        case other:
            print(WRITERS[other](stored))


def _gate(stored: Run, max_loss_percent: float, undecided: Undecided | None) -> ExitCode:
    """Print the gate's sentences; returns its exit code."""
    verdict = stored.verdict()
    assert verdict is not None, "the run has been judged"
    result = verdict.gate
    if result is None or result.max_loss_percent != max_loss_percent:
        result = mark_gate(gate(verdict, max_loss_percent), verdict.chosen_afterwards or ())
    for sentence in result.sentences:
        print(sentence, file=sys.stderr)
    return exit_code(result, undecided)


def _write_charts(stored: Run, target: Target, not_rendered: int) -> None:
    try:
        image_format: ImageFormat = "svg" if target.format is Format.SVG else "png"
        for path in reporting.write_charts(stored, image_format, target.language, target.folder):
            print(path)
    except reporting.RenderingError as error:
        print(f"error: charts cannot be rendered: {error}", file=sys.stderr)
        raise typer.Exit(not_rendered) from error


def site(results: Path, out: Path, language: str) -> None:
    """Write the folder, and print the path of its page. Raises Problem if there is no folder of runs."""
    if not results.is_dir():
        raise Problem(f"{results} is not a folder", "Name the folder in which runs are stored")
    index, entries = write_site(results, out, _warn, require_language(language))
    print(index)
    without = sum(not entry.link for entry in entries)
    if without:
        print(f"{without} of {len(entries)} runs are listed without a report", file=sys.stderr)


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)
