"""The experiment that measures what a document measured: its workloads and loads, with a variant for each of
its variants that differ in settings.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dbdyno.checks.non_deterministic import find_conditions
from dbdyno.problem import Problem
from dbdyno.reading.attribution import differing_settings
from dbdyno.reading.call import Call
from dbdyno.reading.limits import NOTES_MAX, SQL_TOTAL_MAX, WORKLOADS_MAX, sentence
from dbdyno.reading.patterns import linear
from dbdyno.reading.reading import Reading
from dbdyno.reading.setting import POSTGRESQL
from dbdyno.reading.statements import sql_statements
from dbdyno.reading.translation import Translation, translate

_NOT_IN_NAMES = linear(r"[^A-Za-z0-9._]+")
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
_NAME_MAX = 60
# pgbench's built-in scripts, by the names of its option and of its output.
_PGBENCH = {"tpcb-like": "tpcb", "": "tpcb", "simple-update": "tpcb", "select-only": "micro/point-query"}
# Options of pgbench that are in the file, the numbers only if they are known, and those that change nothing.
_PGBENCH_NUMBERS = ("client", "time")
_PGBENCH_READ = ("select-only", "skip-some-updates", "builtin", "file", "no-vacuum", "progress", "jobs")


def equivalent(reading: Reading) -> Translation:
    """The experiment, and what a user must know about it. Raises Problem if the document calls nothing that
    dbdyno can measure.
    """
    runs = [call for call in reading.calls if call.phase != "prepare"] or reading.calls
    tools = {call.tool for call in runs}
    if "sysbench" in tools:
        translation = translate([call for call in reading.calls if call.tool == "sysbench"], reading.folder)
        _use_loaded_rows(reading, translation)
    elif tools & {"mysqlslap", "mariadb-slap"}:
        translation = _of_slap(reading, [call for call in runs if call.options.get("query")])
    elif "pgbench" in tools:
        translation = _of_pgbench([call for call in runs if call.tool == "pgbench"])
    else:
        raise Problem(
            f"{reading.document.name} calls no benchmark program that dbdyno knows",
            "dbdyno knows sysbench, pgbench and mysqlslap",
        )
    if reading.loads:
        translation.document["load"]["connections"] = sorted(reading.loads)
    _add_variants(reading, translation)
    translation.notes += [f"line {one.line}: {sentence(one)}" for one in reading.document.left_out]
    return translation


def _use_loaded_rows(reading: Reading, translation: Translation) -> None:
    """The sizes of prepare, where a run names others: these are the rows that there are."""
    prepared = next((call for call in reading.calls if call.phase == "prepare"), None)
    size = prepared.number("table-size", "oltp-table-size") if prepared is not None else None
    for workload in translation.document["workload"]:
        if size is not None and workload.get("table_size", size) != size:
            translation.notes.append(
                f"the run names {workload['table_size']} rows; prepare has loaded {size}"
            )
            workload["table_size"] = size


def _of_slap(reading: Reading, calls: Sequence[Call]) -> Translation:
    """Own SQL with the document's tables and its query; a random key becomes a parameter."""
    notes: list[str] = []
    queries = list(dict.fromkeys(call.options["query"].strip().rstrip(";") for call in calls))
    if len(queries) > WORKLOADS_MAX or sum(map(len, queries)) > SQL_TOTAL_MAX:
        raise Problem(
            f"{reading.document.name} has {len(queries):,} queries "
            f"with {sum(map(len, queries)):,} characters; "
            f"an experiment is written of at most {WORKLOADS_MAX} with {SQL_TOTAL_MAX:,}",
            "Write the experiment of its queries as own SQL",
        )
    if not queries:
        raise Problem(
            "the calls of mysqlslap have no --query", "Write the experiment of its queries as own SQL"
        )
    transactions: list[dict[str, Any]] = []
    parameters: dict[str, str] = {}
    for number, query in enumerate(queries, start=1):
        text = query
        for condition in find_conditions(query, "mysql"):
            if condition.generator:
                where = _WHERE.search(text)
                text = f"{text[: where.start() if where else len(text)]}WHERE {condition.parameterized}"
                parameters[condition.parameter] = condition.generator
                notes.append(f"{condition.text} scans the table; the file looks one random key up")
        transactions.append({"name": f"query-{number}", "sql": text})
    statements = sql_statements(reading.document)
    if sum(map(len, statements)) > SQL_TOTAL_MAX:
        notes.append(
            f"the statements of the document have more than {SQL_TOTAL_MAX:,} characters: "
            "write `setup` yourself"
        )
        statements = []
    workload: dict[str, Any] = {"name": "sql", "label": "queries", "transactions": transactions}
    if statements:
        workload["setup"] = (
            list(dict.fromkeys(statements)) if len(set(statements)) < len(statements) / 2 else statements
        )
    if parameters:
        workload["parameters"] = parameters
    document = {
        "experiment": {"name": "from-mysqlslap"},
        "workload": [workload],
        "load": {"connections": [1], "duration": "30s"},
        "variant": [{"name": "server", "server": {"product": "mysql"}}],
    }
    return Translation(document, notes)


def _of_pgbench(calls: Sequence[Call]) -> Translation:
    notes: list[str] = []
    names = []
    for call in calls:
        test = "select-only" if "select-only" in call.options else call.test
        if test not in _PGBENCH:
            raise Problem(
                f"pgbench runs {test}, which dbdyno has no workload for", "Write its statements as own SQL"
            )
        names.append(_PGBENCH[test])
        if test in ("simple-update", "select-only"):
            notes.append(
                f"{test} of pgbench is {_PGBENCH[test]} here, whose statements and tables are others"
            )
    left = dict.fromkeys(
        f"--{name}={value}" if value else f"--{name}"
        for call in calls
        for name, value in call.options.items()
        if name not in _PGBENCH_READ and (name not in _PGBENCH_NUMBERS or call.number(name) is None)
    )
    if left:
        notes.append("these options have no counterpart: " + ", ".join(list(left)[:NOTES_MAX]))
    notes.append("the server is a private one that dbdyno starts, not the one of the calls")
    time = next((seconds for call in calls if (seconds := call.number("time"))), 60)
    document = {
        "experiment": {"name": "from-pgbench"},
        "workload": [{"name": name} for name in dict.fromkeys(names)],
        "load": {"connections": [1], "duration": f"{time}s"},
        "variant": [{"name": "server", "server": {"product": "postgresql"}}],
    }
    return Translation(document, list(dict.fromkeys(notes)))


def _add_variants(reading: Reading, translation: Translation) -> None:
    """A private server for each variant of the document that differs in a setting."""
    names = differing_settings(reading.series)
    if len(reading.series) < 2 or not names:
        return
    texts = " ".join(reading.document.texts).lower()
    product = (
        "postgresql"
        if any(POSTGRESQL.fullmatch(name) for name in names)
        else "mariadb"
        if "mariadb" in texts
        else "mysql"
    )
    variants = []
    for series in reading.series:
        values: Mapping[str, str] = {name: series.settings[name][0] for name in names}
        name = _NOT_IN_NAMES.sub("-", "-".join(values.values()))[:_NAME_MAX].strip("-.")
        variants.append(
            {"name": name or "variant", "server": {"product": product, "variables": dict(values)}}
        )
    translation.document["variant"] = variants
    translation.document.pop("design", None)
    translation.notes[:] = [
        note for note in translation.notes if "password" not in note and "drops them" not in note
    ]
    translation.notes.append(
        "the servers are private ones that dbdyno starts, with these settings and no others"
    )
