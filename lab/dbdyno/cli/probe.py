"""The command line of `dbdyno probe`."""

from __future__ import annotations

from typing import Annotated

import typer

from dbdyno.cli.options import RESULTS, OptionalFile, PasswordFile, Results, ShareMachine
from dbdyno.problem import ExitCode, Problem


def probe(
    file: OptionalFile = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of a server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ] = None,
    results: Results = RESULTS,
    password_file: PasswordFile = None,
    share_machine: ShareMachine = False,
) -> None:
    """Say what a server that speaks the protocol of MySQL or PostgreSQL can do, or each variant of a file.

    Loads 200 rows into a table of its own, runs short loads, and drops the table.
    """
    if (file is None) == (target is None):
        fix = "Write dbdyno probe FILE.toml, or dbdyno probe --target URL"
        raise Problem("probe needs an experiment file or the URL of a server", fix, ExitCode.USAGE)

    from dbdyno.commands.probe import probe_target, probe_variants

    if target is not None:
        probe_target(target, password_file, share=share_machine)
    elif file is not None:
        from dbdyno.experiment.reading import read

        probe_variants(read(file, None, []), results, share=share_machine)
