"""HAProxy, which forwards the bytes of any protocol; settings: its configuration manual."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from dbdyno.servers.proxies.proxy import Pool, ProxyPlace, ProxyProgram, as_number
from dbdyno.servers.server import Address

# Keywords of the section `global`; all others belong to the section that forwards.
_GLOBAL = frozenset({"nbthread", "maxconn", "cpu-map", "busy-polling", "spread-checks", "thread-groups"})
# Connections are idle while other variants have load.
_IDLE = "24h"


class HAProxy(ProxyProgram):
    """HAProxy 2.0 and later, in TCP mode."""

    name = "haproxy"
    package = "haproxy"
    version_arguments = ("-v",)
    reserved: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("bind", "server", "mode"), "dbdyno writes where it listens, and what it forwards"),
        **dict.fromkeys(("user", "group", "chroot", "daemon", "pidfile"), "dbdyno starts the program"),
    }

    def own_settings(self, open_files: int) -> Mapping[str, str]:
        """A client needs two files; the limits on idle time are longer than any run needs."""
        return {
            "maxconn": str(min(20_000, open_files // 3)),
            "timeout connect": "10s",
            "timeout client": _IDLE,
            "timeout server": _IDLE,
        }

    def files(self, place: ProxyPlace, server: Address, settings: Mapping[str, str]) -> Mapping[Path, str]:
        """See `ProxyProgram`. It knows no passwords, because it forwards the login too."""
        of_all = {name: value for name, value in settings.items() if _is_global(name)}
        rest = {name: value for name, value in settings.items() if name not in of_all}
        lines = [
            "global",
            *(f"    {name} {value}" for name, value in of_all.items()),
            "listen load",
            "    mode tcp",
            f"    bind 127.0.0.1:{place.port}",
            # The section has a limit of its own, 2000 or that of `global`, by version.
            *([f"    maxconn {of_all['maxconn']}"] if "maxconn" in of_all else []),
            *(f"    {name} {value}" for name, value in rest.items()),
            f"    server database {server.host}:{server.port}",
        ]
        return {place.config: "".join(f"{line}\n" for line in lines)}

    def arguments(self, place: ProxyPlace) -> Sequence[str]:
        """In the foreground, in one process."""
        return ("-db", "-f", str(place.config))

    def pool(self, settings: Mapping[str, str], version: str) -> Pool:  # noqa: ARG002 — the same in all.
        """See `ProxyProgram`."""
        return Pool("maxconn", as_number(settings, "maxconn", 0))


def _is_global(name: str) -> bool:
    return name in _GLOBAL or name.startswith("tune.")
