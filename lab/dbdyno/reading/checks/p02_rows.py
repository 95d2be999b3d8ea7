"""P02: the rows that the document's statements make must be those that it counts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from dbdyno.experiment.sql_text import parse_statement, sqlglot
from dbdyno.finding import Finding
from dbdyno.reading.checks.check import DocumentCheck, finding
from dbdyno.reading.limits import NUMBER_MAX, SQL_MAX, SQL_TOTAL_MAX
from dbdyno.reading.patterns import linear, whole
from dbdyno.reading.reading import Reading
from dbdyno.text import compose

_INSERT = linear(r"(?<!\s)\s*+INSERT\s++INTO\s++", re.IGNORECASE)
_CREATE = linear(r"(?<!\s)\s*+CREATE\s++TABLE\s", re.IGNORECASE)
_COUNTED = linear(r"count\(\*\)\s*+(?::|=)\s*+(\d++)", re.IGNORECASE)
_COUNT_HEADING = linear(r"(?<!\s)\s*+\|?\s*+count(?:\(\*\))?\s*+\|?\s*+$", re.IGNORECASE)
_COUNT_CELL = linear(r"(?<!\s)\s*+\|?\s*+(?<!\d)(\d{1,15}+)\s*+\|?\s*+$")
_STATEMENT_LINES = 60
_BOX_LINES = 3


@dataclass
class _Table:
    rows: int
    indexes: list[int]


def find(reading: Reading) -> Iterator[Finding]:
    """Follows the INSERT … SELECT statements of the document and compares the rows with its COUNT(*).

    Catches data that the shown statements did not make. A published benchmark shows a script that makes
    163,840,000 rows, and a count of 10,240,000.
    """
    tables: dict[str, _Table] = {}
    index = parsed = 0
    texts = reading.document.texts
    while index < len(texts):
        if _INSERT.match(texts[index]):
            statement, last = _statement(texts, index)
            parsed += len(statement)
            if len(statement) > SQL_MAX or parsed > SQL_TOTAL_MAX:
                _leave_out(reading, statement, index)
                tables.clear()
            else:
                _insert(statement, index, tables)
            index = last
        elif _CREATE.match(texts[index]):
            tables.clear()
        elif (rows := _count(texts, index)) is not None and len(tables) == 1:
            ((name, table),) = tables.items()
            if rows != table.rows:
                yield finding(
                    reading,
                    "P02",
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


def _leave_out(reading: Reading, statement: str, index: int) -> None:
    text = compose(
        "the statement has {length:,} characters; at most {limit:,} of one and {total:,} of all statements "
        "are parsed, so the rows are not compared",
        length=len(statement),
        limit=SQL_MAX,
        total=SQL_TOTAL_MAX,
    )
    reading.document.left_out.add("sql", reading.document.numbers[index], text)


def _statement(texts: Any, first: int) -> tuple[str, int]:
    lines: list[str] = []
    for index in range(first, min(len(texts), first + _STATEMENT_LINES)):
        lines.append(texts[index])
        if texts[index].rstrip().endswith(";"):
            return "\n".join(lines).rstrip("; \n"), index
    return "", first


def _insert(statement: str, index: int, tables: dict[str, _Table]) -> None:
    """Adds the rows of an INSERT; a table whose rows are not known is forgotten."""
    tree = parse_statement(statement, "mysql") if statement else None
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
    for one in sources:
        rows = tables[one.name].rows if isinstance(one, exp.Table) and one.name in tables else None
        rows = _rows(one, tables) if not isinstance(one, exp.Table) else rows
        if rows is None:
            return None
        product *= rows
    return product


def _count(texts: Any, index: int) -> int | None:
    """The number of rows that a line counts."""
    if match := _COUNTED.search(texts[index]):
        return whole(match[1])
    if _COUNT_HEADING.match(texts[index]):
        for text in texts[index + 1 : index + 1 + _BOX_LINES]:
            if match := _COUNT_CELL.match(text):
                return whole(match[1])
    return None


CHECK = DocumentCheck("P02", find)
