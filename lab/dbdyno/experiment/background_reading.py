"""Resolves the `[[workload.background]]` of a workload: its statements, and one set of tables for both.

::

    setup, tables, after of the workload + those of its background loads  ->  of each of them

So the data are loaded once, and `rows(TABLE)` in a background load means the same tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbdyno.experiment import bundled
from dbdyno.experiment.errors import InputError
from dbdyno.experiment.script_reading import workload_title

# Resolves the table of a SQL workload; appends the errors to the list.
ResolveSql = Callable[[dict[str, Any], list[InputError]], dict[str, Any]]
# The keys that define the data of a SQL workload.
_LISTS = ("setup", "after", "cleanup")
# The keys of its load; the others are those of a workload.
_LOAD = ("connections", "rate", "arrivals")


def resolve(workload: dict[str, Any], resolve_sql: ResolveSql, errors: list[InputError]) -> dict[str, Any]:
    """A resolved workload with its background loads resolved, all of them with the tables of all."""
    entries = workload.get("background")
    if not isinstance(entries, list):
        return workload
    place = f"workload[{workload_title(workload)}].background"
    backgrounds: list[Any] = []
    for entry in entries:
        if not isinstance(entry, dict):
            backgrounds.append(entry)
            continue
        load = {key: entry[key] for key in _LOAD if key in entry}
        named = {"name": "sql", **{key: value for key, value in entry.items() if key not in _LOAD}}
        own: list[InputError] = []
        if named["name"] == "sql":
            named = resolve_sql({"label": "background", **named}, own)
        elif named["name"] in bundled.names():
            named = resolve_sql(named, own)
        backgrounds.append(named | load)
        errors += [_relocated(error, workload_title(named), place) for error in own]
    if workload.get("name") == "sql":
        _share_data([workload := dict(workload), *(one for one in backgrounds if isinstance(one, dict))])
    return {**workload, "background": backgrounds}


def relocate(errors: list[InputError], title: str, owner: str) -> list[InputError]:
    """The errors of a background load, named by its place in the workload `owner`."""
    return [_relocated(error, title, f"workload[{owner}].background") for error in errors]


def _relocated(error: InputError, title: str, place: str) -> InputError:
    prefix = f"workload[{title}]"
    if not error.key.startswith(prefix):
        return error
    key = f"{place}[{title}]{error.key.removeprefix(prefix)}"
    return InputError(key, error.value, error.problem, error.fix)


def _share_data(workloads: list[dict[str, Any]]) -> None:
    """Give all of them the tables of all, each statement once."""
    for key in _LISTS:
        lists = [one[key] for one in workloads if isinstance(one.get(key), list)]
        # A statement may be no text, which the model reports.
        every: list[Any] = []
        for one in lists:
            every += [sql for sql in one if sql not in every]
        for workload in workloads if every else ():
            if isinstance(workload.get(key, []), list):
                workload[key] = every
    tables: dict[str, Any] = {}
    for one in reversed(workloads):
        tables |= one["tables"] if isinstance(one.get("tables"), dict) else {}
    for one in workloads if tables else ():
        if isinstance(one.get("tables", {}), dict):
            one["tables"] = tables
