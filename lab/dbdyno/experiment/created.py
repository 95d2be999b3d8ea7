"""What the statements of a setup create. They are read as tokens, because servers accept more than sqlglot
parses, such as partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from dbdyno.experiment.sql_text import Dialect, is_kind, tokenize

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

TABLE = "TABLE"
# The kinds of objects that dbdyno drops. A routine's name may belong to several of PostgreSQL.
_DROPPED = {
    "mysql": ("VIEW", "FUNCTION", "PROCEDURE", TABLE, "SEQUENCE"),
    "postgres": ("VIEW", "MATERIALIZED VIEW", TABLE, "SEQUENCE"),
}
_KINDS = (TABLE, "VIEW", "SEQUENCE", "FUNCTION", "PROCEDURE")
_TEMPORARY = ("TEMP", "TEMPORARY")
# A word after CREATE that begins another kind of object or the body of this one.
_OTHERS = ("INDEX", "TRIGGER", "EVENT", "DATABASE", "SCHEMA", "USER", "ROLE", "TYPE", "RULE", "ON", "AS", "(")


@dataclass(frozen=True)
class Created:
    """An object that a statement creates."""

    kind: str
    # As the server stores it.
    name: str
    # The database (MySQL, MariaDB) or schema (PostgreSQL) in the statement; empty without one.
    place: str
    # With its place, as in the statement.
    written: str
    # Whether the statement fails if the object exists.
    must_be_new: bool


def created_objects(statements: Iterable[str], dialect: Dialect) -> list[Created]:
    """What the statements create, in order, except temporary tables. Raises UnreadableSql."""
    objects = (_created(sql, tokenize(sql, dialect), dialect) for sql in statements)
    return [one for one in objects if one is not None]


def tables_without_key(statements: Iterable[str], dialect: Dialect) -> list[str]:
    """The tables that statements create without a primary key. Those that are copies of another table (LIKE)
    have its key. Raises UnreadableSql.
    """
    names = []
    for sql in statements:
        tokens = tokenize(sql, dialect)
        created = _created(sql, tokens, dialect)
        if created is not None and created.kind == TABLE and not _has_key(tokens):
            names.append(created.name)
    return names


def _has_key(tokens: Sequence[Token]) -> bool:
    """Whether a CREATE TABLE names a primary key, or copies a table: `LIKE t`, `(LIKE t)`."""
    depth = 0
    for before, token in pairwise(tokens):
        depth += is_kind(before, "L_PAREN") - is_kind(before, "R_PAREN")
        if is_kind(token, "PRIMARY_KEY"):
            return True
        if is_kind(token, "LIKE") and (depth == 0 or is_kind(before, "L_PAREN")):
            return True
    return False


def drop_statements(objects: Sequence[Created], dialect: Dialect) -> list[str]:
    """Statements that drop these objects, those that use others first.

    An object other than a table is dropped only if its statement proves that it did not exist before; whether
    a table existed is checked before the setup.
    """
    return [
        f"DROP {kind} IF EXISTS {one.written}"
        for kind in _DROPPED[dialect]
        for one in reversed(objects)
        if one.kind == kind and (kind == TABLE or one.must_be_new)
    ]


def changes_place(sql: str, dialect: Dialect) -> bool:
    """Whether later statements of the connection have another current database or schema."""
    words = [token.text.upper() for token in tokenize(sql, dialect)]
    if dialect == "mysql":
        return words[:1] == ["USE"]
    return words[:1] == ["SET"] and bool({"SEARCH_PATH", "SCHEMA"} & set(words[1:3]))


def _created(sql: str, tokens: Sequence[Token], dialect: Dialect) -> Created | None:
    words = [token.text.upper() for token in tokens]
    if words[:1] != ["CREATE"]:
        return _selected_into(sql, tokens, words) if dialect == "postgres" else None
    ends = (*_KINDS, *_OTHERS, *_TEMPORARY)
    position = next((place for place, word in enumerate(words) if word in ends), 0)
    if words[position] not in _KINDS:
        return None
    kind = "MATERIALIZED VIEW" if words[position - 1] == "MATERIALIZED" else words[position]
    must_be_new = "REPLACE" not in words[:position]
    position += 1
    if words[position : position + 3] == ["IF", "NOT", "EXISTS"]:
        must_be_new, position = False, position + 3
    return _named(sql, tokens[position:], kind, dialect, must_be_new=must_be_new)


def _selected_into(sql: str, tokens: Sequence[Token], words: Sequence[str]) -> Created | None:
    """The table of PostgreSQL's SELECT … INTO."""
    depth = 0
    is_select = words[:1] in (["SELECT"], ["WITH"]) and "INSERT" not in words
    for position, word in enumerate(words if is_select else ()):
        depth += (word == "(") - (word == ")")
        if word == "INTO" and not depth:
            rest = position + 1
            while words[rest : rest + 1] and words[rest] in (*_TEMPORARY, "UNLOGGED", TABLE):
                if words[rest] in _TEMPORARY:
                    return None
                rest += 1
            return _named(sql, tokens[rest:], TABLE, "postgres", must_be_new=True)
    return None


def _named(
    sql: str, tokens: Sequence[Token], kind: str, dialect: Dialect, *, must_be_new: bool
) -> Created | None:
    """The object whose name, and place, these tokens begin with."""
    if not tokens:
        return None
    names = [tokens[0]]
    position = 1
    while position + 1 < len(tokens) and is_kind(tokens[position], "DOT"):
        names.append(tokens[position + 1])
        position += 2
    folds = dialect == "postgres"
    texts = [one.text.lower() if folds and not is_kind(one, "IDENTIFIER") else one.text for one in names]
    written = sql[names[0].start : names[-1].end + 1]
    return Created(kind, texts[-1], texts[-2] if len(texts) > 1 else "", written, must_be_new)
