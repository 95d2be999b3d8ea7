"""`dbdyno probe`: what a server that speaks one of the protocols can do, as a page in Markdown."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno import __version__
from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import print_message

if TYPE_CHECKING:
    from dbdyno.servers.server import Server

# Characters of an answer.
_LENGTH_MAX = 160
# The path of a program, which belongs to one machine.
_PATH = re.compile(r" \([^)]*\)")


def probe(
    file: options.OptionalFile = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="URL of a server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ] = None,
    results: options.Results = options.RESULTS,
    password_file: options.PasswordFile = None,
    share_machine: options.ShareMachine = False,
) -> None:
    """Say what a server that speaks the protocol of MySQL or PostgreSQL can do, or each variant of a file.

    Loads 200 rows into a table of its own, runs short loads, and drops the table.
    """
    if (file is None) == (target is None):
        fix = "Write dbdyno probe FILE.toml, or dbdyno probe --target URL"
        raise Problem("probe needs an experiment file or the URL of a server", fix, ExitCode.USAGE)

    from dbdyno.experiment.reading import read
    from dbdyno.run.machine_lock import only_measurement
    from dbdyno.servers import describe_server, open_server
    from dbdyno.servers.products.declaration import PRODUCTS
    from dbdyno.servers.url import parse_url
    from dbdyno.servers.workspace import Workspace

    alone = only_measurement("dbdyno probe", print_message, share=share_machine)
    if target is not None:
        where = parse_url(target)
        # The prompt for the password comes before the wait.
        remote = options.open_target(where, password_file)
        with alone, closing(remote):
            remote.start()
            print(f"# Database {where.database}, over the protocol of {PRODUCTS[where.protocol].title}\n")
            _print_page(remote)
    elif file is not None:
        experiment = read(file, None, [])
        stoppable = interruptible("stopping the servers")
        with alone, stoppable, closing(Workspace.open(results, removes=True)) as workspace:
            for variant in experiment.variants:
                with closing(open_server(variant, workspace, None, experiment.secrets())) as server:
                    server.start()
                    print(f"# {variant.name}: {_PATH.sub('', describe_server(variant))}\n")
                    _print_page(server)


def _print_page(server: Server) -> None:
    from dbdyno.probe import probe as find_answers
    from dbdyno.run.engine import Engine

    print(f"Made by `dbdyno probe` of dbdyno {__version__}.\n", flush=True)
    for section in find_answers(server, Engine()):
        print(f"## {section.title}\n\n| what | works | answer |\n|---|---|---|")
        for answer in section.answers:
            text = " ".join(answer.detail.split()).replace("|", "\\|")
            short = text if len(text) <= _LENGTH_MAX else f"{text[: _LENGTH_MAX - 1]}…"
            print(f"| {answer.question} | {'yes' if answer.works else 'no'} | {short} |")
        print(flush=True)
