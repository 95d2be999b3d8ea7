"""Starts, configures, describes and stops database servers, and restores their data.

`server` is the interface; each module of `kinds` implements it for one kind of server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from dbdyno.experiment.model import Variant
from dbdyno.experiment.variant import Proxy
from dbdyno.servers.kinds.command import CommandServer
from dbdyno.servers.kinds.remote import RemoteServer, open_remote, variant_target
from dbdyno.servers.products.declaration import PRODUCTS, read_declaration
from dbdyno.servers.proxies import PROGRAMS
from dbdyno.servers.server import Server, ServerProblem
from dbdyno.servers.snapshots.cache import PRIVATE_KINDS, Snapshots, find_software
from dbdyno.servers.snapshots.directories import Snapshot
from dbdyno.servers.sources.installed import find_installed
from dbdyno.servers.url import bracket_ipv6
from dbdyno.servers.workspace import Workspace

_VERSION = re.compile(r"\b\d+\.\d+(\.\d+)?")

# To add a kind of server, add a line here, or to `PRIVATE_KINDS`.
KINDS: Mapping[str, Callable[[Variant, Workspace, Snapshot | None], Server]] = {
    **PRIVATE_KINDS,
    "remote": RemoteServer.from_variant,
    "command": CommandServer.from_variant,
}


def open_server(
    variant: Variant, workspace: Workspace, snapshot: Snapshot | None, secrets: Collection[str] = ()
) -> Server:
    """The server of a variant, stopped and without data; close it with `contextlib.closing`.

    `secrets` are the names of the environment variables that hold the experiment's passwords. Raises
    ServerProblem with all reasons why the variant cannot be run.
    """
    server = KINDS[variant.server.kind](variant, workspace, snapshot)
    server.secrets = secrets
    return server


def describe_server(variant: Variant, *, executes: bool = True) -> str:
    """What dbdyno starts or connects to, such as "MariaDB 10.11.6 (/usr/sbin/mariadbd)". Starts no server;
    asks programs for their version, unless `executes` is false.

    Raises ServerProblem if a program or an image is missing.
    """
    if not executes:
        return _declared_server(variant)
    spec = variant.server
    if not spec.is_private:
        target = variant_target(variant)
        where = f"{bracket_ipv6(target.host)}:{target.port}/{target.database}"
        return f"{where}, started by your command" if spec.start else where
    software = find_software(variant)
    version = _VERSION.search(software.version)
    title = PRODUCTS[str(spec.product)].title
    server = f"{title} {version[0] if version else software.version} ({software.place})"
    return server if variant.proxy is None else f"{server} behind {_describe_proxy(variant.proxy)}"


def _declared_server(variant: Variant) -> str:
    """What the experiment says of a variant's server. Raises ServerProblem for declarations that are wrong,
    and for a missing program.
    """
    spec = variant.server
    if not spec.is_private:
        return describe_server(variant)
    declared = read_declaration(variant)
    product, version = declared.product, f" {spec.version}" if spec.version else ""
    if spec.kind == "docker":
        place = f"image {spec.image}"
    elif spec.version is not None and spec.basedir is None:
        installed = find_installed(product.name, spec.version)
        place = "a program of this machine" if installed is None else str(installed.programs)
    else:
        place = str(product.binaries(spec.basedir).server)
    server = f"{product.title}{version} ({place})"
    if variant.proxy is None:
        return server
    program = PROGRAMS[variant.proxy.program]
    program.declared(variant.proxy, variant.name)
    return f"{server} behind {program.title} ({program.find(variant.proxy.basedir)[-1]})"


def _describe_proxy(proxy: Proxy) -> str:
    program = PROGRAMS[proxy.program]
    command = program.find(proxy.basedir)
    return f"{program.title} {program.version(command)} ({command[-1]})"


__all__ = [
    "Server",
    "ServerProblem",
    "Snapshot",
    "Snapshots",
    "Workspace",
    "describe_server",
    "open_remote",
    "open_server",
]
