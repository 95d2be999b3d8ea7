"""Splits SQL text into statements, and finds parameters and tables in it.

sqlglot reads the text by the rules of the server's dialect. Like the engine
(`engine/schema/src/placeholders.rs`), this module ignores the content of quotes and comments.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

# SQL dialects, by sqlglot's names.
Dialect = Literal["mysql", "postgres"]


class UnreadableSql(ValueError):  # noqa: N818 — an adjective suffices.
    """A quote or a comment has no end."""

    def __init__(self, line: int) -> None:
        super().__init__("a quoted text or a comment that begins here has no end")
        self.line = line


@cache
def sqlglot() -> Any:
    """The sqlglot library. It is imported only for user-written SQL, since it loads slowly."""
    # It logs statements that it cannot parse; callers handle that case.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    return importlib.import_module("sqlglot")


@dataclass(frozen=True)
class StatementText:
    """One statement of a file."""

    sql: str
    # First and last line in the file, from 1.
    line: int
    last_line: int


def tokenize(sql: str, dialect: Dialect) -> list[Token]:
    """The tokens of a text. Raises UnreadableSql."""
    try:
        return list(sqlglot().tokenize(sql, read=dialect))
    except sqlglot().errors.SqlglotError as error:
        raise UnreadableSql(_unterminated_line(sql, dialect)) from error


def _unterminated_line(sql: str, dialect: Dialect) -> int:
    """The line where the unterminated quote or comment begins: sqlglot can read all lines before it."""
    lines = sql.splitlines(keepends=True)
    for count in range(len(lines) - 1, 0, -1):
        try:
            sqlglot().tokenize("".join(lines[:count]), read=dialect)
        except sqlglot().errors.SqlglotError:
            continue
        return count + 1
    return 1


def is_kind(token: Token, kind: str) -> bool:
    """Whether a token is of that kind, by sqlglot's name of it."""
    return token.token_type.name == kind


def split_statements(sql: str, dialect: Dialect) -> list[StatementText]:
    """Split a text into its statements at semicolons. Raises UnreadableSql."""
    pieces: list[StatementText] = []
    current: list[Token] = []
    for token in [*tokenize(sql, dialect), None]:
        if token is not None and not is_kind(token, "SEMICOLON"):
            current.append(token)
        elif current:
            first, last = current[0], current[-1]
            lines = sql[: first.start].count("\n") + 1, sql[: last.end].count("\n") + 1
            pieces.append(StatementText(sql[first.start : last.end + 1], *lines))
            current = []
    return pieces


def annotation_lines(sql: str, dialect: Dialect) -> list[tuple[int, str]]:
    """Line number and text of every comment line `-- @text`. Raises UnreadableSql."""
    read = tokenize(sql, dialect)
    comments = {comment.strip() for token in read for comment in token.comments}
    quoted: set[int] = set()
    for token in read:
        first = sql[: token.start].count("\n") + 1
        quoted.update(range(first + 1, first + 1 + sql[token.start : token.end].count("\n")))
    lines = []
    for number, line in enumerate(sql.splitlines(), start=1):
        text = line.strip()
        # Skip lines inside quoted text and inside longer comments.
        if text.startswith("-- @") and number not in quoted and text[2:].strip() in comments:
            lines.append((number, text[4:].strip()))
    return lines


def parameter_names(sql: str, dialect: Dialect) -> list[str]:
    """The names after colons, without duplicates, in order. Raises UnreadableSql."""
    return list(dict.fromkeys(name for _, name in _parameters(sql, dialect)))


def replace_parameters(sql: str, replacements: Mapping[str, str], dialect: Dialect) -> str:
    """The statement with other text in place of `:name`. Raises UnreadableSql."""
    parts, end = [], 0
    for start, name in _parameters(sql, dialect):
        if name in replacements:
            parts += [sql[end:start], replacements[name]]
            end = start + 1 + len(name)
    return "".join([*parts, sql[end:]])


def _parameters(sql: str, dialect: Dialect) -> Iterator[tuple[int, str]]:
    """Position of the colon, and name, of each parameter, in order."""
    for token, following in pairwise(tokenize(sql, dialect)):
        if not is_kind(token, "COLON") or following.start != token.end + 1:
            continue
        name = sql[following.start : following.end + 1]
        before = sql[token.start - 1] if token.start else " "
        if name.isidentifier() and name.isascii() and not (before.isalnum() or before == "_"):
            yield token.start, name


def count_placeholders(sql: str, dialect: Dialect) -> int:
    """The number of `?` outside quotes and comments. Raises UnreadableSql."""
    return sum(is_kind(token, "PLACEHOLDER") for token in tokenize(sql, dialect))


def first_word(sql: str, dialect: Dialect) -> str:
    """The first word in capitals; empty for an empty text."""
    words = (token.text.upper() for token in tokenize(sql, dialect) if token.text != "(")
    return next(words, "")


def parse_statement(sql: str, dialect: Dialect) -> Any:
    """The statement as sqlglot's tree; None if sqlglot cannot parse it, since servers accept more syntax
    and deeper nesting.
    """
    try:
        tree = sqlglot().parse_one(sql, read=dialect)
    except (sqlglot().errors.SqlglotError, RecursionError):
        # The parser calls itself for each level of nesting.
        return None
    return None if isinstance(tree, sqlglot().exp.Command) else tree


def table_names(statements: Iterable[str], dialect: Dialect) -> list[str]:
    """The tables that the statements name, without schema and duplicates, in order."""
    exp = sqlglot().exp
    names: dict[str, None] = {}
    for sql in statements:
        tree = parse_statement(sql, dialect)
        if tree is not None:
            # WITH defines no tables.
            defined = {cte.alias for cte in tree.find_all(exp.CTE)}
            names |= {table.name: None for table in tree.find_all(exp.Table) if table.name not in defined}
    return list(names)
