"""PgBouncer, a pooler for PostgreSQL; settings: its page config(5)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.proxies.proxy import Pool, ProxyPlace, ProxyProgram, as_number, version_numbers
from dbdyno.servers.server import Address
from dbdyno.text import compose

# Prepared statements of clients that change their connection, and the version that has them by default.
_PREPARED_SINCE, _PREPARED_BY_DEFAULT = (1, 21), (1, 24)
_PREPARED_DEFAULT = 200
_IGNORED = re.compile(r"(?:unrecognized parameter|unknown parameter|skipping|invalid value).*", re.IGNORECASE)


class PgBouncer(ProxyProgram):
    """PgBouncer 1.14 and later, which speaks SCRAM on both sides."""

    name = "pgbouncer"
    package = "pgbouncer"
    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("listen_addr", "listen_port", "unix_socket_dir"), "dbdyno chooses where it listens"),
        **dict.fromkeys(("auth_type", "auth_file", "auth_hba_file", "auth_user"), "dbdyno makes the account"),
        **dict.fromkeys(("logfile", "pidfile", "user"), "dbdyno starts and reads the program"),
    }

    def own_settings(self, open_files: int) -> Mapping[str, str]:
        """Room for the clients of most loads, and for each a connection to the server as without a pooler."""
        return {
            "max_client_conn": str(min(10_000, open_files // 3)),
            "default_pool_size": str(min(10_000, open_files // 3)),
        }

    def files(self, place: ProxyPlace, server: Address, settings: Mapping[str, str]) -> Mapping[Path, str]:
        """See `ProxyProgram`. The accounts are in a file of their own."""
        accounts = place.directory / "accounts.txt"
        required = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(place.port),
            "unix_socket_dir": "",
            "auth_type": "scram-sha-256",
            "auth_file": str(accounts),
        }
        lines = [
            "[databases]",
            f"{server.database} = host={server.host} port={server.port} dbname={server.database}",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in {**required, **settings}.items()),
        ]
        return {
            place.config: "".join(f"{line}\n" for line in lines),
            accounts: f'"{server.user}" "{server.password}"\n',
        }

    def arguments(self, place: ProxyPlace) -> Sequence[str]:
        """See `ProxyProgram`."""
        return (str(place.config),)

    def pool(self, settings: Mapping[str, str], version: str) -> Pool:
        """See `ProxyProgram`. Without `pool_mode` a client keeps its connection until it disconnects."""
        release = version_numbers(version)
        default = _PREPARED_DEFAULT if release >= _PREPARED_BY_DEFAULT else 0
        fix = compose("max_prepared_statements = 200 under [variant.proxy.settings]")
        if release < _PREPARED_SINCE:
            fix = compose('PgBouncer 1.21 or later, or pool_mode = "session"')
        return Pool(
            clients_setting="max_client_conn",
            clients=as_number(settings, "max_client_conn", 100),
            size_setting="default_pool_size",
            size=as_number(settings, "default_pool_size", 20),
            is_per_session=settings.get("pool_mode", "session") == "session",
            keeps_prepared=release >= _PREPARED_SINCE
            and as_number(settings, "max_prepared_statements", default) > 0,
            prepared_fix=fix,
        )

    def ignored(self, log: str, client: AdminConnection, declared: Iterable[str]) -> str:  # noqa: ARG002
        """PgBouncer warns of settings that it does not know, and starts."""
        match = _IGNORED.search(log)
        return match[0].strip() if match else ""
