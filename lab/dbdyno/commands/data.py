"""`dbdyno data list|drop|restore --target URL`: what dbdyno has created or changed on a server and left.

`dbdyno run --keep-data` leaves tables, and a process that was killed leaves tables and changed settings.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from dbdyno.commands.choices import Action
from dbdyno.commands.data_changes import confirm, print_changes, print_notes, restore_changes
from dbdyno.commands.sharing import only_measurement
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.marked_tables import Table, drop, marked_tables
from dbdyno.servers.kinds.remote import RemoteServer, read_password
from dbdyno.servers.url import Target, parse_url


def data(
    action: Action,
    target: str,
    password_file: Path | None,
    *,
    yes: bool,
    share: bool,
    forget: bool = False,
) -> None:
    """List what dbdyno has left on a server, drop the tables, or restore the settings. Raises Problem."""
    if forget and action is not Action.RESTORE:
        raise Problem("--forget belongs to dbdyno data restore", "Leave it out")
    where = parse_url(target)
    prompt = f"Password of {where.user} on {where.host}: "
    secret = read_password(password_file, (lambda: getpass.getpass(prompt)) if sys.stdin.isatty() else None)
    with closing(RemoteServer(where, secret)) as server:
        if action is Action.RESTORE:
            restore_changes(server, where, yes=yes, forget=forget, share=share)
            return
        if action is Action.LIST:
            server.connect()
            has_changes = print_changes(server)
        else:
            server.start()
            print_notes(server.notes)
            has_changes = False
        tables = marked_tables(server, everywhere=True)
        if not tables and not has_changes:
            print(f"no table in {_place(where)} was created by dbdyno", file=sys.stderr)
        if not tables:
            return
        _print(tables)
        if action is Action.DROP and (tables := _droppable(tables, where)):
            _confirm(tables, where, yes=yes)
            # A run that measures on this machine may use the tables.
            with only_measurement("data drop", share=share):
                _drop(server, tables)


def _print(tables: Sequence[Table]) -> None:
    width = max(len(table.title) for table in tables)
    for table in tables:
        size = f"{table.size_bytes / 2**20:,.1f} MiB"
        print(
            f"{table.title:{width}}  {size:>12}  {table.mark}{f' ({table.doubt})' if table.doubt else ''}",
            flush=True,
        )


def _droppable(tables: Sequence[Table], where: Target) -> list[Table]:
    """Those of the tables that dbdyno has certainly created in the database of the URL. Names the others."""
    is_elsewhere = {table for table in tables if where.protocol == "mysql" and not table.is_here}
    for table in tables:
        if table in is_elsewhere:
            print(f"kept {table.title}: name its database in --target to drop it", file=sys.stderr)
        elif table.doubt:
            print(f"kept {table.title}: {table.doubt}; drop it yourself if it is not yours", file=sys.stderr)
    return [table for table in tables if table.is_dbdynos and table not in is_elsewhere]


def _confirm(tables: Sequence[Table], where: Target, *, yes: bool) -> None:
    """Raise Problem unless the user agrees."""
    tables_text = "this table" if len(tables) == 1 else f"these {len(tables)} tables"
    confirm(f"dropping {tables_text}", f"Drop {tables_text} in {_place(where)}?", yes=yes)


def _drop(server: RemoteServer, tables: Sequence[Table]) -> None:
    failures = []
    for name, failure in drop(server, tables):
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
