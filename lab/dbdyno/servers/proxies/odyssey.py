"""Odyssey, a pooler for PostgreSQL; settings: its file documentation/configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.servers.proxies.proxy import Pool, ProxyPlace, ProxyProgram, as_number
from dbdyno.servers.server import Address
from dbdyno.text import compose

# Settings of the rule for a user; all others are of the whole program.
_OF_USER = (
    *("pool", "pool_", "client_max", "client_fwd_error", "application_name_add_host", "server_lifetime"),
    *("reserve_session_server_connection", "quantiles", "log_debug", "log_query"),
)
_YES = frozenset({"yes", "on", "1", "true"})


class Odyssey(ProxyProgram):
    """Odyssey 1.3 and later."""

    name = "odyssey"
    package = "odyssey"
    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("listen", "host", "port", "unix_socket_dir"), "dbdyno chooses where it listens"),
        **dict.fromkeys(("storage", "database", "user", "password", "authentication"), "dbdyno writes them"),
        **dict.fromkeys(
            ("daemonize", "pid_file", "log_file", "log_to_stdout"), "dbdyno starts and reads the program"
        ),
    }

    def own_settings(self, open_files: int) -> Mapping[str, str]:
        """A rule needs `pool`; a `pool_size` of 0 is no limit."""
        return {"pool": "session", "pool_size": "0", "client_max": str(min(10_000, open_files // 3))}

    def files(self, place: ProxyPlace, server: Address, settings: Mapping[str, str]) -> Mapping[Path, str]:
        """See `ProxyProgram`."""
        of_user = {name: value for name, value in settings.items() if name.startswith(_OF_USER)}
        of_all = {name: value for name, value in settings.items() if name not in of_user}
        lines = [
            "daemonize no",
            "log_to_stdout yes",
            'log_format "%t %l %m\\n"',
            *(f"{name} {_word(value)}" for name, value in of_all.items()),
            "listen {",
            '    host "127.0.0.1"',
            f"    port {place.port}",
            "}",
            'storage "server" {',
            '    type "remote"',
            f'    host "{server.host}"',
            f"    port {server.port}",
            "}",
            f'database "{server.database}" {{',
            f'    user "{server.user}" {{',
            '        authentication "scram-sha-256"',
            f'        password "{server.password}"',
            '        storage "server"',
            f'        storage_user "{server.user}"',
            f'        storage_password "{server.password}"',
            *(f"        {name} {_word(value)}" for name, value in of_user.items()),
            "    }",
            "}",
        ]
        return {place.config: "".join(f"{line}\n" for line in lines)}

    def arguments(self, place: ProxyPlace) -> Sequence[str]:
        """See `ProxyProgram`."""
        return (str(place.config),)

    def pool(self, settings: Mapping[str, str], version: str) -> Pool:  # noqa: ARG002 — the same in all.
        """See `ProxyProgram`."""
        return Pool(
            clients_setting="client_max",
            clients=as_number(settings, "client_max", 0),
            size_setting="pool_size",
            size=as_number(settings, "pool_size", 0),
            is_per_session=settings.get("pool", "session") == "session",
            keeps_prepared=settings.get("pool_reserve_prepared_statement", "no") in _YES,
            prepared_fix=compose("pool_reserve_prepared_statement = true under [variant.proxy.settings]"),
        )

    def format_value(self, value: str | int | float | bool) -> str:
        """Booleans as yes and no."""
        return ("yes" if value else "no") if isinstance(value, bool) else super().format_value(value)


def _word(value: str) -> str:
    """A value: numbers and switches as they are, other text in quotes."""
    return value if value.isdecimal() or value in ("yes", "no") else '"' + value.replace('"', '\\"') + '"'
