"""The model of `[variant.proxy]`: a proxy through which the load reaches the variant's private server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from dbdyno.experiment.base import CpuList, Model, VariableValue
from dbdyno.experiment.errors import InputError

Program = Literal["haproxy", "odyssey", "pgbouncer", "pgpool"]

TITLES: Mapping[str, str] = {
    "haproxy": "HAProxy",
    "odyssey": "Odyssey",
    "pgbouncer": "PgBouncer",
    "pgpool": "Pgpool-II",
}
# The program that forwards any protocol, and TLS with it; the others are PostgreSQL's own and end a session.
_FORWARDS_ALL = "haproxy"


class Proxy(Model):
    """`[variant.proxy]`: a proxy or pooler that dbdyno starts in front of the variant's server."""

    program: Program
    """The program. The load connects to it; data are loaded and checked on the server's own port."""
    settings: dict[Annotated[str, Field(pattern=r"^[a-z_][A-Za-z0-9_. -]*$")], VariableValue] = Field(
        default_factory=dict
    )
    """Settings in the words of its configuration file, such as `pool_mode`."""
    cpus: CpuList | None = None
    """CPUs to which it is pinned, by default those of the server."""
    basedir: Path | None = None
    """Folder of a program that is not on PATH: an unpacked root file system."""


def find_errors(place: str, variant: Any, protocol: str, transport: str) -> Iterator[InputError]:
    """Errors of a variant's proxy that its server or the variant's connections cause."""
    proxy = variant.proxy
    if proxy is None:
        return
    title, key = TITLES[proxy.program], f"{place}.proxy"
    if not variant.server.is_private:
        problem = (
            f"dbdyno starts proxies only in front of servers that it starts, not of {variant.server.kind}"
        )
        fix = "Start the proxy yourself, and write its address as url"
        yield InputError(f"{key}.program", proxy.program, problem, fix)
        return
    if transport == "unix":
        yield InputError(
            f"{key}.program",
            proxy.program,
            'the load reaches a proxy over TCP, and the transport is "unix"',
            'Write transport = "tcp"',
        )
    if proxy.program == _FORWARDS_ALL:
        return
    if protocol != "postgresql":
        fix = f'Write program = "{_FORWARDS_ALL}", or product = "postgresql"'
        yield InputError(f"{key}.program", proxy.program, f"{title} is a proxy for PostgreSQL", fix)
    if variant.session.tls != "disabled":
        problem = f"dbdyno starts {title} without TLS"
        fix = f'Leave it out, or write program = "{_FORWARDS_ALL}", which forwards TLS'
        yield InputError(f"{place}.session.tls", variant.session.tls, problem, fix)
