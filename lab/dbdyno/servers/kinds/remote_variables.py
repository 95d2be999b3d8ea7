"""How dbdyno reads and sets a variable of a whole remote server, by protocol.

A value that was read is one that `set` accepts: it stays the same when it is stored as text and set again.
"""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from dbdyno.servers.admin import answers
from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.products.mysql import MySQL
from dbdyno.servers.products.postgresql import PostgreSQL
from dbdyno.servers.products.product import Value
from dbdyno.servers.server import ServerProblem, StatementRefused

# Maximum seconds until a reload of the configuration is complete.
RELOAD_S_MAX = 10.0

# The variable can be set only when the server starts, or it has no global value.
_READ_ONLY = 1238
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_SIZE = re.compile(r"([0-9]+)([KMGTPE])", re.IGNORECASE)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?")
# PostgreSQL's settings that are lists of names, of which each is quoted (GUC_LIST_QUOTE; pg_dump has the same
# list in variable_is_guc_list_quote).
_NAME_LISTS = frozenset(
    {
        "local_preload_libraries",
        "search_path",
        "session_preload_libraries",
        "shared_preload_libraries",
        "temp_tablespaces",
        "unix_socket_directories",
    }
)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_LIST_ITEM = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^",]*))\s*(?:,|$)')


@dataclass(frozen=True)
class Setting:
    """The value of a variable of the whole server."""

    # None: NULL; PostgreSQL: postgresql.auto.conf does not set the variable.
    text: str | None
    # Whether SET needs quotes around it.
    is_text: bool = True


class RemoteVariables(ABC):
    """The variables of a server of one protocol. The methods raise ServerProblem."""

    @abstractmethod
    def read(self, admin: AdminConnection, name: str) -> Setting:
        """The current value, which `write` accepts."""

    @abstractmethod
    def requested(self, name: str, value: Value, now: Setting) -> Setting:
        """A value of an experiment for `write`; `now` is the current one."""

    @abstractmethod
    def predict(self, admin: AdminConnection, name: str, setting: Setting) -> str:
        """What the server will report after `write`, as far as it says so before. May change the session."""

    @abstractmethod
    def require_changeable(self, admin: AdminConnection, name: str) -> None:
        """Raise ServerProblem if the variable cannot be changed while the server runs."""

    @abstractmethod
    def statement(self, name: str, setting: Setting) -> str:
        """The statement that sets a variable."""

    @abstractmethod
    def instruction(self, name: str, setting: Setting) -> str:
        """The statements that set a variable, for a user who must run them."""

    @abstractmethod
    def describe(self, value: str | None) -> str:
        """A value for a message, as in `'200'`."""

    def write(self, admin: AdminConnection, name: str, setting: Setting) -> None:
        """Set a variable. It takes effect with `apply`."""
        admin.query(self.statement(name, setting))

    @abstractmethod
    def apply(self, admin: AdminConnection) -> None:
        """Let what was written take effect."""

    @abstractmethod
    def values(self, admin: AdminConnection) -> Mapping[str, str]:
        """All variables that may change along with another one, by the names that `read` accepts."""

    @abstractmethod
    def connection(self, admin: AdminConnection) -> int | None:
        """The number of the connection, which grows until the server restarts; None if a restart keeps the
        variables.
        """


class MySQLVariables(RemoteVariables):
    """SET GLOBAL. The value is lost when the server restarts."""

    def read(self, admin: AdminConnection, name: str) -> Setting:
        """See `RemoteVariables`."""
        _require_name(name)
        pairs = admin.pairs(f"SHOW GLOBAL VARIABLES WHERE Variable_name = {_quote(name)}")
        shown = {key.lower(): text for key, text in pairs.items()}
        if name.lower() not in shown:
            raise ServerProblem(f"the server has no variable {name!r}")
        try:
            # SHOW GLOBAL VARIABLES does not tell NULL from an empty text.
            value = answers.value(admin.query, f"SELECT @@GLOBAL.{name}", _as_it_is)
        except StatementRefused as refusal:
            raise _explain_refusal(name, refusal) from refusal
        is_text = value is None or isinstance(value, str | bytes)
        return Setting(None if value is None else shown[name.lower()], is_text)

    def requested(self, name: str, value: Value, now: Setting) -> Setting:
        """Sizes are converted to bytes, because SET accepts no size suffix."""
        text = MySQL().format_value(name, value)
        is_text = now.is_text and isinstance(value, str)
        if (size := _SIZE.fullmatch(text)) is not None and not is_text:
            text = str(int(size[1]) * 1024 ** ("KMGTPE".index(size[2].upper()) + 1))
        return Setting(text, is_text)

    def predict(self, admin: AdminConnection, name: str, setting: Setting) -> str:
        """Sets the value in the session: `optimizer_switch = 'mrr=on'` is reported as a long list."""
        # A client that reads results in another character set may not understand them.
        with suppress(StatementRefused):
            if not name.startswith(("character_set", "collation")):
                admin.query(f"SET SESSION {name} = {_literal(setting)}")
                shown = admin.pairs(f"SHOW SESSION VARIABLES WHERE Variable_name = {_quote(name)}")
                return next(iter(shown.values()), setting.text or "")
        return setting.text or ""

    def require_changeable(self, admin: AdminConnection, name: str) -> None:
        """Does nothing: SET refuses such a variable."""

    def statement(self, name: str, setting: Setting) -> str:
        """A SET GLOBAL statement."""
        return f"SET GLOBAL {name} = {_literal(setting)}"

    def write(self, admin: AdminConnection, name: str, setting: Setting) -> None:
        """See `RemoteVariables`."""
        try:
            super().write(admin, name, setting)
        except StatementRefused as refusal:
            raise _explain_refusal(name, refusal) from refusal

    def instruction(self, name: str, setting: Setting) -> str:
        """The same as `statement`."""
        return self.statement(name, setting)

    def describe(self, value: str | None) -> str:
        """The value in quotes, or NULL."""
        return "NULL" if value is None else repr(value)

    def apply(self, admin: AdminConnection) -> None:
        """Does nothing: SET GLOBAL takes effect at once."""

    def values(self, admin: AdminConnection) -> Mapping[str, str]:
        """Without replication's positions, which change all the time."""
        pairs = admin.pairs("SHOW GLOBAL VARIABLES")
        return {name: text for name, text in pairs.items() if "gtid" not in name.lower()}

    def connection(self, admin: AdminConnection) -> int | None:
        """See `RemoteVariables`."""
        return answers.value(admin.query, "SELECT CONNECTION_ID()", answers.integer)


def _as_it_is(value: object) -> object:
    return value


def _require_name(name: str) -> None:
    """Raise ServerProblem for a name that would be more than a name in a statement."""
    if _NAME.fullmatch(name) is None:
        raise ServerProblem(f"{name!r} is not the name of a variable")


def _explain_refusal(name: str, refusal: StatementRefused) -> ServerProblem:
    if f"(error {_READ_ONLY})" not in refusal.text:
        return refusal
    return StatementRefused(
        f"{name} cannot be changed while the server runs",
        "compare two servers that were started with different values, and omit set_global",
    )


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _literal(setting: Setting) -> str:
    """A value for SET."""
    text = setting.text
    if text is None:
        return "NULL"
    if not setting.is_text and (_NUMBER.fullmatch(text) or text.upper() in {"ON", "OFF"}):
        return text
    if "\\" in text:
        # Whether a backslash escapes depends on the SQL mode.
        return f"CONVERT(0x{text.encode().hex()} USING utf8mb4)"
    return _quote(text)


class PostgreSQLVariables(RemoteVariables):
    """ALTER SYSTEM and a reload. The value is an entry of postgresql.auto.conf, which a restart keeps."""

    def read(self, admin: AdminConnection, name: str) -> Setting:
        """The entry of postgresql.auto.conf."""
        _require_name(name)
        rows = answers.rows(
            admin.query,
            "SELECT setting FROM pg_file_settings WHERE sourcefile LIKE '%postgresql.auto.conf' "
            f"AND lower(name) = '{name.lower()}' ORDER BY seqno",
            answers.text_or_empty,
        )
        return Setting(rows[-1][0] if rows else None)

    def requested(self, name: str, value: Value, now: Setting) -> Setting:  # noqa: ARG002
        """See `RemoteVariables`."""
        return Setting(PostgreSQL().format_value(name, value))

    def predict(self, admin: AdminConnection, name: str, setting: Setting) -> str:  # noqa: ARG002
        """The entry is the text, except for the quotes of a list of names."""
        text = setting.text or ""
        if name.lower() not in _NAME_LISTS:
            return text
        names = (
            one if _PLAIN.fullmatch(one) else f'"{one.replace(chr(34), 2 * chr(34))}"'
            for one in split_names(text)
        )
        return ", ".join(names)

    def require_changeable(self, admin: AdminConnection, name: str) -> None:
        """See `RemoteVariables`."""
        _require_name(name)
        contexts = answers.rows(
            admin.query,
            f"SELECT context FROM pg_settings WHERE lower(name) = '{name.lower()}'",
            answers.text,
        )
        if not contexts:
            raise ServerProblem(f"the server has no variable {name!r}")
        if contexts[0][0] in ("postmaster", "internal"):
            raise ServerProblem(
                f"{name} cannot be changed while the server runs",
                "set it yourself and restart the server",
            )
        if admin.query("SELECT has_function_privilege('pg_reload_conf()', 'EXECUTE')") == [(False,)]:
            raise ServerProblem("the account may not call pg_reload_conf()", exit_code=4)

    def statement(self, name: str, setting: Setting) -> str:
        """An ALTER SYSTEM statement."""
        if setting.text is None:
            return f"ALTER SYSTEM RESET {name}"
        items = [setting.text]
        if name.lower() in _NAME_LISTS and setting.text:
            items = split_names(setting.text)
        return f"ALTER SYSTEM SET {name} = {', '.join(map(_quote, items))}"

    def instruction(self, name: str, setting: Setting) -> str:
        """ALTER SYSTEM and a reload."""
        return f"{self.statement(name, setting)}; SELECT pg_reload_conf()"

    def describe(self, value: str | None) -> str:
        """The entry in quotes."""
        return "not set in postgresql.auto.conf" if value is None else repr(value)

    def apply(self, admin: AdminConnection) -> None:
        """Make the server reload its configuration, and wait until the reload is complete."""
        before = admin.query("SELECT pg_conf_load_time()::text")
        admin.query("SELECT pg_reload_conf()")
        deadline = time.monotonic() + RELOAD_S_MAX
        while admin.query("SELECT pg_conf_load_time()::text") == before and time.monotonic() < deadline:
            time.sleep(0.02)

    def values(self, admin: AdminConnection) -> Mapping[str, str]:  # noqa: ARG002
        """None: ALTER SYSTEM changes one entry."""
        return {}

    def connection(self, admin: AdminConnection) -> int | None:  # noqa: ARG002
        """None: a restart keeps the entries."""
        return None


def split_names(text: str) -> list[str]:
    """The names of a list as in `"$user", public`."""
    names, position = [], 0
    while position < len(text):
        match = _LIST_ITEM.match(text, position)
        if match is None or match.end() == position:
            # Not a list of names: the server says what is wrong with it.
            return [text]
        quoted, plain = match[1], match[2]
        names.append(quoted.replace('""', '"') if quoted is not None else plain.strip().lower())
        position = match.end()
    return names
