"""Reads a workload from a .sql file: statements, and annotations in comments that define their use.

::

    -- @parameter id = uniform(1, rows(item))
    -- @table item rows=1_000_000
    -- @column id = sequence()
    -- @setup
    CREATE TABLE IF NOT EXISTS item (id INT PRIMARY KEY, c CHAR(60));
    -- @transaction look weight=9
    -- @statement rows=1
    SELECT c FROM item WHERE id = :id;

Without any `@transaction` the file is a list of queries: each statement is a transaction, except that the
statements from BEGIN to COMMIT together form one transaction.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.generators import column, parameter
from dbdyno.experiment.sql_text import (
    Dialect,
    StatementText,
    UnreadableSql,
    annotation_lines,
    first_word,
    split_statements,
)

FILE_BYTES_MAX = 16_000_000

# Lists of statements in a workload; the annotation of this name begins one.
SECTIONS = ("setup", "after", "prewarm", "cleanup", "session")
_BEGIN, _END = ("BEGIN", "START"), ("COMMIT", "ROLLBACK", "END")


def read(text: str, name: str, dialect: Dialect) -> tuple[dict[str, Any], list[InputError]]:
    """The keys of a `[[workload]]` in the file, and all errors in it, by line.

    `name` is the file's name in error messages.
    """
    try:
        annotations, pieces = annotation_lines(text, dialect), split_statements(text, dialect)
    except UnreadableSql as error:
        return {}, [InputError(f"{name}:{error.line}", None, str(error), "Close it")]
    reader = _Reader(name, dialect)
    parts: list[tuple[int, str | StatementText]] = [*annotations, *((piece.line, piece) for piece in pieces)]
    for line, part in sorted(parts, key=lambda one: one[0]):
        if isinstance(part, StatementText):
            reader.add_statement(part)
        else:
            reader.add_annotation(line, part)
    inside = [line for line, _ in annotations if any(p.line <= line <= p.last_line for p in pieces)]
    for line in inside:
        reader.add_error(
            line, "an annotation is inside a statement", "End the statement before it with a semicolon"
        )
    return reader.finish()


class _Reader:
    """Processes annotations and statements in the order of the file."""

    def __init__(self, name: str, dialect: Dialect) -> None:
        self._name, self._dialect = name, dialect
        self.errors: list[InputError] = []
        self._document: dict[str, Any] = {}
        # The list to which the next statement is added. None before the first annotation: each statement is a
        # transaction.
        self._current_list: list[Any] | None = None
        self._ungrouped: list[StatementText] = []
        self._transactions: list[dict[str, Any]] = []
        self._table: dict[str, Any] | None = None
        # Settings of the next statement from its annotation.
        self._next_settings: dict[str, Any] = {}
        self._in_transaction = False
        self._handlers: Mapping[str, Callable[[int, str], None]] = {
            "parameter": self._parameter_annotation,
            "table": self._table_annotation,
            "column": self._column_annotation,
            "transaction": self._transaction_annotation,
            "statement": self._statement_annotation,
            "order": partial(self._option_annotation, "order"),
            "statements": partial(self._option_annotation, "statements"),
            **{section: partial(self._section_annotation, section) for section in SECTIONS},
        }

    def add_error(self, line: int, problem: str, fix: str = "") -> None:
        """Record an error on a line of the file."""
        self.errors.append(InputError(f"{self._name}:{line}", None, problem, fix))

    def add_annotation(self, line: int, text: str) -> None:
        """Process a line `-- @text`."""
        kind, _, rest = text.partition(" ")
        handler = self._handlers.get(kind)
        if handler is None:
            self.add_error(line, f"there is no annotation @{kind}", did_you_mean(kind, self._handlers))
        else:
            handler(line, rest.strip())

    def add_statement(self, piece: StatementText) -> None:
        """Process the next statement."""
        if first_word(piece.sql, self._dialect) == "DELIMITER":
            self.add_error(piece.line, "DELIMITER is a command of the mysql client", "Use plain statements")
        if self._current_list is None:
            self._ungrouped.append(piece)
        elif self._in_transaction:
            self._current_list.append({"sql": piece.sql, "line": piece.line, **self._next_settings})
        else:
            self._current_list.append(piece.sql)
        self._next_settings = {}

    def finish(self) -> tuple[dict[str, Any], list[InputError]]:
        """The keys of the workload, and the errors."""
        if self._ungrouped and self._transactions:
            self.add_error(
                self._ungrouped[0].line,
                "this statement is before the first @transaction and in no section",
                "Write -- @setup or -- @transaction NAME before it",
            )
        transactions = self._transactions or list(_ungrouped_transactions(self._ungrouped, self._dialect))
        for transaction in self._transactions:
            if not transaction["statements"]:
                self.add_error(
                    transaction.pop("line"), "this transaction has no statements", "Add a statement"
                )
            transaction.pop("line", None)
        if transactions:
            self._document["transactions"] = transactions
        return self._document, self.errors

    def _parameter_annotation(self, line: int, text: str) -> None:
        self._add_generator("parameters", self._document.setdefault("parameters", {}), line, text)

    def _column_annotation(self, line: int, text: str) -> None:
        if self._table is None:
            self.add_error(line, "@column has no table", "Write -- @table NAME rows=N before it")
        else:
            self._add_generator("columns", self._table["columns"], line, text)

    def _add_generator(self, what: str, generators: dict[str, Any], line: int, text: str) -> None:
        name, equals, generator = (part.strip() for part in text.partition("="))
        if not name or not equals or not generator:
            example = f"Write -- @{what[:-1]} id = uniform(1, 1_000)"
            self.add_error(line, "expected NAME = GENERATOR", example)
            return
        if name in generators:
            self.add_error(line, f"{name} already has a generator", "Remove one of them")
        try:
            # Row counts are known only at the end of the file; any number is valid here.
            rows = _AnyTable()
            column(name, generator, rows) if what == "columns" else parameter(generator, rows)
        except ValueError as error:
            self.add_error(line, f"{name}: {error}")
            return
        generators[name] = generator

    def _table_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("rows",))
        if len(words) != 1 or "rows" not in settings:
            self.add_error(line, "a table needs a name and rows", "Write -- @table item rows=1_000_000")
            return
        self._table = {"rows": settings["rows"], "columns": {}}
        self._document.setdefault("tables", {})[words[0]] = self._table

    def _section_annotation(self, name: str, line: int, text: str) -> None:
        if text:
            self.add_error(
                line, f"@{name} must be alone on its line", "Put the statements on the lines below"
            )
        self._current_list, self._in_transaction = self._document.setdefault(name, []), False

    def _transaction_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("weight", "name"))
        if len(words) > 1:
            self.add_error(line, f"unexpected word {words[1]}", "Write -- @transaction NAME weight=9")
        entry: dict[str, Any] = {**({"name": words[0]} if words else {}), **settings, "statements": []}
        self._transactions.append({**entry, "line": line})
        self._current_list, self._in_transaction = self._transactions[-1]["statements"], True

    def _statement_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("name", "rows", "mode", "draw", "repeat"))
        if words:
            self.add_error(line, f"unexpected word {words[0]}", "Write -- @statement name=look rows=1")
        if "draw" in settings:
            settings["draw"] = str(settings["draw"]).split(",")
        self._next_settings |= settings

    def _option_annotation(self, key: str, _line: int, text: str) -> None:
        self._document[key] = text

    def _parse_words(self, line: int, text: str, known: tuple[str, ...]) -> tuple[list[str], dict[str, Any]]:
        """The words without `=`, and those with `=` as names and values; numbers become numbers."""
        words: list[str] = []
        settings: dict[str, Any] = {}
        try:
            parts = shlex.split(text)
        except ValueError:
            self.add_error(line, "a quotation mark is not closed", "Close it")
            return words, settings
        for part in parts:
            key, equals, value = part.partition("=")
            if not equals:
                words.append(part)
            elif key not in known:
                self.add_error(line, f"there is no setting {key}", did_you_mean(key, known))
            else:
                settings[key] = _number(value) if key in ("rows", "weight", "repeat") else value
        return words, settings


class _AnyTable(dict[str, int]):
    """Row counts of any table, so large that ranges such as rows(t) - 5 stay valid."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> int:
        return 2**40


def _number(text: str) -> Any:
    """The number that a text represents, or the text itself, which the model then rejects."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _ungrouped_transactions(pieces: list[StatementText], dialect: Dialect) -> Iterator[dict[str, Any]]:
    """Each statement as one transaction, except that the statements from BEGIN to COMMIT
    together form one.
    """
    groups: list[list[dict[str, Any]]] = [[]]
    for piece in pieces:
        word = first_word(piece.sql, dialect)
        groups[-1].append({"sql": piece.sql, "line": piece.line})
        if word not in _BEGIN and (len(groups[-1]) == 1 or word in _END):
            groups.append([])
    for number, statements in enumerate(filter(None, groups), start=1):
        yield {"name": f"query{number}", "statements": statements}
