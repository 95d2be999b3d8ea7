"""Servers: start, configure, read back, snapshot, restore, describe, stop.

`server` is the interface. `local` runs private servers, `endpoint` reaches those of somebody else's, and
`command` leaves the user's own to the user's commands.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from dbdyno.experiment.model import Variant
from dbdyno.servers.command import CommandServer
from dbdyno.servers.docker import DockerServer
from dbdyno.servers.endpoint import RemoteServer, open_endpoint
from dbdyno.servers.local import LocalServer
from dbdyno.servers.server import Server, ServerProblem
from dbdyno.servers.snapshot import Snapshot
from dbdyno.servers.snapshots import Snapshots
from dbdyno.servers.workspace import Workspace

# A kind of server is registered by its line here.
KINDS: Mapping[str, Callable[[Variant, Workspace, Snapshot | None], Server]] = {
    "local": LocalServer,
    "docker": DockerServer,
    "remote": RemoteServer,
    "command": CommandServer,
}


def open_server(
    variant: Variant, workspace: Workspace, snapshot: Snapshot | None, secrets: Collection[str] = ()
) -> Server:
    """The server of a variant, stopped and without data; close it with `contextlib.closing`.

    `secrets` are the variables of the environment that hold the experiment's passwords.
    Raises ServerProblem when the variant cannot be served, with everything that is wrong.
    """
    server = KINDS[variant.server.kind](variant, workspace, snapshot)
    server.secrets = secrets
    return server


__all__ = ["Server", "ServerProblem", "Snapshot", "Snapshots", "Workspace", "open_endpoint", "open_server"]
