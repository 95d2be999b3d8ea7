"""Whether the loads of a document fit into its server, reach its limit, and are all shown."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from dbdyno.checks.limits import Capacity, Demand, server_capacities
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.reading import from_document
from dbdyno.problem import Problem
from dbdyno.reading.attribution import Series
from dbdyno.reading.call import Call
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.claim import Claim
from dbdyno.reading.document import Document
from dbdyno.reading.limits import DESCRIBED_MAX, linear
from dbdyno.reading.result import THROUGHPUTS, Result
from dbdyno.reading.setting import Settings
from dbdyno.result_text import connections_count
from dbdyno.run.description import describe
from dbdyno.text import compose

# The limits of a server whose document does not set them (MySQL 5.7 to 9, MariaDB 10.6 to 12).
_DEFAULTS = {"max_prepared_stmt_count": "16382", "max_connections": "151"}
# Servers that speak MySQL's protocol and have other limits.
_FOREIGN = linear(r"tidb|oceanbase|seekdb|polardb|vitess|singlestore|doris|starrocks", re.IGNORECASE)
_ERROR = re.compile(r"1461.{0,200}max_prepared_stmt_count|max_prepared_stmt_count.{0,200}1461")


@check("P07")
def capacity(
    document: Document,
    results: Sequence[Result],
    calls: Sequence[Call],
    settings: Sequence[Settings],
    loads: Mapping[int, int],
) -> Iterator[Mistake]:
    """Multiplies connections by the prepared statements of each, which sysbench keeps per table and kind.

    Catches loads that cannot have run as described. A published benchmark plans 500 connections with 46
    statements each; with the default limit 356 connections are possible.

    Rule: the server's limits must suffice for the highest load.
    """
    is_foreign = any(_FOREIGN.search(text) for text in document.texts)
    seen: set[tuple[str, str]] = set()
    highest_of: dict[str, int] = {}
    for call in calls:
        if call.phase == "run":
            highest_of[call.test] = max(highest_of.get(call.test, 0), call.connections or 0)
    described: dict[tuple[str, ...], int | None] = {}
    declared = _declared(settings)
    # sysbench stops at a limit, so loads whose output is shown fitted.
    shown = {result.connections for result in results if result.tool.startswith("sysbench")}
    for call in calls:
        if call.tool != "sysbench" or call.phase != "run" or call.driver != "mysql" or is_foreign:
            continue
        highest = highest_of[call.test] or max(loads, default=0)
        key = (call.test, call.options.get("tables", ""), call.options.get("skip-trx", "off"))
        if call.options.get("db-ps-mode") == "disable":
            statements: int | None = 0
        elif key in described:
            statements = described[key]
        elif len(described) < DESCRIBED_MAX:
            statements = described[key] = _prepared_statements(call)
        else:
            _leave_out(document, call)
            continue
        if not highest or statements is None:
            continue
        demand = Demand(highest, call.number("tables", "oltp-tables-count") or 1, statements)
        for server_capacity in server_capacities({**_DEFAULTS, **declared}, demand, {}, started=False):
            named = (call.test, server_capacity.limit_name)
            if (
                server_capacity.limit_name not in _DEFAULTS
                or server_capacity.required(highest) <= server_capacity.limit
                or named in seen
            ):
                continue
            if server_capacity.limit_name == "max_connections" and not (settings or statements == 0):
                # Servers of clouds have other defaults.
                continue
            seen.add(named)
            if highest not in shown:
                indexes = (call.first, loads.get(highest, call.first))
                yield _exceeded(
                    server_capacity, highest, indexes, is_default=server_capacity.limit_name not in declared
                )
    yield from _reached(document, calls)


def _leave_out(document: Document, call: Call) -> None:
    text = compose(
        "the prepared statements of more than {limit} kinds of calls are not counted", limit=DESCRIBED_MAX
    )
    document.left_out.add("described", document.numbers[call.first], text)


def _reached(document: Document, calls: Sequence[Call]) -> Iterator[Mistake]:
    """The error of a limit that was reached, if prepared statements were then switched off."""
    error = next((index for index, text in document.lines() if _ERROR.search(text)), None)
    off = next((call for call in calls if call.options.get("db-ps-mode") == "disable"), None)
    if error is not None and off is not None:
        yield Mistake(
            "stop",
            compose(
                "max_prepared_stmt_count was reached, and prepared statements were switched off instead of "
                "raising it"
            ),
            (error, off.first),
            fix=compose(
                "Raise max_prepared_stmt_count: without prepared statements the server parses every statement"
            ),
        )


def _declared(settings: Sequence[Settings]) -> Mapping[str, str]:
    """The limits that the document shows."""
    return {
        name: value for block in settings for name, (value, _) in block.values.items() if name in _DEFAULTS
    }


def _prepared_statements(call: Call) -> int | None:
    """Prepared statements of one connection to a MySQL server; None for a test that dbdyno does not know, and
    for options that the load generator rejects.
    """
    if call.test not in get_args(OltpName):
        return None
    workload: dict[str, Any] = {"name": call.test, "tables": call.number("tables") or 1}
    if call.options.get("skip-trx", "off") in ("1", "on", ""):
        workload["skip_trx"] = True
    document = {
        "experiment": {"name": "reading"},
        "workload": [workload],
        "load": {"connections": [1], "duration": "1s"},
        "variant": [{"name": "server"}],
    }
    try:
        experiment = from_document(document, "the call", Path())
        described = describe(experiment, experiment.workloads[0], "mysql")
    except Problem:
        return None
    # MySQL does not prepare BEGIN: sysbench sends it as text there.
    begins = sum(statement.kind == "begin" and statement.prepared for statement in described.statements)
    return described.prepared_per_connection - begins


def _exceeded(capacity: Capacity, highest: int, indexes: tuple[int, int], *, is_default: bool) -> Mistake:
    """A limit of the server that is too low for the highest number of connections."""
    largest = (capacity.limit - capacity.fixed) // capacity.per_connection
    return Mistake(
        "stop",
        compose(
            "{connections} connections need {need:,} {unit} ({each} each), and {limit_name} is "
            "{limit:,}{default}: "
            "at most {largest} connections fit",
            connections=highest,
            need=capacity.required(highest),
            unit=capacity.unit,
            each=capacity.per_connection,
            limit_name=capacity.limit_name,
            limit=capacity.limit,
            default=compose(" unless it was changed") if is_default else "",
            largest=largest,
        ),
        indexes,
        fix=compose("Show the limit that was set, or the errors of this load"),
    )


_FALLING_MIN = 3


@check("P16")
def overloads(series: Sequence[Series]) -> Iterator[Mistake]:
    """Looks where throughput is highest over the loads of each variant.

    Catches sweeps of overloads only, in which latency is the number of connections divided by throughput,
    whatever is compared. In a published benchmark throughput falls from the first load to the last.

    Rule: a sweep must include loads below the server's limit; R07: and the limit itself.
    """
    curves = [curve for entry in series if len(curve := _curve_of(entry)) >= _FALLING_MIN]
    falling = [curve for curve in curves if all(a[1] >= b[1] for a, b in itertools.pairwise(curve))]
    if curves and len(falling) == len(curves):
        yield Mistake(
            "warn",
            compose(
                "throughput falls from the lowest load ({connections}) on: every load is beyond the server's "
                "limit",
                connections=connections_count(curves[0][0][2].connections or 0),
            ),
            (point[2].first for point in curves[0]),
            fix=compose("Add loads below: 1, 2, 4 … connections"),
        )


def _curve_of(series: Series) -> list[tuple[int, float, Result]]:
    """Connections, throughput and result by rising load; of several results at one load the first."""
    points: dict[int, tuple[int, float, Result]] = {}
    for result in series.results:
        value = next((value for name in THROUGHPUTS if (value := result.value(name))), None)
        if result.connections is not None and value is not None:
            points.setdefault(result.connections, (result.connections, value, result))
    return sorted(points.values(), key=lambda point: point[0])


# Throughput that rises by more than this to the last load has not reached its highest value.
_RISE = 1.1
_RISING_MIN = 4


@check("R07")
def peak(series: Sequence[Series]) -> Iterator[Mistake]:
    """Looks whether throughput still rises at the highest load.

    Catches claims about the highest throughput without it. In a published benchmark it rises by a fifth and
    by a quarter from 512 to 1024 connections.

    Rule: a sweep that ends below the server's limit says nothing of it.
    """
    for entry in series:
        curve = _curve_of(entry)
        if len(curve) < _RISING_MIN or curve[-2][1] <= 0:
            continue
        rise = curve[-1][1] / curve[-2][1]
        if rise > _RISE:
            yield Mistake(
                "note",
                compose(
                    "throughput still rises by {percent:.0f} % from {before} to {last} connections: its "
                    "highest value is not reached",
                    percent=100 * (rise - 1),
                    before=curve[-2][0],
                    last=curve[-1][0],
                ),
                (curve[-2][2].first, curve[-1][2].first),
                fix=compose("Add loads until throughput falls"),
                subject=entry.label,
            )


_SHOWN_MAX = 8


@check("Q03")
def coverage(
    results: Sequence[Result], claims: Sequence[Claim], loads: Mapping[int, int]
) -> Iterator[Mistake]:
    """Compares the loads that are planned with those that are shown and claimed.

    Catches claims about chosen loads. A published benchmark claims 20 % on average over 2 to 3000 threads;
    its sentences name one load each.

    Rule: a claim must name what it is about, and all that was planned must be shown.
    """
    shown = {result.connections for result in results}
    missing = sorted(set(loads) - shown) if results and shown - {None} else []
    if missing and set(loads) & shown:
        yield Mistake(
            "warn",
            compose(
                "planned and not shown: connections = {missing}",
                missing=", ".join(map(str, missing[:_SHOWN_MAX]))
                + (" …" if len(missing) > _SHOWN_MAX else ""),
            ),
            (loads[number] for number in missing),
        )
    if results or len(loads) < 2:
        return
    for claim in claims:
        if claim.percents and len(claim.connections) != 1:
            yield Mistake(
                "warn",
                compose(
                    "{percent:g} % at which load? {number} loads are planned, and the numbers of none are "
                    "shown",
                    percent=claim.percents[0],
                    number=len(loads),
                ),
                [claim.index],
                fix=compose("Show every load with its interval, and the mean over all"),
            )
