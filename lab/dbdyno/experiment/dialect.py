"""SQL that depends on a server's protocol: one class for MySQL's and one for PostgreSQL's.

All products that speak a protocol share its dialect.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from dbdyno.experiment.quantities import Setting, as_text, number

IsolationLevel = Literal["read uncommitted", "read committed", "repeatable read", "serializable"]


class Dialect(ABC):
    """The SQL of one protocol."""

    # The protocol's name in plans and URLs, and sqlglot's name of the dialect.
    protocol: ClassVar[str]
    sqlglot: ClassVar[str]
    # Whether a database has schemas, and a connection sees the tables of one database only.
    has_schemas: ClassVar[bool] = False
    # Quotes names.
    quote_character: ClassVar[str]
    # Gives a table a comment; {table} and {comment} are written as in SQL.
    set_comment: ClassVar[str]
    # The beginning of the statement that updates the statistics of a table.
    analyze: ClassVar[str]
    # Follows SET SESSION in the statement that sets the isolation level.
    characteristics: ClassVar[str] = ""
    # The kinds of objects that dbdyno drops, those that use others first.
    dropped_kinds: ClassVar[Sequence[str]]
    # Statements that commit an open transaction implicitly.
    committing: ClassVar[frozenset[str]] = frozenset()
    # Functions that the server evaluates per row, so that it cannot use an index.
    per_row_functions: ClassVar[frozenset[str]]
    # The fast way to load rows: in a plan (`loading.method`), and as a statement.
    bulk_method: ClassVar[str] = "load-data"
    bulk_statement: ClassVar[str] = "LOAD DATA LOCAL"
    # The beginnings of the statements that explain another one.
    explain: ClassVar[Sequence[str]]
    # A column with ids that the server gives.
    generated_id: ClassVar[str]

    def quote(self, *names: str) -> str:
        """A name in SQL, after those of its database and schema."""
        mark = self.quote_character
        return ".".join(mark + name.replace(mark, 2 * mark) + mark for name in names)

    def fold(self, name: str) -> str:
        """The name that the server stores for one without quotes."""
        return name

    def literal(self, value: Setting) -> str:
        """An integer or a text in SQL."""
        return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"

    def typed_literal(self, value: Setting) -> str:
        """The same with the type with which a prepared statement sends it."""
        return self.literal(value)

    @abstractmethod
    def set_variable(self, name: str, value: Setting) -> str:
        """The statement that sets a variable of the session."""

    def set_isolation(self, level: IsolationLevel) -> str:
        """The statement that sets the isolation level of the session."""
        return f"SET SESSION {self.characteristics}TRANSACTION ISOLATION LEVEL {level.upper()}"


class MySQLDialect(Dialect):
    """The SQL of MySQL, MariaDB, and of other products that speak their protocol."""

    protocol = "mysql"
    sqlglot = "mysql"
    quote_character = "`"
    set_comment = "ALTER TABLE {table} COMMENT = {comment}"
    analyze = "ANALYZE TABLE"
    dropped_kinds = ("VIEW", "FUNCTION", "PROCEDURE", "TABLE", "SEQUENCE")
    committing = frozenset(
        {"ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE", "GRANT", "REVOKE", "LOCK", "ANALYZE", "OPTIMIZE"}
    )
    per_row_functions = frozenset(
        {"RAND", "UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "SYSDATE", "RANDOM_BYTES"}
    )
    explain = ("EXPLAIN FORMAT=JSON", "EXPLAIN", "EXPLAIN FORMAT=TREE")
    generated_id = "id INT AUTO_INCREMENT PRIMARY KEY"

    def literal(self, value: Setting) -> str:
        """See `Dialect`; a backslash escapes."""
        return super().literal(value).replace("\\", "\\\\")

    def set_variable(self, name: str, value: Setting) -> str:
        """See `Dialect`. MySQL accepts no suffix there, as in "4M", and no number in quotes."""
        text = as_text(value)
        amount = number(text)
        if not isinstance(value, bool):
            text = self.literal(text) if amount is None else f"{amount.normalize():f}"
        return f"SET SESSION {name} = {text}"


class PostgreSQLDialect(Dialect):
    """The SQL of PostgreSQL, and of other products that speak its protocol."""

    protocol = "postgresql"
    sqlglot = "postgres"
    has_schemas = True
    quote_character = '"'
    set_comment = "COMMENT ON TABLE {table} IS {comment}"
    analyze = "ANALYZE"
    characteristics = "CHARACTERISTICS AS "
    # A routine's name may belong to several.
    dropped_kinds = ("VIEW", "MATERIALIZED VIEW", "TABLE", "SEQUENCE")
    per_row_functions = frozenset(
        {
            *("RAND", "RANDOM", "RANDOM_NORMAL", "UUID", "GEN_RANDOM_UUID", "UUID_GENERATE_V4", "UUIDV4"),
            *("UUIDV7", "CLOCK_TIMESTAMP", "TIMEOFDAY", "NEXTVAL"),
        }
    )
    bulk_method = "copy"
    bulk_statement = "COPY"
    explain = ("EXPLAIN (FORMAT JSON)", "EXPLAIN")
    generated_id = "id SERIAL PRIMARY KEY"

    # Variables whose value is a list of names, of which each is quoted (GUC_LIST_QUOTE; pg_dump has the same
    # list in variable_is_guc_list_quote); SET takes a text as one name.
    name_lists = frozenset(
        {
            *("local_preload_libraries", "session_preload_libraries", "shared_preload_libraries"),
            *("search_path", "temp_tablespaces", "unix_socket_directories"),
        }
    )

    def fold(self, name: str) -> str:
        """See `Dialect`."""
        return name.lower()

    def typed_literal(self, value: Setting) -> str:
        """See `Dialect`."""
        return f"{self.literal(value)}::{'bigint' if isinstance(value, int) else 'varchar'}"

    def set_variable(self, name: str, value: Setting) -> str:
        """See `Dialect`."""
        items = [as_text(value)]
        if name in self.name_lists:
            items = [entry.strip().strip('"') for entry in items[0].split(",")]
        return f"SET {name} = {', '.join(map(self.literal, items))}"


MYSQL, POSTGRESQL = MySQLDialect(), PostgreSQLDialect()
# The dialect of each protocol.
DIALECTS: Mapping[str, Dialect] = {entry.protocol: entry for entry in (MYSQL, POSTGRESQL)}
