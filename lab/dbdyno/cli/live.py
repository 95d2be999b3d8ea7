"""The commands that follow a run in progress: watch, ui and metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, AnyRun, Language, Results


def watch(run: AnyRun = None, results: Results = RESULTS) -> None:
    """Follow a run in progress in a terminal: throughput, latencies, errors, findings, and the verdict at the
    end. Reads the run's folder only. Press q to quit; the run continues.
    """
    from dbdyno.commands.watch import watch as work

    work(run, results)


def ui(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    listen: Annotated[
        str, typer.Option(metavar="ADDRESS:PORT", help="Address of the pages; port 0 is any free port.")
    ] = "127.0.0.1:8088",
    allow_run: Annotated[
        bool, typer.Option("--allow-run", help="Let the pages start experiments in the current folder.")
    ] = False,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token that users must enter, instead of one in the address that is printed; "
            "required unless --listen is a loopback address."
        ),
    ] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the pages in a browser.")] = False,
    language: Language = "en",
    results: Results = RESULTS,
) -> None:
    """Show runs in a browser: verdicts, a run in progress, two runs, an experiment editor."""
    from dbdyno.commands.ui import ui as work

    work(results, listen, token_file, language, allow_run=allow_run, open_browser=open_browser)


def metrics(
    run: AnyRun = None,
    listen: Annotated[
        str,
        typer.Option(metavar="ADDRESS:PORT", help="Address to serve /metrics on; port 0 is any free port."),
    ] = "127.0.0.1:9400",
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token that clients must send; required unless --listen is a loopback address."
        ),
    ] = None,
    results: Results = RESULTS,
) -> None:
    """Serve the values of a run in progress in the OpenMetrics format."""
    from dbdyno.metrics import serve

    serve(results, run, listen, token_file, lambda address: print(address, flush=True))
