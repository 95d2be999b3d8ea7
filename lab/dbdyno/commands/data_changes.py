"""The settings that dbdyno has changed on a server and not restored, for `dbdyno data`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from dbdyno.commands.sharing import only_measurement
from dbdyno.problem import ExitCode, Problem
from dbdyno.servers.kinds.remote import RemoteServer
from dbdyno.servers.kinds.remote_changes import StoredChanges, stored_changes
from dbdyno.servers.server import ServerProblem, combine_problems
from dbdyno.servers.url import Target


def print_notes(notes: Iterable[str]) -> None:
    """Print messages about changes."""
    for note in notes:
        print(note, file=sys.stderr, flush=True)


def print_changes(server: RemoteServer) -> bool:
    """Print the changes on a server that answers, and on others that had its URL. Returns whether there are
    any on this one.
    """
    of_this, of_others = server.changes.left()
    for stored in of_this:
        _print(server, stored)
        if stored.acquire():
            stored.release()
            print(f"to restore the earlier values: {server.changes.restore_command}", file=sys.stderr)
        else:
            print("a measurement in progress uses these values and will restore them", file=sys.stderr)
    print_notes(server.changes.another_server(stored) for stored in of_others)
    return bool(of_this)


def restore_changes(server: RemoteServer, where: Target, *, yes: bool, forget: bool, share: bool) -> None:
    """Restore the settings that dbdyno has changed; with `forget`, only forget the earlier values. Raises
    Problem.
    """
    try:
        server.connect()
        of_this, of_others = server.changes.left()
    except ServerProblem as problem:
        of_this, of_others = [], _unreachable(where, problem, forget=forget)
    if forget:
        _forget(server, [*of_this, *of_others], yes=yes)
        return
    print_notes(server.changes.another_server(stored) for stored in of_others)
    if not of_this:
        print("dbdyno has left no changed setting on this server", file=sys.stderr)
        return
    for stored in of_this:
        _print(server, stored)
    confirm("restoring these settings", "Restore the earlier values?", yes=yes)
    problems: list[ServerProblem] = []
    # A run that measures on this machine may use the server.
    with only_measurement("data restore", share=share):
        for stored in of_this:
            notes, failures = server.changes.undo_stored(stored)
            print_notes(notes)
            problems += failures
    if problems:
        raise combine_problems(problems, str(where))


def _unreachable(where: Target, problem: ServerProblem, *, forget: bool) -> list[StoredChanges]:
    """The changes on a server that does not answer. Raises Problem, unless they are to be forgotten."""
    of_url = [stored for stored in stored_changes() if stored.record.place == where.place]
    if forget or not of_url:
        if not of_url:
            raise problem
        return of_url
    values = "; ".join(
        f"{change.name} was {change.before!r} ({change.undo})"
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
            print(f"{change.name}  earlier value {change.before!r}  {change.undo}", flush=True)
    confirm("forgetting these earlier values", "Forget these earlier values?", yes=yes)
    for stored in of_url:
        server.changes.forget(stored)
        names = ", ".join(change.name for change in stored.record.changes)
        print(f"forgotten: {names}", file=sys.stderr, flush=True)


def _print(server: RemoteServer, stored: StoredChanges) -> None:
    for line in server.changes.lines(stored):
        print(f"{line}; changed {stored.record.made_by()}", flush=True)


def confirm(doing: str, question: str, *, yes: bool) -> None:
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
