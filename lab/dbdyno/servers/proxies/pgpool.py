"""Pgpool-II, a proxy for PostgreSQL; settings: the chapter "Server Configuration" of its manual."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.servers.admin.connection import AdminConnection
from dbdyno.servers.products.postgresql import quote_string
from dbdyno.servers.proxies.proxy import Pool, ProxyPlace, ProxyProgram, as_number
from dbdyno.servers.server import Address, ServerProblem


class Pgpool(ProxyProgram):
    """Pgpool-II 4.4 and later, in front of one server."""

    name = "pgpool"
    package = "pgpool2"
    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("listen_addresses", "port", "unix_socket_directories", "pcp_port"),
            "dbdyno chooses where it listens",
        ),
        **dict.fromkeys(("pcp_listen_addresses", "pcp_socket_dir"), "dbdyno chooses where it listens"),
        **dict.fromkeys(("enable_pool_hba", "pool_passwd"), "dbdyno makes the account"),
        **dict.fromkeys(("backend_hostname0", "backend_port0"), "dbdyno writes what it forwards to"),
        **dict.fromkeys(("pid_file_name", "logdir", "logging_collector"), "dbdyno starts the program"),
    }

    def own_settings(self, open_files: int) -> Mapping[str, str]:  # noqa: ARG002 — it forks for each client.
        """One server, which needs no checks of its health or its replication."""
        return {
            "backend_clustering_mode": "raw",
            "sr_check_period": "0",
            "health_check_period": "0",
        }

    def files(self, place: ProxyPlace, server: Address, settings: Mapping[str, str]) -> Mapping[Path, str]:
        """See `ProxyProgram`. The file of passwords is where SCRAM on both sides needs it."""
        # Its files are named relative to its folder, because its configuration cannot express every path.
        required = {
            "listen_addresses": "127.0.0.1",
            "port": str(place.port),
            "pcp_listen_addresses": "127.0.0.1",
            "pcp_port": str(place.control_port),
            "unix_socket_directories": str(place.sockets),
            "pcp_socket_dir": str(place.sockets),
            "backend_hostname0": server.host,
            "backend_port0": str(server.port),
            "enable_pool_hba": "on",
            "pool_passwd": _passwords(place).name,
            "pid_file_name": "pgpool.pid",
            "logdir": ".",
        }
        lines = (f"{name} = {quote_string(value)}" for name, value in {**required, **settings}.items())
        return {
            place.config: "".join(f"{line}\n" for line in lines),
            _passwords(place): f"{server.user}:TEXT{server.password}\n",
            _rules(place): f"host {server.database} {server.user} 127.0.0.1/32 scram-sha-256\n",
            _control(place): "",
        }

    def arguments(self, place: ProxyPlace) -> Sequence[str]:
        """In the foreground, without the state that an earlier process left."""
        files = ("-f", str(place.config), "-a", str(_rules(place)), "-F", str(_control(place)))
        return ("-n", "-D", *files)

    def pool(self, settings: Mapping[str, str], version: str) -> Pool:  # noqa: ARG002 — the same in all.
        """See `ProxyProgram`. Each client has a process, which keeps its connection to the server."""
        return Pool("num_init_children", as_number(settings, "num_init_children", 32))

    def format_value(self, value: str | int | float | bool) -> str:
        """Booleans as on and off."""
        return ("on" if value else "off") if isinstance(value, bool) else super().format_value(value)

    def ignored(self, log: str, client: AdminConnection, declared: Iterable[str]) -> str:  # noqa: ARG002
        """Pgpool-II does not mention settings that it does not know, and shows those that it does."""
        for name in declared:
            try:
                client.query(f"PGPOOL SHOW {name}")
            except ServerProblem as problem:
                return problem.text
        return ""


def _passwords(place: ProxyPlace) -> Path:
    return place.directory / "pool_passwd"


def _rules(place: ProxyPlace) -> Path:
    return place.directory / "pool_hba.conf"


def _control(place: ProxyPlace) -> Path:
    return place.directory / "pcp.conf"
