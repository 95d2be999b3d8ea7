"""Reads a workload from a .sql file: statements, and annotations in comments that define their use.

::

    -- @description Reads rows by their primary key.
    -- @option rows = 1_000_000 Rows of the table
    -- @parameter id = uniform(1, rows(item))
    -- @table item rows=rows
    -- @column id = sequence()
    -- @setup
    CREATE TABLE IF NOT EXISTS item (id INT PRIMARY KEY, c CHAR(60));
    -- @transaction look weight=9
    -- @statement rows=1
    SELECT c FROM item WHERE id = :id;

Without any `@transaction` the file is a list of queries: each statement is a transaction, except that the
statements from BEGIN to COMMIT together form one transaction.

`-- @background writes rate=1_000 connections=4` begins a background load, to which the parameters and
transactions below it belong.

An option is a number with a default, which the experiment file may set. Its name has this number in arguments
of generators and in the numbers of annotations, and in braces in statements: `LIMIT {page}`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dbdyno.experiment.dialect import DIALECTS, Dialect
from dbdyno.experiment.errors import InputError, did_you_mean
from dbdyno.experiment.generators import column, parameter, parse_number, replace_names
from dbdyno.experiment.sql_text import (
    StatementText,
    UnreadableSql,
    annotation_lines,
    first_word,
    split_statements,
)

FILE_BYTES_MAX = 16_000_000

# Lists of statements in a workload; the annotation of this name begins one.
SECTIONS = ("setup", "after", "prewarm", "cleanup", "session")
_OPTION = re.compile(r"(?P<name>[a-z][a-z0-9_]*)\s*=\s*(?P<default>[0-9][0-9_.]*)(?:\s+(?P<description>.+))?")
_IN_BRACES = re.compile(r"\{([a-z][a-z0-9_ +*-]*)\}")
# Settings whose values are numbers; one of a loop may be the name of a parameter.
_NUMBERS = ("rows", "weight", "repeat", "times", "rate", "connections")
_BEGIN, _END = ("BEGIN", "START"), ("COMMIT", "ROLLBACK", "END")


@dataclass(frozen=True)
class Option:
    """A number that an experiment file may set."""

    default: int | float
    description: str

    def problem(self, value: Any) -> str:
        """What is wrong with a value; empty if it is valid."""
        if isinstance(self.default, int):
            is_valid = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            return "" if is_valid else "this must be a whole number, at least 1"
        is_valid = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        return "" if is_valid else "this must be a number above 0"


@dataclass
class SqlFile:
    """The content of a file."""

    # The keys of its `[[workload]]`.
    keys: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Option] = field(default_factory=dict)
    # All errors in it, by line, and those in the values of its options.
    errors: list[InputError] = field(default_factory=list)


def read(
    text: str,
    name: str,
    dialect: Dialect,
    values: Mapping[str, Any] | None = None,
    include: Callable[[str], str] | None = None,
) -> SqlFile:
    """Read a file whose name in error messages is `name`.

    `values` are those of its options; others are ignored. `include` returns the text of a file that it
    includes, or raises OSError.
    """
    reader = _Reader(name, dialect, values or {}, include)
    reader.read(text)
    return reader.finish()


class _Reader:
    """Processes annotations and statements in the order of the file."""

    def __init__(
        self,
        name: str,
        dialect: Dialect,
        values: Mapping[str, Any],
        include: Callable[[str], str] | None,
    ) -> None:
        self._name, self._dialect, self._include = name, dialect, include
        self._file = SqlFile()
        self._document = self._file.keys
        self._given = values
        # The values of the options that were declared so far.
        self._values: dict[str, int | float] = {}
        self._is_included = False
        # The list to which the next statement is added. None before the first annotation: each statement is a
        # transaction.
        self._current_list: list[Any] | None = None
        self._ungrouped: list[StatementText] = []
        # The keys to which parameters and transactions are added: those of the file, or of a background load.
        self._owner = self._document
        self._transactions: list[dict[str, Any]] = []
        self._table: dict[str, Any] | None = None
        # Settings of the next statement from its annotation.
        self._next_settings: dict[str, Any] = {}
        # Whether the server is one of those for which the next statement is.
        self._is_wanted = True
        self._in_transaction = False
        self._handlers: Mapping[str, Callable[[int, str], None]] = {
            "parameter": self._parameter_annotation,
            "table": self._table_annotation,
            "column": self._column_annotation,
            "background": self._background_annotation,
            "transaction": self._transaction_annotation,
            "loop": self._loop_annotation,
            "end": self._end_annotation,
            "consistency": self._consistency_annotation,
            "pauses": self._pauses_annotation,
            "statement": self._statement_annotation,
            "description": partial(self._key_annotation, "description"),
            "option": self._option_annotation,
            "reconnect_every": self._reconnect_annotation,
            "include": self._include_annotation,
            "only": self._only_annotation,
            "main_statement": partial(self._key_annotation, "main_statement"),
            "order": partial(self._key_annotation, "order"),
            "statements": partial(self._key_annotation, "statements"),
            **{section: partial(self._section_annotation, section) for section in SECTIONS},
        }

    def read(self, text: str) -> None:
        """Process the annotations and statements of a text."""
        try:
            annotations, pieces = annotation_lines(text, self._dialect), split_statements(text, self._dialect)
        except UnreadableSql as error:
            self._add_error(error.line, str(error), "Close it")
            return
        parts: list[tuple[int, str | StatementText]] = [
            *annotations,
            *((piece.line, piece) for piece in pieces),
        ]
        for line, part in sorted(parts, key=lambda entry: entry[0]):
            if isinstance(part, StatementText):
                self._add_statement(part)
            else:
                self._add_annotation(line, part)
        for line in (line for line, _ in annotations if any(p.line <= line <= p.last_line for p in pieces)):
            self._add_error(
                line, "an annotation is inside a statement", "End the statement before it with a semicolon"
            )

    def _add_error(self, line: int, problem: str, fix: str = "") -> None:
        """Record an error on a line of the file."""
        self._file.errors.append(InputError(f"{self._name}:{line}", None, problem, fix))

    def _add_annotation(self, line: int, text: str) -> None:
        """Process a line `-- @text`."""
        kind, _, rest = text.partition(" ")
        handler = self._handlers.get(kind)
        if handler is None:
            self._add_error(line, f"there is no annotation @{kind}", did_you_mean(kind, self._handlers))
        else:
            handler(line, rest.strip())

    def _add_statement(self, piece: StatementText) -> None:
        """Process the next statement."""
        if first_word(piece.sql, self._dialect) == "DELIMITER":
            self._add_error(piece.line, "DELIMITER is a command of the mysql client", "Use plain statements")
        settings, is_wanted = self._next_settings, self._is_wanted
        self._next_settings, self._is_wanted = {}, True
        if not is_wanted:
            return
        piece = self._without_options(piece)
        # The lines of another file would be those of this one in messages.
        line = {"line": piece.line} if self._owner is self._document and not self._is_included else {}
        if self._current_list is None:
            self._ungrouped.append(piece)
        elif self._in_transaction:
            self._current_list.append({"sql": piece.sql, **line, **settings})
        else:
            self._current_list.append(piece.sql)

    def _without_options(self, piece: StatementText) -> StatementText:
        """The statement with the numbers of options that it has in braces."""

        def number(match: re.Match[str]) -> str:
            value = parse_number(match[1], self._values)
            return match[0] if value is None else str(value)

        sql = _IN_BRACES.sub(number, piece.sql) if self._values else piece.sql
        return StatementText(sql, piece.line, piece.last_line)

    def finish(self) -> SqlFile:
        """The content of all texts."""
        if self._ungrouped and self._transactions:
            self._add_error(
                self._ungrouped[0].line,
                "this statement is before the first @transaction and in no section",
                "Write -- @setup or -- @transaction NAME before it",
            )
        self._end_transactions()
        if self._ungrouped and "transactions" not in self._document:
            self._document["transactions"] = list(_ungrouped_transactions(self._ungrouped, self._dialect))
        return self._file

    def _end_transactions(self) -> None:
        """Add the transactions to their owner."""
        for transaction in self._transactions:
            if not transaction["statements"]:
                self._add_error(
                    transaction.pop("line"), "this transaction has no statements", "Add a statement"
                )
            line = transaction.pop("line", 0)
            if any("last" not in entry for entry in transaction.get("loops", ())):
                self._add_error(
                    line, "a loop of this transaction has no end", "Write -- @end after its last statement"
                )
                del transaction["loops"]
        if self._transactions:
            self._owner["transactions"] = self._transactions
        self._transactions = []

    def _background_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("rate", "connections"))
        if len(words) != 1 or "connections" not in settings:
            fix = "Write -- @background writes rate=1_000 connections=4"
            self._add_error(line, "a background load needs a name and connections", fix)
        self._end_transactions()
        self._owner = {"label": words[0] if words else "background", **settings}
        self._document.setdefault("background", []).append(self._owner)

    def _parameter_annotation(self, line: int, text: str) -> None:
        self._add_generator("parameters", self._owner.setdefault("parameters", {}), line, text)

    def _column_annotation(self, line: int, text: str) -> None:
        if self._table is None:
            self._add_error(line, "@column has no table", "Write -- @table NAME rows=N before it")
        else:
            self._add_generator("columns", self._table["columns"], line, text)

    def _add_generator(self, what: str, generators: dict[str, Any], line: int, text: str) -> None:
        name, equals, generator = (part.strip() for part in text.partition("="))
        if not name or not equals or not generator:
            example = f"Write -- @{what[:-1]} id = uniform(1, 1_000)"
            self._add_error(line, "expected NAME = GENERATOR", example)
            return
        if name in generators:
            self._add_error(line, f"{name} already has a generator", "Remove one of them")
        generator = replace_names(generator, self._values)
        try:
            # Row counts are known only at the end of the file; any number is valid here.
            rows = _AnyTable()
            column(name, generator, rows) if what == "columns" else parameter(generator, rows)
        except ValueError as error:
            self._add_error(line, f"{name}: {error}")
            return
        generators[name] = generator

    def _table_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("rows", "parent"))
        if len(words) != 1 or "rows" not in settings:
            self._add_error(line, "a table needs a name and rows", "Write -- @table item rows=1_000_000")
            return
        self._table = {**settings, "columns": {}}
        self._document.setdefault("tables", {})[words[0]] = self._table

    def _section_annotation(self, name: str, line: int, text: str) -> None:
        if text:
            self._add_error(
                line, f"@{name} must be alone on its line", "Put the statements on the lines below"
            )
        self._current_list, self._in_transaction = self._document.setdefault(name, []), False

    def _transaction_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("weight", "name", "keying", "think"))
        if len(words) > 1:
            self._add_error(line, f"unexpected word {words[1]}", "Write -- @transaction NAME weight=9")
        entry: dict[str, Any] = {**({"name": words[0]} if words else {}), **settings, "statements": []}
        self._transactions.append({**entry, "line": line})
        self._current_list, self._in_transaction = self._transactions[-1]["statements"], True

    def _loop_annotation(self, line: int, text: str) -> None:
        words, settings = self._parse_words(line, text, ("times",))
        if words or "times" not in settings or not (self._in_transaction and self._transactions):
            fix = "Write -- @loop times=lines after -- @transaction, and -- @end"
            self._add_error(line, "a loop is a part of a transaction and needs times", fix)
            return
        loops = self._transactions[-1].setdefault("loops", [])
        loops.append({"first": len(self._transactions[-1]["statements"]) + 1, **settings})

    def _end_annotation(self, line: int, _text: str) -> None:
        loops = self._transactions[-1].get("loops", []) if self._transactions else []
        if not loops or "last" in loops[-1] or loops[-1]["first"] > len(self._transactions[-1]["statements"]):
            self._add_error(line, "@end follows no statement of a loop", "Write -- @loop times=N before it")
            return
        loops[-1]["last"] = len(self._transactions[-1]["statements"])

    def _consistency_annotation(self, line: int, text: str) -> None:
        if not text:
            self._add_error(line, "a condition needs a name", "Write -- @consistency balance")
        self._current_list, self._in_transaction = self._document.setdefault("consistency", []), True
        self._next_settings = {"name": text}

    def _pauses_annotation(self, line: int, text: str) -> None:
        if text not in ("true", "false"):
            self._add_error(line, "pauses are true or false", "Write -- @pauses false")
        self._document["pauses"] = text == "true"

    def _statement_annotation(self, line: int, text: str) -> None:
        allowed_settings = ("name", "rows", "rows_parameter", "mode", "draw", "repeat", "access")
        words, settings = self._parse_words(line, text, allowed_settings)
        if words:
            self._add_error(line, f"unexpected word {words[0]}", "Write -- @statement name=look rows=1")
        if "draw" in settings:
            settings["draw"] = str(settings["draw"]).split(",")
        self._next_settings |= settings

    def _key_annotation(self, key: str, _line: int, text: str) -> None:
        self._document[key] = text

    def _reconnect_annotation(self, _line: int, text: str) -> None:
        self._document["reconnect_every"] = self._number(text)

    def _option_annotation(self, line: int, text: str) -> None:
        match = _OPTION.fullmatch(text)
        default = parse_number(match["default"], {}) if match else None
        if match is None or default is None:
            fix = "Write -- @option rows = 1_000_000 Rows of the table"
            self._add_error(line, "expected NAME = NUMBER DESCRIPTION", fix)
            return
        option = self._file.options[match["name"]] = Option(default, match["description"] or "")
        value = self._given.get(match["name"], default)
        if problem := option.problem(value):
            self._file.errors.append(InputError(match["name"], value, problem))
            value = default
        self._values[match["name"]] = value

    def _include_annotation(self, line: int, text: str) -> None:
        if self._include is None or self._is_included:
            self._add_error(line, "an included file cannot include another one", "Include both in the first")
            return
        try:
            content = self._include(text)
        except (OSError, UnicodeDecodeError) as error:
            self._add_error(line, f"{text} cannot be read: {error}", "Give a path relative to this file")
            return
        name, self._name, self._is_included = self._name, text, True
        self.read(content)
        self._name, self._is_included, self._current_list, self._table = name, False, None, None

    def _only_annotation(self, line: int, text: str) -> None:
        if text not in DIALECTS:
            self._add_error(line, f"there is no dialect {text}", did_you_mean(text, DIALECTS))
        self._is_wanted = DIALECTS.get(text) is self._dialect

    def _parse_words(
        self, line: int, text: str, allowed: tuple[str, ...]
    ) -> tuple[list[str], dict[str, Any]]:
        """The words without `=`, and those with `=` as names and values; numbers become numbers."""
        words: list[str] = []
        settings: dict[str, Any] = {}
        try:
            parts = shlex.split(text)
        except ValueError:
            self._add_error(line, "a quotation mark is not closed", "Close it")
            return words, settings
        for part in parts:
            key, equals, value = part.partition("=")
            if not equals:
                words.append(part)
            elif key not in allowed:
                self._add_error(line, f"there is no setting {key}", did_you_mean(key, allowed))
            else:
                settings[key] = self._number(value) if key in _NUMBERS else value
        return words, settings

    def _number(self, text: str) -> Any:
        """The number that a text represents, or the text itself, which the model then rejects."""
        number = parse_number(text, self._values)
        return text if number is None else number


class _AnyTable(dict[str, int]):
    """Row counts of any table, so large that ranges such as rows(t) - 5 stay valid."""

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> int:
        return 2**40


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
