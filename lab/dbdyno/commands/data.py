"""`dbdyno data list|drop|restore --target URL`: what dbdyno has created or changed on a server and left.

`dbdyno run --keep-data` leaves tables, and a process that was killed leaves tables and changed settings.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, closing
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dbdyno.commands import options
from dbdyno.problem import ExitCode, Problem
from dbdyno.terminal.messages import print_message

if TYPE_CHECKING:
    from dbdyno.run.marked_tables import Table
    from dbdyno.servers.kinds.remote import RemoteServer
    from dbdyno.servers.kinds.remote_changes import StoredChanges
    from dbdyno.servers.server import ServerProblem
    from dbdyno.servers.url import Target


# What `dbdyno data` does.
Action = Literal["list", "drop", "restore"]


def data(  # noqa: PLR0917 — one parameter per option; typer passes them by name.
    action: Annotated[
        Action,
        typer.Argument(
            metavar="list|drop|restore",
            help="Show tables and changed settings, drop the tables, or restore the settings.",
            show_default=False,
        ),
    ],
    target: Annotated[
        str,
        typer.Option(
            metavar="URL",
            help="URL of the server, as in dbdyno run: mysql:// or postgresql://user@host:port/database.",
            show_default=False,
        ),
    ],
    yes: Annotated[bool, typer.Option("--yes", help="Drop or restore without asking.")] = False,
    forget: Annotated[
        bool,
        typer.Option("--forget", help="With restore: keep the server's values, and forget the earlier ones."),
    ] = False,
    password_file: options.PasswordFile = None,
    share_machine: options.ShareMachine = False,
) -> None:
    """List or drop the tables that dbdyno has left on a server, or restore settings that it has changed."""
    from dbdyno.run.machine_lock import only_measurement
    from dbdyno.run.marked_tables import marked_tables
    from dbdyno.servers.url import parse_url

    if forget and action != "restore":
        raise Problem("--forget belongs to dbdyno data restore", "Leave it out")
    where = parse_url(target)
    # A run that measures on this machine may use the tables or the settings.
    alone = only_measurement(f"dbdyno data {action}", print_message, share=share_machine)
    with closing(options.open_target(where, password_file)) as server:
        if action == "restore":
            _restore_changes(server, where, alone, yes=yes, forget=forget)
            return
        if action == "list":
            server.connect()
            has_changes = _print_changes(server)
        else:
            server.start()
            _print_notes(server.notes)
            has_changes = False
        tables = marked_tables(server, everywhere=True)
        if not tables and not has_changes:
            print(f"no table in {_place(where)} was created by dbdyno", file=sys.stderr)
        if not tables:
            return
        _print_tables(tables)
        if action == "drop" and (tables := _droppable(tables, where)):
            _confirm_drop(tables, where, yes=yes)
            with alone:
                _drop_tables(server, tables)


def _print_tables(tables: Sequence[Table]) -> None:
    width = max(len(table.title) for table in tables)
    for table in tables:
        size = f"{table.size_bytes / 2**20:,.1f} MiB"
        print(
            f"{table.title:{width}}  {size:>12}  {table.mark}{f' ({table.doubt})' if table.doubt else ''}",
            flush=True,
        )


def _droppable(tables: Sequence[Table], where: Target) -> list[Table]:
    """Those of the tables that dbdyno has certainly created in the database of the URL. Names the others."""
    from dbdyno.experiment.dialect import DIALECTS

    has_schemas = DIALECTS[where.protocol].has_schemas
    is_elsewhere = {table for table in tables if not (has_schemas or table.is_here)}
    for table in tables:
        if table in is_elsewhere:
            print(f"kept {table.title}: name its database in --target to drop it", file=sys.stderr)
        elif table.doubt:
            print(f"kept {table.title}: {table.doubt}; drop it yourself if it is not yours", file=sys.stderr)
    return [table for table in tables if table.is_dbdynos and table not in is_elsewhere]


def _confirm_drop(tables: Sequence[Table], where: Target, *, yes: bool) -> None:
    """Raise Problem unless the user agrees."""
    tables_text = "this table" if len(tables) == 1 else f"these {len(tables)} tables"
    _confirm(f"dropping {tables_text}", f"Drop {tables_text} in {_place(where)}?", yes=yes)


def _drop_tables(server: RemoteServer, tables: Sequence[Table]) -> None:
    from dbdyno.run.marked_tables import drop

    failures = []
    for name, failure in drop(server, tables):
        if failure:
            failures.append(f"{name}: {failure}")
        else:
            print_message(f"dropped {name}")
    if failures:
        raise Problem(
            f"{len(failures)} of {len(tables)} tables could not be dropped: {'; '.join(failures)}",
            "Grant the account the privilege, or drop the tables and views that refer to them first",
            ExitCode.NOT_COMPARABLE,
        )


def _place(where: Target) -> str:
    return f"{where.database} on {where.unix_socket or f'{where.host}:{where.port}'}"


def _print_notes(notes: Iterable[str]) -> None:
    """Print messages about changes."""
    for note in notes:
        print_message(note)


def _print_changes(server: RemoteServer) -> bool:
    """Print the changes on a server that answers, and on others that had its URL. Returns whether there are
    any on this one.
    """
    of_this, of_others = server.changes.left()
    for stored in of_this:
        _print_stored(server, stored)
        if stored.acquire():
            stored.release()
            print(f"to restore the earlier values: {server.changes.restore_command}", file=sys.stderr)
        else:
            print("a measurement in progress uses these values and will restore them", file=sys.stderr)
    _print_notes(server.changes.another_server(stored) for stored in of_others)
    return bool(of_this)


def _restore_changes(
    server: RemoteServer, where: Target, alone: AbstractContextManager[None], *, yes: bool, forget: bool
) -> None:
    """Restore the settings that dbdyno has changed; with `forget`, only forget the earlier values. Raises
    Problem.
    """
    from dbdyno.servers.server import ServerProblem, combine_problems

    try:
        server.connect()
        of_this, of_others = server.changes.left()
    except ServerProblem as problem:
        of_this, of_others = [], _unreachable(where, problem, forget=forget)
    if forget:
        _forget(server, [*of_this, *of_others], yes=yes)
        return
    _print_notes(server.changes.another_server(stored) for stored in of_others)
    if not of_this:
        print("dbdyno has left no changed setting on this server", file=sys.stderr)
        return
    for stored in of_this:
        _print_stored(server, stored)
    _confirm("restoring these settings", "Restore the earlier values?", yes=yes)
    problems: list[ServerProblem] = []
    with alone:
        for stored in of_this:
            notes, failures = server.changes.undo_stored(stored)
            _print_notes(notes)
            problems += failures
    if problems:
        raise combine_problems(problems, str(where))


def _unreachable(where: Target, problem: ServerProblem, *, forget: bool) -> list[StoredChanges]:
    """The changes on a server that does not answer. Raises Problem, unless they are to be forgotten."""
    from dbdyno.servers.kinds.remote_changes import stored_changes

    of_url = [stored for stored in stored_changes() if stored.record.place == where.place]
    if forget or not of_url:
        if not of_url:
            raise problem
        return of_url
    values = "; ".join(
        f"{change.name} {change.earlier} ({change.undo})"
        for stored in of_url
        for change in stored.record.changes
    )
    raise Problem(
        f"{problem.text}. What dbdyno has changed there is not restored: {values}",
        f"{problem.fix}; then repeat the command",
        ExitCode.NOT_COMPARABLE,
    ) from problem


def _forget(server: RemoteServer, of_url: Sequence[StoredChanges], *, yes: bool) -> None:
    if not of_url:
        print("dbdyno has left no changed setting on this server", file=sys.stderr)
        return
    for stored in of_url:
        for change in stored.record.changes:
            print(f"{change.name}  {change.earlier}  {change.undo}", flush=True)
    _confirm("forgetting these earlier values", "Forget these earlier values?", yes=yes)
    for stored in of_url:
        server.changes.forget(stored)
        names = ", ".join(change.name for change in stored.record.changes)
        print_message(f"forgotten: {names}")


def _print_stored(server: RemoteServer, stored: StoredChanges) -> None:
    for line in server.changes.lines(stored):
        print(f"{line}; changed {stored.record.made_by()}", flush=True)


def _confirm(doing: str, question: str, *, yes: bool) -> None:
    """Raise Problem unless the user agrees."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Problem(
            f"{doing} needs your confirmation, and there is no terminal",
            "Nothing was changed. Repeat the command with --yes",
        )
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Problem("nothing was changed, because you did not answer y")
