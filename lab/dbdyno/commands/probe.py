"""`dbdyno probe`: what a server that speaks one of the protocols can do, as a page in Markdown."""

from __future__ import annotations

import getpass
import re
import sys
from contextlib import closing
from pathlib import Path

from dbdyno import __version__
from dbdyno.experiment.model import Experiment
from dbdyno.probe import probe
from dbdyno.run.engine import Engine
from dbdyno.run.machine_lock import only_measurement
from dbdyno.servers import describe_server, open_server
from dbdyno.servers.kinds.remote import RemoteServer, read_password
from dbdyno.servers.products.declaration import PRODUCTS
from dbdyno.servers.server import Server
from dbdyno.servers.url import parse_url
from dbdyno.servers.workspace import Workspace
from dbdyno.terminal.interrupts import interruptible
from dbdyno.terminal.messages import print_message

# Characters of an answer.
_LENGTH_MAX = 160
# The path of a program, which belongs to one machine.
_PATH = re.compile(r" \([^)]*\)")


def probe_target(target: str, password_file: Path | None, *, share: bool) -> None:
    """Print the page of a server that runs. Raises Problem."""
    where = parse_url(target)
    prompt = f"Password of {where.user} on {where.host}: "
    secret = read_password(password_file, (lambda: getpass.getpass(prompt)) if sys.stdin.isatty() else None)
    with (
        only_measurement("dbdyno probe", print_message, share=share),
        closing(RemoteServer(where, secret)) as server,
    ):
        server.start()
        print(f"# Database {where.database}, over the protocol of {PRODUCTS[where.protocol].title}\n")
        _print_page(server)


def probe_variants(experiment: Experiment, results: Path, *, share: bool) -> None:
    """Start the server of each variant with empty data, and its proxy, and print a page. Raises Problem."""
    with (
        only_measurement("dbdyno probe", print_message, share=share),
        interruptible("stopping the servers"),
        closing(Workspace.open(results, removes=True)) as workspace,
    ):
        for variant in experiment.variants:
            with closing(open_server(variant, workspace, None, experiment.secrets())) as server:
                server.start()
                print(f"# {variant.name}: {_PATH.sub('', describe_server(variant))}\n")
                _print_page(server)


def _print_page(server: Server) -> None:
    print(f"Made by `dbdyno probe` of dbdyno {__version__}.\n", flush=True)
    for section in probe(server, Engine()):
        print(f"## {section.title}\n\n| what | works | answer |\n|---|---|---|")
        for answer in section.answers:
            text = " ".join(answer.detail.split()).replace("|", "\\|")
            short = text if len(text) <= _LENGTH_MAX else f"{text[: _LENGTH_MAX - 1]}…"
            print(f"| {answer.question} | {'yes' if answer.works else 'no'} | {short} |")
        print(flush=True)
