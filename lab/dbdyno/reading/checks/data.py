"""Whether the data of a document are those that it describes, for every run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from dbdyno.checks.non_deterministic import find_conditions
from dbdyno.experiment.dialect import MYSQL
from dbdyno.experiment.oltp_name import OltpName
from dbdyno.experiment.sql_text import parse_statement, sqlglot
from dbdyno.reading.call import Call, whole_number
from dbdyno.reading.checks.register import Mistake, check
from dbdyno.reading.document import Document
from dbdyno.reading.limits import NUMBER_MAX, SQL_MAX, SQL_TOTAL_MAX, linear, whole
from dbdyno.reading.result import Result
from dbdyno.text import compose, join

# Options that say which data: sizes, and where they are. Threads, time and the test may differ.
_SIZES = ("tables", "table-size", "oltp-tables-count", "oltp-table-size", "scale")
_DEFAULTS = {"mysql-port": "3306", "pgsql-port": "5432", "mysql-db": "sbtest", "pgsql-db": "sbtest"}
_ROWS = ("table-size", "oltp-table-size")
_SIZE_DEFAULTS = {"tables": "1", "table-size": "10000"}
# A command that a document has cut.
_CUT = re.compile(r"\.\.|…")
_PLACE = ("host", "port", "socket", "db")
# A value that the document does not tell.
_UNKNOWN = linear(r"[$<>{}*]|xx", re.IGNORECASE)


@check("P01")
def same_data(calls: Sequence[Call]) -> Iterator[Mistake]:
    """Compares the options of every run and cleanup with those of the prepare of the same server, or else of
    the prepare above it, with sysbench's defaults for what they leave out; and the prepares of all servers.

    Catches runs over rows that do not exist. A published benchmark loaded 100,000 rows per table and read
    uniformly among 1,000,000: nine of ten lookups found nothing.

    Rule: prepare, run and cleanup must name the same tables and the same server.
    """
    # The last prepare of each place, with those of the same line: a loop or a branch decides between them.
    prepared: dict[tuple[str, ...], list[Call]] = {}
    last: Call | None = None
    seen: set[tuple[str, ...]] = set()
    for call in calls:
        if call.phase == "prepare":
            previous_call = None if last is None or last.tool != call.tool else last
            if (
                previous_call is not None
                and previous_call.first != call.first
                and _place(previous_call) != _place(call)
            ):
                yield from _between_servers(previous_call, call, seen)
            same = prepared.get(_place(call), [])
            prepared[_place(call)] = [*(entry for entry in same if entry.first == call.first), call]
            last = call
            continue
        befores = prepared.get(_place(call), [last] if last is not None else [])
        if befores and call.tool == befores[-1].tool and call.phase in ("run", "cleanup"):
            before = min(befores, key=lambda entry: len(list(_differences(entry, call))))
            differences = list(_differences(before, call))
            key = (call.phase, *differences)
            if differences and key not in seen:
                seen.add(key)
                yield _difference(before, call, differences)


def _place(call: Call) -> tuple[str, ...]:
    """The server and the database of a call."""
    parts = (
        (f"{call.driver}-{part}" for part in _PLACE)
        if call.tool == "sysbench"
        else ("host", "port", "dbname")
    )
    return (call.tool, call.driver, *(call.options.get(name, _DEFAULTS.get(name, "")) for name in parts))


def _between_servers(call: Call, second: Call, seen: set[tuple[str, ...]]) -> Iterator[Mistake]:
    """The sizes that are not the same on two servers, of the same test."""
    if call.test != second.test:
        return
    differences = [text for text in _differences(call, second) if text.startswith(_SIZES)]
    key = ("prepare", *differences)
    if differences and key not in seen:
        seen.add(key)
        yield Mistake(
            "stop",
            compose("the servers have different data: {differences}", differences=join("; ", differences)),
            (call.first, second.first),
            fix=compose("Take both from one definition, and count the rows before the first run"),
        )


def _difference(prepared: Call, call: Call, differences: Sequence[str]) -> Mistake:
    is_size = any(text.startswith(_SIZES) for text in differences)
    # An option that is missing may be in the environment or in a file.
    is_clear = any(" is missing, " not in text for text in differences)
    return Mistake(
        "stop" if is_clear else "warn",
        compose(
            "{phase} differs from prepare: {differences}",
            phase=call.phase,
            differences=join("; ", differences),
        )
        + (_consequence(prepared, call) if is_size else ""),
        (prepared.first, call.first),
        fix=compose("Take both from one definition, and count the rows before the first run"),
    )


def _consequence(prepared: Call, call: Call) -> str:
    """What the difference does to the run."""
    loaded, used = _rows_per_table(prepared), _rows_per_table(call)
    if call.phase != "run" or not loaded or not used or loaded == used:
        return ""
    if loaded > used:
        return compose(". The run uses {used:,} of {loaded:,} rows of each table", used=used, loaded=loaded)
    return compose(". Of uniform keys {percent:.3g} % name no row", percent=100 * (1 - loaded / used))


def _rows_per_table(call: Call) -> int | None:
    name = next((name for name in _ROWS if name in call.options), "table-size")
    text = _value(call, name)
    return None if text is None else whole_number(text)


def _value(call: Call, name: str) -> str | None:
    """The value of an option, or sysbench's default of it if the call is complete."""
    text = call.options.get(name, _DEFAULTS.get(name))
    is_complete = (
        call.tool == "sysbench"
        and call.test in get_args(OltpName)
        and "config-file" not in call.options
        and not call.unknown
        and not any(_CUT.search(text) for text in (*call.options, *call.options.values()))
    )
    return _SIZE_DEFAULTS.get(name) if text is None and is_complete else text


def _differences(prepared: Call, call: Call) -> Iterator[str]:
    names = [*_SIZES, *(f"{prepared.driver}-{part}" for part in _PLACE), "host", "port", "dbname"]
    for name in names:
        before, after = (_value(entry, name) for entry in (prepared, call))
        if not {name} & (prepared.options.keys() | call.options.keys()):
            continue
        if before == after or not before or (after and _UNKNOWN.search(before + after)):
            continue
        if after and whole_number(before) is not None and whole_number(before) == whole_number(after):
            # 1M is 1048576 for both.
            continue
        if after:
            is_default = name in _SIZES and name not in call.options
            yield compose(
                "{name} is {after}{default}, not {before}",
                name=name,
                before=before,
                after=after,
                default=compose(" (the default)") if is_default else "",
            )
        elif name not in _SIZES and name != "dbname":
            yield compose("{name} is missing, and prepare has {before}", name=name, before=before)


_INSERT = linear(r"(?<!\s)\s*+INSERT\s++INTO\s++", re.IGNORECASE)
_CREATE = linear(r"(?<!\s)\s*+CREATE\s++TABLE\s", re.IGNORECASE)
_COUNTED = linear(r"count\(\*\)\s*+(?::|=)\s*+(\d++)", re.IGNORECASE)
_COUNT_HEADING = linear(r"(?<!\s)\s*+\|?\s*+count(?:\(\*\))?\s*+\|?\s*+$", re.IGNORECASE)
_COUNT_CELL = linear(r"(?<!\s)\s*+\|?\s*+(?<!\d)(\d{1,15}+)\s*+\|?\s*+$")
_BOX_LINES = 3


@dataclass
class _Table:
    rows: int
    indexes: list[int]


@check("P02")
def counted_rows(document: Document) -> Iterator[Mistake]:
    """Follows the INSERT … SELECT statements of the document and compares the rows with its COUNT(*).

    Catches data that the shown statements did not make. A published benchmark shows a script that makes
    163,840,000 rows, and a count of 10,240,000.

    Rule: the rows that the document's statements make must be those that it counts.
    """
    tables: dict[str, _Table] = {}
    index = parsed = 0
    texts = document.texts
    while index < len(texts):
        if _INSERT.match(texts[index]):
            lines = document.statement(index)
            statement = "\n".join(lines).rstrip("; \n")
            parsed += len(statement)
            if len(statement) > SQL_MAX or parsed > SQL_TOTAL_MAX:
                _leave_out(document, statement, index)
                tables.clear()
            else:
                _insert(statement, index, tables)
            index += max(0, len(lines) - 1)
        elif _CREATE.match(texts[index]):
            tables.clear()
        elif (rows := _count(texts, index)) is not None and len(tables) == 1:
            ((name, table),) = tables.items()
            if rows != table.rows:
                yield Mistake(
                    "stop",
                    compose(
                        "the statements make {made:,} rows in {name}, and {counted:,} are counted",
                        made=table.rows,
                        name=name,
                        counted=rows,
                    ),
                    (table.indexes[0], table.indexes[-1], index),
                    fix=compose("Count rows, and the smallest and largest key, before every run"),
                )
        index += 1


def _leave_out(document: Document, statement: str, index: int) -> None:
    text = compose(
        "the statement has {length:,} characters; at most {limit:,} of one and {total:,} of all statements "
        "are parsed, so the rows are not compared",
        length=len(statement),
        limit=SQL_MAX,
        total=SQL_TOTAL_MAX,
    )
    document.left_out.add("sql", document.numbers[index], text)


def _insert(statement: str, index: int, tables: dict[str, _Table]) -> None:
    """Adds the rows of an INSERT; a table whose rows are not known is forgotten."""
    tree = parse_statement(statement, MYSQL) if statement else None
    exp = sqlglot().exp
    if tree is None or not isinstance(tree, exp.Insert):
        return
    named = tree.this.find(exp.Table)
    if named is None:
        return
    name = named.name
    try:
        rows = _rows(tree.expression, tables)
    except RecursionError:
        rows = None
    if rows is None or rows > NUMBER_MAX:
        tables.pop(name, None)
        return
    table = tables.setdefault(name, _Table(0, []))
    table.rows += rows
    table.indexes.append(index)


def _rows(node: Any, tables: dict[str, _Table]) -> int | None:
    """The rows of VALUES or of a SELECT without conditions; None if they are not known."""
    exp = sqlglot().exp
    if isinstance(node, exp.Values):
        return len(node.expressions)
    if isinstance(node, exp.Union):
        first, second = _rows(node.left, tables), _rows(node.right, tables)
        return None if first is None or second is None else first + second
    if isinstance(node, exp.Subquery):
        return _rows(node.this, tables)
    if not isinstance(node, exp.Select) or any(
        node.args.get(key) for key in ("where", "group", "limit", "having")
    ):
        return None
    source = node.args.get("from") or node.args.get("from_")
    sources = [source.this] if source is not None else []
    sources += [join.this for join in node.args.get("joins") or []]
    product = 1
    for entry in sources:
        rows = tables[entry.name].rows if isinstance(entry, exp.Table) and entry.name in tables else None
        rows = _rows(entry, tables) if not isinstance(entry, exp.Table) else rows
        if rows is None:
            return None
        product *= rows
    return product


def _count(texts: Sequence[str], index: int) -> int | None:
    """The number of rows that a line counts."""
    if match := _COUNTED.search(texts[index]):
        return whole(match[1])
    if _COUNT_HEADING.match(texts[index]):
        for text in texts[index + 1 : index + 1 + _BOX_LINES]:
            if match := _COUNT_CELL.match(text):
                return whole(match[1])
    return None


@check("P08")
def random_keys(calls: Sequence[Call]) -> Iterator[Mistake]:
    """Parses the statements of the calls.

    Catches table scans that look like lookups. `WHERE id = FLOOR(RAND() * 10000000)` draws a number for each
    row, so a published benchmark scanned ten million rows 100 times and took it for 100 lookups.

    Rule: a lookup must find its row by a key, not by a random number for each row.
    """
    seen: set[str] = set()
    parsed = 0
    for call in calls:
        statement = call.options.get("query", "").strip().rstrip(";")
        if not statement or statement in seen or len(statement) > SQL_MAX or parsed > SQL_TOTAL_MAX:
            continue
        seen.add(statement)
        parsed += len(statement)
        for condition in find_conditions(statement, MYSQL):
            if condition.evaluated_per == "row":
                yield Mistake(
                    "stop",
                    compose(
                        "{function}() in {condition} is evaluated for every row, so each query scans the "
                        "table and returns "
                        "none, one or several rows",
                        function=condition.function,
                        condition=condition.text,
                    ),
                    range(call.first, call.last + 1),
                    fix=compose("Draw the key in the client, and look at EXPLAIN"),
                )


# The shortest interval between checkpoints that PostgreSQL allows; InnoDB flushes by a similar cycle.
_SECONDS_MIN = 30


@check("P18")
def duration(results: Sequence[Result], calls: Sequence[Call]) -> Iterator[Mistake]:
    """Looks at the seconds of writing runs, of the outputs or else of the commands.

    Catches throughput whose price is paid after the end: pages that were changed are written later.

    Rule: a run that writes must be longer than what the server does later.
    """
    short = [result for result in results if (result.value("elapsed_s") or _SECONDS_MIN) < _SECONDS_MIN]
    if short and any(call.phase == "run" and _is_writing(call) for call in calls):
        yield Mistake(
            "note",
            compose(
                "runs that write for {seconds:.0f} s end before the server's first checkpoint",
                seconds=short[0].value("elapsed_s"),
            ),
            (entry.figures["elapsed_s"].index for entry in short),
            fix=compose("Measure for several checkpoints"),
        )


_WRITING = ("read_write", "write_only", "oltp_insert", "oltp_delete", "oltp_update", "tpcc")


@check("R02")
def drift(results: Sequence[Result], calls: Sequence[Call], loads: Mapping[int, int]) -> Iterator[Mistake]:
    """Looks for several loads of a writing test after one prepare.

    Catches later loads over other data than the first ones. In a published benchmark most ids did not exist,
    and each run inserted a part of them, so later runs found more rows.

    Rule: a run that writes changes the data of the next one.
    """
    runs = [call for call in calls if call.phase == "run" and _is_writing(call) and not call.is_alternative]
    prepares = [call for call in calls if call.phase == "prepare"]
    of_runs = {call.connections for call in runs} - {None} or set(loads)
    if runs and len(prepares) == 1 and max(len(of_runs), len({result.connections for result in results})) > 1:
        yield Mistake(
            "warn",
            compose(
                "all loads write to the same tables, which are loaded once, so each one begins with the "
                "rows that those before it left"
            ),
            (prepares[0].first, runs[0].first),
            fix=compose("Load or restore the tables before every run, or vary the order"),
        )


def _is_writing(call: Call) -> bool:
    """Whether a call's test changes rows."""
    if call.tool == "pgbench":
        return "select-only" not in call.options and call.test in ("", "tpcb-like", "simple-update")
    if call.options.get("oltp-read-only") == "on":
        return False
    return call.test == "oltp" or any(part in call.test for part in _WRITING)
