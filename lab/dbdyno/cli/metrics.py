"""The command line of `dbdyno metrics`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, AnyRun, Results


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
    from dbdyno.metrics.server import serve

    serve(results, run, listen, token_file, lambda address: print(address, flush=True))
