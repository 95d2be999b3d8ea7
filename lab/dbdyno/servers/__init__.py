"""Starts, configures, describes and stops database servers, and restores their data.

`server` is the interface; each module of `kinds` implements it for one kind of server.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dbdyno.experiment.model import Variant
from dbdyno.servers.kinds.command import CommandServer
from dbdyno.servers.kinds.docker import DockerServer
from dbdyno.servers.kinds.local import LocalServer
from dbdyno.servers.kinds.remote import RemoteServer, open_remote
from dbdyno.servers.server import Server, ServerProblem
from dbdyno.servers.snapshots.cache import Snapshots
from dbdyno.servers.snapshots.snapshot import Snapshot
from dbdyno.servers.workspace import Workspace

# To add a kind of server, add a line here.
KINDS: Mapping[str, Callable[[Variant, Workspace, Snapshot | None], Server]] = {
    "local": LocalServer,
    "docker": DockerServer,
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


__all__ = ["Server", "ServerProblem", "Snapshot", "Snapshots", "Workspace", "open_remote", "open_server"]
