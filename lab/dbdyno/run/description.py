"""Asks the engine which statements and tables a workload has. The answers are cached.

The engine answers without connecting to a server and without reading a secret. schema/describe.schema.json
defines the form of the answer.
"""

from __future__ import annotations

import json
import subprocess
from functools import cache

from pydantic import TypeAdapter
from pydantic.dataclasses import dataclass

from dbdyno.binary import EngineProblem
from dbdyno.experiment.model import Experiment, Variant, Workload
from dbdyno.problem import ExitCode, Problem
from dbdyno.run.engine import find_binary
from dbdyno.run.plan import plan

TIME_LIMIT_S = 60.0


@dataclass(frozen=True)
class Parameter:
    """Where a parameter is in a statement."""

    # The parameter's name; None for a `?`.
    name: str | None
    # Offset of the parameter's colon or `?`, in characters.
    at: int


@dataclass(frozen=True)
class Statement:
    """A statement in the plan's syntax; `kind` is its name in records."""

    kind: str
    sql: str
    per_transaction: int
    prepared: bool
    parameters: tuple[Parameter, ...]
    # Rows that each execution is expected to return or change; None: not checked.
    rows: int | None


@dataclass(frozen=True)
class Column:
    """A column; `type` is None if the user's statements define it."""

    name: str
    type: str | None
    # Number of characters of a `char`.
    length: int | None = None
    nullable: bool = False
    auto_increment: bool = False


@dataclass(frozen=True)
class Index:
    """An index, with its columns in order."""

    columns: tuple[str, ...]
    primary: bool


@dataclass(frozen=True)
class Tables:
    """Tables with the same definition and number of rows, in their state after `prepare`."""

    names: tuple[str, ...]
    # None if the server has no storage engines, or the user's statements define the engine.
    engine: str | None
    columns: tuple[Column, ...]
    # None if the user's statements define the indexes.
    indexes: tuple[Index, ...] | None
    rows: int


@dataclass(frozen=True)
class Recorded:
    """Statements of a recorded log that differ only in their values, with a `?` in place of these."""

    # None: all statements that are too rare to be listed.
    sql: str | None
    count: int
    # How many of them may write.
    writes: int


@dataclass(frozen=True)
class Description:
    """The statements and tables of a plan, for one server protocol."""

    # The statements in the order of the plan; empty for scripts and replays.
    statements: tuple[Statement, ...]
    # Those of a replay, the most frequent first.
    recorded: tuple[Recorded, ...]
    prepared_per_connection: int
    tables: tuple[Tables, ...]

    def table_names(self) -> list[str]:
        """The names of all tables that the engine fills."""
        return [name for group in self.tables for name in group.names]


def describe(
    experiment: Experiment, workload: Workload, protocol: str, variant: Variant | None = None
) -> Description:
    """The engine's description of a workload for a server of this protocol, with the variant's session.

    Raises Problem with every error that the engine finds in the plan.
    """
    # A plan needs an address, which `describe` does not use.
    target = {"protocol": protocol, "endpoints": [{"unix": {"path": "/"}}], "user": "u", "database": "d"}
    session = variant.session.statements(protocol) if variant is not None else ()
    request = plan(experiment, workload, target, session=session)
    return _describe(str(find_binary(request)), json.dumps(request), workload.title)


@cache
def _describe(binary: str, request: str, title: str) -> Description:
    try:
        answer = subprocess.run(
            [binary, "describe"],
            input=request,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineProblem(f"the load engine {binary} does not start: {error}", "Run make build") from error
    if answer.returncode != 0:
        raise Problem(f"the engine rejects the workload {title}: {answer.stderr.strip()}", "", ExitCode.USAGE)
    return TypeAdapter(Description).validate_json(answer.stdout)
