"""`dbdyno probe --target URL`: what a server that speaks one of the protocols can do, as a page."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

from dbdyno import __version__
from dbdyno.commands.sharing import only_measurement
from dbdyno.run.engine import Engine
from dbdyno.run.probe import Section, probe
from dbdyno.servers.kinds.remote import RemoteServer, read_password
from dbdyno.servers.url import parse_url

_WIDTH_MAX = 160


def probe_target(target: str, password_file: Path | None, *, share: bool) -> None:
    """Print the page. Raises Problem."""
    where = parse_url(target)
    prompt = f"Password of {where.user} on {where.host}: "
    secret = read_password(password_file, (lambda: getpass.getpass(prompt)) if sys.stdin.isatty() else None)
    with only_measurement("probe", share=share), closing(RemoteServer(where, secret)) as server:
        server.start()
        print(
            f"Made by `dbdyno probe` of dbdyno {__version__}, over the protocol of {where.protocol}.\n",
            flush=True,
        )
        _print(probe(server, Engine()))


def _print(sections: Iterable[Section]) -> None:
    for section in sections:
        print(f"## {section.title}\n\n| what | works | answer |\n|---|---|---|")
        for answer in section.answers:
            detail = " ".join(answer.detail.split()).replace("|", "\\|")
            short = detail if len(detail) <= _WIDTH_MAX else f"{detail[: _WIDTH_MAX - 1]}…"
            print(f"| {answer.question} | {'yes' if answer.works else 'no'} | {short} |")
        print(flush=True)
