"""Splits SQL text into statements, and finds in it parameters, tables, and what statements create.

sqlglot reads the text by the rules of the server's dialect. Like the engine
(`engine/schema/src/placeholders.rs`), this module ignores the content of quotes and comments. What statements
create is read as tokens, because servers accept more than sqlglot parses, such as partitions.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dbdyno.experiment.dialect import MYSQL, POSTGRESQL, Dialect

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

TABLE = "TABLE"
_KINDS = (TABLE, "VIEW", "SEQUENCE", "FUNCTION", "PROCEDURE")
_TEMPORARY = ("TEMP", "TEMPORARY")
# A word after CREATE that begins another kind of object or the body of this one.
_OTHERS = ("INDEX", "TRIGGER", "EVENT", "DATABASE", "SCHEMA", "USER", "ROLE", "TYPE", "RULE", "ON", "AS", "(")


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
        return list(sqlglot().tokenize(sql, read=dialect.sqlglot))
    except sqlglot().errors.SqlglotError as error:
        raise UnreadableSql(_unterminated_line(sql, dialect)) from error


def _unterminated_line(sql: str, dialect: Dialect) -> int:
    """The line where the unterminated quote or comment begins: sqlglot can read all lines before it."""
    lines = sql.splitlines(keepends=True)
    for count in range(len(lines) - 1, 0, -1):
        try:
            sqlglot().tokenize("".join(lines[:count]), read=dialect.sqlglot)
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
        tree = sqlglot().parse_one(sql, read=dialect.sqlglot)
    except (sqlglot().errors.SqlglotError, RecursionError):
        # The parser calls itself for each level of nesting.
        return None
    return None if isinstance(tree, sqlglot().exp.Command) else tree


def table_names(statements: Iterable[str], dialect: Dialect) -> list[str]:
    """The tables that the statements name, as the server stores the names, without schema and duplicates, in
    order.
    """
    exp = sqlglot().exp
    names: dict[str, None] = {}
    for sql in statements:
        tree = parse_statement(sql, dialect)
        if tree is not None:
            # WITH defines no tables.
            defined = {cte.alias for cte in tree.find_all(exp.CTE)}
            for table in tree.find_all(exp.Table):
                # Functions stand where tables do, too.
                if isinstance(table.this, exp.Identifier) and table.name not in defined:
                    names[table.name if table.this.quoted else dialect.fold(table.name)] = None
    return list(names)


# First words of statements that write nothing, if no word of `_WRITING` follows.
_READING = ("SELECT", "WITH", "TABLE", "VALUES", "SHOW", "EXPLAIN", "DESCRIBE", "DESC")
_HARMLESS = (
    "BEGIN", "START", "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT", "RELEASE", "SET", "USE", "ANALYZE",
)  # fmt: skip
_WRITING = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "INTO"})
# MySQL's functions of these names, and the locks of a SELECT.
_FUNCTIONS, _LOCKS = ("INSERT", "REPLACE"), ("FOR", "KEY")


def written_tables(sql: str, dialect: Dialect) -> list[str] | None:
    """The tables that a statement writes to, as written; [] if it may write to tables that its text does not
    tell, as CALL does. None if it writes to none; functions of the user in a query may write all the same.
    Raises UnreadableSql.
    """
    tokens = tokenize(sql, dialect)
    words = ["'" if is_kind(t, "STRING") or is_kind(t, "IDENTIFIER") else t.text.upper() for t in tokens]
    first = next((word for word in words if word != "("), "")
    is_query = first in _READING
    if not first or first in _HARMLESS or (is_query and not _has_writing_word(words)):
        return None
    if first == "REPLACE":
        # sqlglot does not parse it.
        return written_tables("INSERT" + sql[tokens[0].end + 1 :], dialect)
    tree = parse_statement(sql, dialect)
    if tree is None:
        # As LOAD DATA.
        place = next((place for place, word in enumerate(words) if word in ("INTO", TABLE)), None)
        if place is None:
            return []
        place += 2 if words[place + 1 : place + 2] == [TABLE] else 1
        named = _named(sql, tokens[place:], TABLE, dialect, must_be_new=False)
        return [] if named is None else [named.written]
    exp = sqlglot().exp
    written: dict[str, None] = {}
    kinds = (exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Drop, exp.Alter, exp.Into)
    for statement in tree.find_all(*kinds, exp.TruncateTable):
        # A DELETE from several tables names those that change apart.
        targets = statement.args.get("tables") or [statement.this]
        if isinstance(statement, exp.TruncateTable):
            targets = statement.expressions
        tables = [target.find(exp.Table) for target in targets if target is not None]
        written |= {".".join(filter(None, (table.db, table.name))): None for table in tables if table}
    return None if is_query and not written else list(written)


def _has_writing_word(words: Sequence[str]) -> bool:
    for before, word, after in zip(["", *words], words, [*words[1:], ""], strict=False):
        is_function = word in _FUNCTIONS and after == "("
        is_lock = word == "UPDATE" and before in _LOCKS
        is_variable = word == "INTO" and after.startswith("@")
        if word in _WRITING and not is_function and not is_lock and not is_variable:
            return True
    return False


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
    return [entry for entry in objects if entry is not None]


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


@dataclass(frozen=True)
class CreatedIndex:
    """An index that a statement creates."""

    name: str
    # Without its schema, as the server stores it.
    table: str
    # The statement that drops it, and a query that returns rows if it exists.
    drop: str
    find: str


def created_index(sql: str, dialect: Dialect) -> CreatedIndex | None:
    """The index of CREATE INDEX, or of ALTER TABLE with one ADD INDEX and nothing else; None for other
    statements, and if the index may have existed before, or has no name. Raises UnreadableSql.
    """
    tokens = tokenize(sql, dialect)
    words = [token.text.upper() for token in tokens]
    if "EXISTS" in words or not words:
        return None
    if words[0] == "CREATE" and "INDEX" in words[:3] and "ON" in words:
        at = words.index("INDEX") + (2 if "CONCURRENTLY" in words else 1)
        on = words.index("ON") + (2 if "ONLY" in words else 1)
        if at >= words.index("ON"):
            return None
        index, table = tokens[at], tokens[on:]
    elif words[:2] == ["ALTER", TABLE] and dialect is MYSQL and _is_single_addition(words):
        key = next(place for place, word in enumerate(words) if word in ("INDEX", "KEY"))
        index, table = tokens[key + 1], tokens[2:]
    else:
        return None
    named = _named(sql, table, TABLE, dialect, must_be_new=False)
    if named is None or index.text == "(":
        return None
    written = sql[index.start : index.end + 1]
    name = index.text if is_kind(index, "IDENTIFIER") else dialect.fold(index.text)
    literal = dialect.literal(name)
    if dialect is MYSQL:
        drop = f"DROP INDEX {written} ON {named.written}"
        find = f"SHOW INDEX FROM {named.written} WHERE Key_name = {literal}"
    else:
        # An index is in the schema of its table.
        schema = named.written.rpartition(".")[0]
        drop = f"DROP INDEX {schema}.{written}" if schema else f"DROP INDEX {written}"
        where = dialect.literal(named.place) if schema else "current_schema()"
        find = f"SELECT 1 FROM pg_indexes WHERE indexname = {literal} AND schemaname = {where}"
    return CreatedIndex(name, named.name, drop, find)


def _is_single_addition(words: Sequence[str]) -> bool:
    """Whether ALTER TABLE does nothing but ADD [UNIQUE] INDEX name (columns)."""
    depth, commas = 0, 0
    for word in words:
        depth += (word == "(") - (word == ")")
        commas += word == "," and depth == 0
    is_index = any(
        words[place + 1 : place + 2] in (["INDEX"], ["KEY"])
        for place, word in enumerate(words)
        if word in ("ADD", "UNIQUE")
    )
    return words.count("ADD") == 1 and not commas and is_index


def drop_statements(objects: Sequence[Created], dialect: Dialect) -> list[str]:
    """Statements that drop these objects, those that use others first.

    An object other than a table is dropped only if its statement proves that it did not exist before; whether
    a table existed is checked before the setup.
    """
    return [
        f"DROP {kind} IF EXISTS {entry.written}"
        for kind in dialect.dropped_kinds
        for entry in reversed(objects)
        if entry.kind == kind and (kind == TABLE or entry.must_be_new)
    ]


def changes_place(sql: str, dialect: Dialect) -> bool:
    """Whether later statements of the connection have another current database or schema."""
    words = [token.text.upper() for token in tokenize(sql, dialect)]
    if dialect is MYSQL:
        return words[:1] == ["USE"]
    return words[:1] == ["SET"] and bool({"SEARCH_PATH", "SCHEMA"} & set(words[1:3]))


def _created(sql: str, tokens: Sequence[Token], dialect: Dialect) -> Created | None:
    words = [token.text.upper() for token in tokens]
    if words[:1] != ["CREATE"]:
        return _selected_into(sql, tokens, words) if dialect is POSTGRESQL else None
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
            return _named(sql, tokens[rest:], TABLE, POSTGRESQL, must_be_new=True)
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
    texts = [name.text if is_kind(name, "IDENTIFIER") else dialect.fold(name.text) for name in names]
    written = sql[names[0].start : names[-1].end + 1]
    return Created(kind, texts[-1], texts[-2] if len(texts) > 1 else "", written, must_be_new)
