"""`dbdyno data list|drop --target URL`: the tables that dbdyno has created on a server and not dropped.

`dbdyno run --keep-data` leaves them, and so does a process that was killed.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from dbdyno.commands.choices import Action
from dbdyno.commands.sharing import only_measurement
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.marked_tables import Table, drop, marked_tables
from dbdyno.servers.kinds.remote import RemoteServer, read_password
from dbdyno.servers.url import Target, parse_url


def data(action: Action, target: str, password_file: Path | None, *, yes: bool, share: bool) -> None:
    """List the tables that dbdyno has left on a server, and drop them on request. Raises Problem."""
    where = parse_url(target)
    prompt = f"Password of {where.user} on {where.host}: "
    secret = read_password(password_file, (lambda: getpass.getpass(prompt)) if sys.stdin.isatty() else None)
    with closing(RemoteServer(where, secret)) as server:
        server.start()
        tables = marked_tables(server)
        if not tables:
            print(f"no table in {_place(where)} was created by dbdyno", file=sys.stderr)
            return
        _print(tables)
        if action is Action.DROP:
            _confirm(tables, where, yes=yes)
            # A run that measures on this machine may use the tables.
            with only_measurement("data drop", share=share):
                _drop(server, tables)


def _print(tables: Sequence[Table]) -> None:
    width = max(len(table.name) for table in tables)
    for table in tables:
        size = f"{table.size_bytes / 2**20:,.1f} MiB"
        print(f"{table.name:{width}}  {size:>12}  {table.mark}", flush=True)


def _confirm(tables: Sequence[Table], where: Target, *, yes: bool) -> None:
    """Raise Problem unless the user agrees."""
    if yes:
        return
    tables_text = "this table" if len(tables) == 1 else f"these {len(tables)} tables"
    fix = "Nothing was changed. Repeat the command with --yes to drop them"
    if not sys.stdin.isatty():
        raise Problem(f"dropping {tables_text} needs your confirmation, and there is no terminal", fix)
    print(f"Drop {tables_text} in {_place(where)}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Problem("no table was dropped, because you did not answer y")


def _drop(server: RemoteServer, tables: Sequence[Table]) -> None:
    failures = []
    for name, failure in drop(server, [table.name for table in tables]):
        if failure:
            failures.append(f"{name}: {failure}")
        else:
            print(f"dropped {name}", file=sys.stderr, flush=True)
    if failures:
        raise Problem(
            f"{len(failures)} of {len(tables)} tables could not be dropped: {'; '.join(failures)}",
            "Grant the account the privilege, or drop the tables and views that refer to them first",
            ExitCode.NOT_COMPARABLE,
        )


def _place(where: Target) -> str:
    return f"{where.database} on {where.unix_socket or f'{where.host}:{where.port}'}"
